# SPDX-License-Identifier: Apache-2.0
"""Options of libraries whose loops over floats should become vector code."""

# Comparisons count as free of side effects, which changes no result, or loops with a choice in them
# would stay scalar. Sanitizers keep their own level.
VECTOR_COPTS = select({
    "//build_defs:clang": [],
    "//conditions:default": [
        "-O3",
        "-fno-trapping-math",
    ],
})
