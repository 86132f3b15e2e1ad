// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/uniforms.h"

#include <algorithm>

namespace forerun::cpu {
namespace {

constexpr int64_t kCounters = 32;  // Philox blocks at a time, four words each
constexpr int64_t kWords = 4 * kCounters;

// The words of `kCounters` consecutive Philox4x32-10 blocks, word w of block c at words[w][c].
// core/random/random.h states the generator.
void PhiloxBlocks(uint64_t key, uint64_t first, uint32_t words[4][kCounters]) {
  for (int64_t c = 0; c < kCounters; ++c) {
    words[0][c] = static_cast<uint32_t>(first + c);
    words[1][c] = static_cast<uint32_t>((first + c) >> 32);
    words[2][c] = 0;
    words[3][c] = 0;
  }
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int64_t c = 0; c < kCounters; ++c) {
      const uint64_t product0 = uint64_t{0xD2511F53u} * words[0][c];
      const uint64_t product1 = uint64_t{0xCD9E8D57u} * words[2][c];
      words[0][c] = static_cast<uint32_t>(product1 >> 32) ^ words[1][c] ^ key0;
      words[1][c] = static_cast<uint32_t>(product1);
      words[2][c] = static_cast<uint32_t>(product0 >> 32) ^ words[3][c] ^ key1;
      words[3][c] = static_cast<uint32_t>(product0);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

}  // namespace

void Uniforms(RandomKey key, uint64_t begin, int64_t count, float* out) {
  uint32_t words[4][kCounters];
  float uniforms[kWords];
  uint64_t block = begin / 4;
  int64_t skip = static_cast<int64_t>(begin % 4);
  for (int64_t done = 0; done < count; block += kCounters, skip = 0) {
    PhiloxBlocks(key.value(), block, words);
    for (int64_t c = 0; c < kCounters; ++c) {
      for (int64_t w = 0; w < 4; ++w) {
        uniforms[4 * c + w] = static_cast<float>(static_cast<int32_t>(words[w][c] >> 8)) * 0x1p-24f;
      }
    }
    const int64_t here = std::min(count - done, kWords - skip);
    std::copy(uniforms + skip, uniforms + skip + here, out + done);
    done += here;
  }
}

}  // namespace forerun::cpu
