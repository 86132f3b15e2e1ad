# SPDX-License-Identifier: Apache-2.0
"""What Bazel's own packages load from rules_proto: the rules that Bazel has built in."""

proto_lang_toolchain = native.proto_lang_toolchain
proto_library = native.proto_library
