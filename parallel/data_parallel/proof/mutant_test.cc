// SPDX-License-Identifier: Apache-2.0
// Linked with a mutant: passes if the random proof finds a fault, and says which property did.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "gtest/gtest.h"
#include "parallel/data_parallel/proof/random_chain.h"

namespace forerun::proof {
namespace {

constexpr uint64_t kCases = 10000;
constexpr int kCaught = 42;

// Ends the process at the first fault.
void RunUntilCaught() {
  for (uint64_t seed = 0; seed < kCases; ++seed) {
    const absl::optional<Fault> fault = RunRandomCase(seed);
    if (!fault.has_value()) continue;
    std::fprintf(stderr, "caught in case %d by \"%s\": %s\n", static_cast<int>(seed),
                 NameOf(fault->property).data(), fault->text.c_str());
    _exit(kCaught);
  }
}

// In a process of its own, because the state machines have checks of their own, which abort.
TEST(Mutant, IsCaught) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    RunUntilCaught();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const bool by_property = WIFEXITED(status) && WEXITSTATUS(status) == kCaught;
  const bool by_check = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  if (by_check) std::fprintf(stderr, "caught by the state machine's own check\n");
  EXPECT_TRUE(by_property || by_check) << "the mutant lives through " << kCases << " cases";
}

}  // namespace
}  // namespace forerun::proof
