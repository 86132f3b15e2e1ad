# SPDX-License-Identifier: Apache-2.0
"""Compiler options of targets with OpenMP pragmas; they also depend on //third_party:openmp."""

OPENMP_COPTS = select({
    "//build_defs:clang": [],
    "//conditions:default": ["-fopenmp"],
})
