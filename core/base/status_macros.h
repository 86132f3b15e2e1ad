// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Early return of a failed absl::Status from a function that returns Status or StatusOr.
//
//   FR_RETURN_IF_ERROR(Validate(options));
//   FR_ASSIGN_OR_RETURN(Dataset data, Dataset::Open(path));
//
// The second is several statements: never the body of an `if` without braces. A target with commas
// needs parentheses or a name for its type.
#define FR_RETURN_IF_ERROR(expression)                                              \
  do {                                                                              \
    if (::absl::Status fr_status = (expression); !fr_status.ok()) return fr_status; \
  } while (false)

#define FR_ASSIGN_OR_RETURN(target, expression) \
  FR_ASSIGN_OR_RETURN_IMPL(FR_STATUS_NAME(fr_or_, __LINE__), target, expression)
#define FR_STATUS_NAME_INNER(a, b) a##b
#define FR_STATUS_NAME(a, b) FR_STATUS_NAME_INNER(a, b)
#define FR_ASSIGN_OR_RETURN_IMPL(name, target, expression) \
  auto name = (expression);                                \
  if (!name.ok()) return name.status();                    \
  target = *std::move(name)
