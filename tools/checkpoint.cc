// SPDX-License-Identifier: Apache-2.0
// Looks into a checkpoint: ls lists what it holds, verify reads every byte, export writes its
// weights as one file for other programs.
#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "core/base/flag_names.h"
#include "core/base/status_macros.h"
#include "core/base/user_path.h"
#include "core/tensor/dtype.h"
#include "tools/hugging_face.h"

namespace forerun {
namespace {

struct Options {
  std::string folder;
  absl::optional<int64_t> ckpt_step;
  std::string output;
};

absl::StatusOr<std::unique_ptr<Checkpoint>> Open(const Options& options) {
  return Checkpoint::Open(ResolveUserPath(options.folder), options.ckpt_step);
}

absl::Status List(const Options& options) {
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, Open(options));
  std::printf("%s: iteration %lld, saved by %lld ranks\n", checkpoint->path().c_str(),
              static_cast<long long>(checkpoint->iteration()),
              static_cast<long long>(checkpoint->world_size()));
  for (const auto& [name, text] : checkpoint->metadata()) {
    std::printf("  %s: %s\n", name.c_str(), text.c_str());
  }
  int64_t bytes = 0;
  for (const SavedTensor& tensor : checkpoint->tensors()) {
    bytes += tensor.shape.numel() * SizeOf(tensor.dtype);
    std::printf("%-60s %-6s %s\n", tensor.name.c_str(), std::string(NameOf(tensor.dtype)).c_str(),
                tensor.shape.ToString().c_str());
  }
  std::printf("%lld tensors, %lld bytes\n", static_cast<long long>(checkpoint->tensors().size()),
              static_cast<long long>(bytes));
  return absl::OkStatus();
}

absl::Status Verify(const Options& options) {
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, Open(options));
  FR_RETURN_IF_ERROR(checkpoint->Verify());
  std::printf("%s: every piece matches its hash, every element of %lld tensors is there once\n",
              checkpoint->path().c_str(), static_cast<long long>(checkpoint->tensors().size()));
  return absl::OkStatus();
}

absl::Status Export(const Options& options) {
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, Open(options));
  const std::string path = ResolveUserPath(options.output);
  FR_ASSIGN_OR_RETURN(const std::string family, ExportWeights(*checkpoint, path));
  std::printf("wrote %s with %s names\n", path.c_str(), family.c_str());
  return absl::OkStatus();
}

CLI::App* AddCommand(CLI::App& app, const std::string& name, const std::string& what,
                     Options& options) {
  CLI::App* command = app.add_subcommand(name, what);
  command->add_option("folder", options.folder, "the folder that --save named")->required();
  command->add_option("--ckpt-step", options.ckpt_step, "iteration; default the newest");
  return command;
}

int Fail(absl::string_view what) {
  std::fprintf(stderr, "checkpoint: %.*s\n", static_cast<int>(what.size()), what.data());
  return 1;
}

int Main(std::vector<std::string> arguments) {
  Options options;
  CLI::App app("Looks into a checkpoint.", "checkpoint");
  app.require_subcommand(1);
  CLI::App* list = AddCommand(app, "ls", "iteration, layout, tensors with shapes", options);
  CLI::App* verify = AddCommand(app, "verify", "reads every byte", options);
  CLI::App* write = AddCommand(app, "export", "weights as one safetensors file", options);
  write->add_option("--output", options.output, "the file to write")->required();
  arguments = NormalizeFlagNames(arguments);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", app.help().c_str());
    return 0;
  } catch (const CLI::ParseError& error) {
    return Fail(error.what());
  }
  const absl::Status status = list->parsed()     ? List(options)
                              : verify->parsed() ? Verify(options)
                                                 : Export(options);
  return status.ok() ? 0 : Fail(status.message());
}

}  // namespace
}  // namespace forerun

int main(int argc, char** argv) {
  return forerun::Main(std::vector<std::string>(argv + 1, argv + argc));
}
