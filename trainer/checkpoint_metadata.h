// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/arguments.h"

// What a checkpoint says beside its tensors: texts by name. Names are those of flags.
namespace forerun {

using Metadata = std::map<std::string, std::string>;

// The model, enough to build it again; tokenizer_type too. `vocab_size` is what the flag or the
// tokenizer says. How far a vocabulary is padded belongs to the layout and is not there.
Metadata ModelMetadata(const Arguments& arguments, int64_t vocab_size);
// Back. Fails naming the entry that is missing or malformed.
absl::Status TakeModel(const Metadata& metadata, Arguments& arguments);
// Fails, naming the flag of the first difference, where a checkpoint's model is another one. Precision, dropout
// and the length of samples may differ.
absl::Status CheckSameModel(const Metadata& saved, const Metadata& wanted);

// What the learning rate is a function of.
Metadata ScheduleMetadata(const TrainingArguments& training);
// Back.
absl::Status TakeSchedule(const Metadata& metadata, TrainingArguments& training);
// Fails naming the first flag that differs and what decides.
absl::Status CheckSameSchedule(const Metadata& saved, const TrainingArguments& training);

// One whole number.
absl::StatusOr<int64_t> IntegerEntry(const Metadata& metadata, const std::string& name);

}  // namespace forerun
