// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint_metadata.h"

#include <charconv>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/status_macros.h"

namespace forerun {
namespace {

// The one table of a model's entries.
template <typename Model, typename Visit>
void VisitModel(Model&& model, Visit&& visit) {
  visit("num_layers", model.num_layers);
  visit("hidden_size", model.hidden_size);
  visit("ffn_hidden_size", model.ffn_hidden_size);
  visit("num_attention_heads", model.num_attention_heads);
  visit("num_query_groups", model.num_query_groups);
  visit("seq_length", model.seq_length);
  visit("max_position_embeddings", model.max_position_embeddings);
  visit("vocab_size", model.vocab_size);
  visit("position_embedding_type", model.position_embedding_type);
  visit("rotary_base", model.rotary_base);
  visit("normalization", model.normalization);
  visit("norm_epsilon", model.norm_epsilon);
  visit("swiglu", model.swiglu);
  visit("disable_bias_linear", model.disable_bias_linear);
  visit("untie_embeddings_and_output_weights", model.untie_embeddings_and_output_weights);
  visit("post_sublayer_norms", model.post_sublayer_norms);
  visit("attention_dropout", model.attention_dropout);
  visit("hidden_dropout", model.hidden_dropout);
  visit("bf16", model.bf16);
}

// The same of a schedule.
template <typename Training, typename Visit>
void VisitSchedule(Training& training, Visit&& visit) {
  visit("lr", training.lr);
  visit("min_lr", training.min_lr);
  visit("lr_decay_style", training.lr_decay_style);
  visit("lr_decay_iters", training.lr_decay_iters);
  visit("lr_warmup_iters", training.lr_warmup_iters);
}

std::string ToText(int64_t value) { return absl::StrCat(value); }
// The shortest that reads back as the same number.
std::string ToText(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}
std::string ToText(bool value) { return value ? "true" : "false"; }
std::string ToText(const std::string& value) { return value; }

bool FromText(const std::string& text, int64_t& value) { return absl::SimpleAtoi(text, &value); }
bool FromText(const std::string& text, double& value) { return absl::SimpleAtod(text, &value); }
bool FromText(const std::string& text, bool& value) {
  value = text == "true";
  return value || text == "false";
}
bool FromText(const std::string& text, std::string& value) {
  value = text;
  return true;
}

std::string FlagOf(const std::string& name) {
  return absl::StrCat("--", absl::StrReplaceAll(name, {{"_", "-"}}));
}

template <typename T>
absl::Status TakeEntry(const Metadata& metadata, const std::string& name, T& value) {
  const auto found = metadata.find(name);
  if (found != metadata.end() && FromText(found->second, value)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the checkpoint does not say ", name));
}

// Takes entries until one fails.
class Taker {
 public:
  explicit Taker(const Metadata& metadata) : metadata_(metadata) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    if (status_.ok()) status_ = TakeEntry(metadata_, name, value);
  }
  const absl::Status& status() const { return status_; }

 private:
  const Metadata& metadata_;
  absl::Status status_;
};

}  // namespace

Metadata ModelMetadata(const Arguments& arguments, int64_t vocab_size) {
  Metadata metadata;
  VisitModel(arguments.model,
             [&](const char* name, const auto& value) { metadata[name] = ToText(value); });
  metadata["vocab_size"] = ToText(vocab_size);
  metadata["tokenizer_type"] = arguments.data.tokenizer_type;
  return metadata;
}

absl::Status TakeModel(const Metadata& metadata, Arguments& arguments) {
  Taker taker(metadata);
  VisitModel(arguments.model, taker);
  taker("tokenizer_type", arguments.data.tokenizer_type);
  ModelArguments& model = arguments.model;
  model.group_query_attention = model.num_query_groups != model.num_attention_heads;
  if (arguments.data.tokenizer_type == "NullTokenizer") --model.vocab_size;  // as the flag counts
  return taker.status();
}

absl::Status CheckSameModel(const Metadata& saved, const Metadata& wanted) {
  const std::set<std::string> free = {"bf16", "seq_length", "attention_dropout", "hidden_dropout"};
  absl::Status status;
  // In the table's order, where what is given comes before what follows from it.
  VisitModel(ModelArguments(), [&](const std::string& name, const auto&) {
    const auto found = saved.find(name);
    const std::string theirs = found == saved.end() ? "nothing" : found->second;
    const std::string& ours = wanted.at(name);
    if (!status.ok() || free.count(name) > 0 || theirs == ours) return;
    status = absl::InvalidArgumentError(absl::StrCat("the checkpoint's model has ", FlagOf(name),
                                                     " ", theirs, ", this run's has ", ours));
  });
  return status;
}

Metadata ScheduleMetadata(const TrainingArguments& training) {
  Metadata metadata;
  VisitSchedule(training,
                [&](const char* name, const auto& value) { metadata[name] = ToText(value); });
  return metadata;
}

absl::Status TakeSchedule(const Metadata& metadata, TrainingArguments& training) {
  Taker taker(metadata);
  VisitSchedule(training, taker);
  return taker.status();
}

absl::Status CheckSameSchedule(const Metadata& saved, const TrainingArguments& training) {
  TrainingArguments theirs;
  FR_RETURN_IF_ERROR(TakeSchedule(saved, theirs));
  const Metadata theirs_in_words = ScheduleMetadata(theirs);
  for (const auto& [name, value] : ScheduleMetadata(training)) {
    if (theirs_in_words.at(name) == value) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the checkpoint was trained with ", FlagOf(name), " ",
                     theirs_in_words.at(name), ", this run has ", value,
                     "; --use-checkpoint-opt_param-scheduler takes the checkpoint's schedule, "
                     "--override-opt_param-scheduler this run's"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> IntegerEntry(const Metadata& metadata, const std::string& name) {
  int64_t value = 0;
  FR_RETURN_IF_ERROR(TakeEntry(metadata, name, value));
  return value;
}

}  // namespace forerun
