// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/ops/op_context.h"
#include "parallel/comm/process_group.h"

namespace forerun {

// Checks that all ranks of a group hold the same text: a plan, printed one entry a line. A
// collective call, for set-up. On a difference every rank gets the same error, which shows the
// first entry that differs and what two ranks have there. `what` names the text. Throws
// comm::GroupError. Cost where all agree: one gather of 8 bytes a rank.
absl::Status CheckAgreement(const OpContext& context, comm::ProcessGroup& group,
                            absl::string_view what, absl::string_view text);

// Whether all ranks of a group went well: ok on all, or on all the error of the first rank that has
// one. A collective call. Throws comm::GroupError.
absl::Status AgreeOnStatus(comm::ProcessGroup& group, const absl::Status& mine);

// Every value becomes the largest that any rank of the group has there, the same bits on all. A
// collective call; all ranks give equally many. Throws comm::GroupError.
void TakeLargest(const OpContext& context, comm::ProcessGroup& group, absl::Span<double> values);

}  // namespace forerun
