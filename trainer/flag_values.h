// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace forerun {

// What a flag's text says, read strictly: no clamping, no infinity, no empty value. Throws a
// CLI::ConversionError of one sentence that names the flag.
void ReadFlag(const std::string& flag, const std::string& text, int& value);
void ReadFlag(const std::string& flag, const std::string& text, int64_t& value);
void ReadFlag(const std::string& flag, const std::string& text, double& value);
void ReadFlag(const std::string& flag, const std::string& text, std::string& value);
void ReadFlag(const std::string& flag, const std::string& text, absl::optional<int64_t>& value);

// What --help calls such values.
inline const char* TypeName(int) { return "INT"; }
inline const char* TypeName(int64_t) { return "INT"; }
inline const char* TypeName(double) { return "FLOAT"; }
inline const char* TypeName(const std::string&) { return "TEXT"; }
inline const char* TypeName(const absl::optional<int64_t>&) { return "INT"; }

// A flag for a field without a default, or one whose default `help` tells.
template <typename T>
CLI::Option* AddPlain(CLI::App& app, const std::string& flag, T& field, const std::string& help) {
  return app
      .add_option_function<std::string>(
          flag, [flag, &field](const std::string& text) { ReadFlag(flag, text, field); }, help)
      ->type_name(TypeName(field));
}

// A flag for a field whose value is the default, which --help shows.
template <typename T>
CLI::Option* Add(CLI::App& app, const std::string& flag, T& field, const std::string& help) {
  return AddPlain(app, flag, field, help)->default_str(absl::StrCat(field));
}

}  // namespace forerun
