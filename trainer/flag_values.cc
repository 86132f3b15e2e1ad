// SPDX-License-Identifier: Apache-2.0
#include "trainer/flag_values.h"

#include <cmath>

#include "absl/strings/numbers.h"

namespace forerun {
namespace {

[[noreturn]] void Refuse(const std::string& flag, const std::string& text, const char* rule) {
  if (text.empty()) throw CLI::ConversionError(flag + " has an empty value");
  throw CLI::ConversionError(absl::StrCat(flag, " ", text, " is not ", rule));
}

template <typename Integer>
void ReadInteger(const std::string& flag, const std::string& text, Integer& value) {
  if (absl::SimpleAtoi(text, &value)) return;
  double number = 0.0;
  const bool is_number = absl::SimpleAtod(text, &number);
  Refuse(flag, text, is_number ? "a whole number in the range of this flag" : "a number");
}

}  // namespace

void ReadFlag(const std::string& flag, const std::string& text, int& value) {
  ReadInteger(flag, text, value);
}

void ReadFlag(const std::string& flag, const std::string& text, int64_t& value) {
  ReadInteger(flag, text, value);
}

void ReadFlag(const std::string& flag, const std::string& text, double& value) {
  if (!absl::SimpleAtod(text, &value)) Refuse(flag, text, "a number");
  if (!std::isfinite(value)) Refuse(flag, text, "a number of finite size");
}

void ReadFlag(const std::string& flag, const std::string& text, std::string& value) {
  if (text.empty()) Refuse(flag, text, "");
  value = text;
}

void ReadFlag(const std::string& flag, const std::string& text, absl::optional<int64_t>& value) {
  ReadInteger(flag, text, value.emplace());
}

}  // namespace forerun
