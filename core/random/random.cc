// SPDX-License-Identifier: Apache-2.0
#include "core/random/random.h"

#include <cmath>

#include "core/base/check.h"

namespace forerun {
namespace {

constexpr double kPi = 3.141592653589793238462643383279502884;

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t Fnv1a(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// The normal values of one block, in index order.
std::array<double, 4> NormalBlock(uint64_t key, uint64_t counter) {
  const std::array<uint32_t, 4> words = Philox(key, counter);
  std::array<double, 4> normals;
  for (int pair = 0; pair < 4; pair += 2) {
    const double a = (words[pair] + 0.5) * 0x1p-32;
    const double b = (words[pair + 1] + 0.5) * 0x1p-32;
    const double radius = std::sqrt(-2.0 * std::log(a));
    normals[pair] = radius * std::cos(2.0 * kPi * b);
    normals[pair + 1] = radius * std::sin(2.0 * kPi * b);
  }
  return normals;
}

}  // namespace

RandomKey RandomKey::Root(uint64_t seed) { return RandomKey(Mix(seed)); }
RandomKey RandomKey::Fold(uint64_t number) const { return RandomKey(Mix(value_ ^ number)); }
RandomKey RandomKey::Fold(absl::string_view name) const { return Fold(Fnv1a(name)); }

std::array<uint32_t, 4> Philox(uint64_t key, uint64_t counter) {
  std::array<uint32_t, 4> x = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                               0, 0};
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * x[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * x[2];
    x = {static_cast<uint32_t>(product1 >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return x;
}

float UniformAt(RandomKey key, uint64_t index) {
  return static_cast<float>(Philox(key.value(), index / 4)[index % 4] >> 8) * 0x1p-24f;
}

void FillNormal(RandomKey key, uint64_t begin, double stddev, absl::Span<float> out) {
  uint64_t block = ~uint64_t{0};
  std::array<double, 4> normals{};
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t index = begin + i;
    if (index / 4 != block) {
      block = index / 4;
      normals = NormalBlock(key.value(), block);
    }
    out[i] = static_cast<float>(normals[index % 4] * stddev);
  }
}

uint64_t PermutationAt(RandomKey key, uint64_t count, uint64_t index) {
  FR_CHECK_LT(index, count) << "permutation index";
  int half_bits = 1;
  while (half_bits < 31 && (uint64_t{1} << (2 * half_bits)) < count) ++half_bits;
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  // Cycle walking: the domain is under four times `count`, so four turns are expected at most.
  do {
    uint64_t left = index >> half_bits;
    uint64_t right = index & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      const uint64_t next = left ^ (Philox(key.value(), (round << 32) | right)[0] & mask);
      left = right;
      right = next;
    }
    index = (left << half_bits) | right;
  } while (index >= count);
  return index;
}

}  // namespace forerun
