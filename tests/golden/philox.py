# SPDX-License-Identifier: Apache-2.0
"""Counter-based random numbers as core/random/random.h documents them, written from that text."""

import numpy as np

MASK = (1 << 64) - 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def key(seed, *folds):
    """Root(seed).Fold(folds[0])..., each a string or a number."""
    value = mix(seed)
    for fold in folds:
        if isinstance(fold, str):
            number = 0xCBF29CE484222325
            for byte in fold.encode():
                number = ((number ^ byte) * 0x100000001B3) & MASK
        else:
            number = fold
        value = mix(value ^ number)
    return value


def philox(key_value, counters):
    """Philox4x32-10: the four words of each counter, [len(counters), 4]."""
    low = np.uint64(0xFFFFFFFF)
    counters = np.asarray(counters, dtype=np.uint64)
    x = [counters & low, counters >> np.uint64(32), np.zeros_like(counters), np.zeros_like(counters)]
    k0, k1 = key_value & 0xFFFFFFFF, key_value >> 32
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * x[0]
        p1 = np.uint64(0xCD9E8D57) * x[2]
        x = [(p1 >> np.uint64(32)) ^ x[1] ^ np.uint64(k0), p1 & low,
             (p0 >> np.uint64(32)) ^ x[3] ^ np.uint64(k1), p0 & low]
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(x, axis=1)


def normal(key_value, count, stddev):
    """Normal values of the indices [0, count), rounded to fp32, as doubles."""
    words = philox(key_value, np.arange((count + 3) // 4))
    u = (words.astype(np.float64) + 0.5) / 2.0**32
    out = np.empty_like(u)
    for pair in (0, 2):
        radius = np.sqrt(-2.0 * np.log(u[:, pair]))
        angle = 2.0 * np.pi * u[:, pair + 1]
        out[:, pair], out[:, pair + 1] = radius * np.cos(angle), radius * np.sin(angle)
    return (out.reshape(-1)[:count] * stddev).astype(np.float32).astype(np.float64)


def permutation_at(key_value, count, index):
    """Element `index` of a keyed permutation of [0, count)."""
    half_bits = 1
    while half_bits < 31 and (1 << (2 * half_bits)) < count:
        half_bits += 1
    mask = (1 << half_bits) - 1
    while True:
        left, right = index >> half_bits, index & mask
        for turn in range(6):
            word = int(philox(key_value, [(turn << 32) | right])[0, 0])
            left, right = right, left ^ (word & mask)
        index = (left << half_bits) | right
        if index < count:
            return index
