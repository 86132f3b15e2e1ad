// SPDX-License-Identifier: Apache-2.0
#include "optim/adamw.h"

#include <cmath>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/random/random.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

struct State {
  std::vector<float> p, m, v, g;

  explicit State(int n) : p(n), m(n), v(n), g(n) {
    FillNormal(RandomKey::Root(1), 0, 1.0, absl::MakeSpan(p));
    FillNormal(RandomKey::Root(2), 0, 0.1, absl::MakeSpan(m));
    FillNormal(RandomKey::Root(3), 0, 0.1, absl::MakeSpan(v));
    for (float& x : v) x = x * x;
    FillNormal(RandomKey::Root(4), 0, 1.0, absl::MakeSpan(g));
  }
  void Step(const AdamWStep& step, int begin, int end) {
    const size_t n = end - begin;
    AdamW({0.9f, 0.95f, 1e-8f}, step, absl::MakeSpan(p).subspan(begin, n),
          absl::MakeSpan(m).subspan(begin, n), absl::MakeSpan(v).subspan(begin, n),
          absl::MakeConstSpan(g).subspan(begin, n));
  }
};

TEST(AdamW, FollowsTheFormulaInDoublePrecision) {
  const AdamWStep step{1e-2f, 0.1f, 0.5f, 3};
  State state(257);
  const State before = state;
  state.Step(step, 0, 257);
  for (int i = 0; i < 257; ++i) {
    const double g = before.g[i] * 0.5;
    const double m = 0.9 * before.m[i] + 0.1 * g;
    const double v = 0.95 * before.v[i] + 0.05 * g * g;
    const double p =
        before.p[i] * (1 - 1e-2 * 0.1) -
        1e-2 * (m / (1 - std::pow(0.9, 3))) / (std::sqrt(v / (1 - std::pow(0.95, 3))) + 1e-8);
    EXPECT_NEAR(state.m[i], m, 1e-6);
    EXPECT_NEAR(state.v[i], v, 1e-6);
    EXPECT_NEAR(state.p[i], p, 2e-6);
  }
}

TEST(AdamW, AnyCutAndThreadCountGiveTheSameBits) {
  const AdamWStep step{1e-3f, 0.1f, 1.0f, 1};
  State whole(40000), parts(40000);
  SetLoopThreads(2);
  whole.Step(step, 0, 40000);
  SetLoopThreads(1);
  for (int begin = 0; begin < 40000; begin += 1003) {
    parts.Step(step, begin, std::min(40000, begin + 1003));
  }
  EXPECT_EQ(whole.p, parts.p);
  EXPECT_EQ(whole.v, parts.v);
}

}  // namespace
}  // namespace forerun
