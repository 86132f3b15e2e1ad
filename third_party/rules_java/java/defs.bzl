# SPDX-License-Identifier: Apache-2.0
"""What Bazel's own packages load from rules_java: the rules that Bazel has built in."""

java_binary = native.java_binary
java_import = native.java_import
java_library = native.java_library
java_proto_library = native.java_proto_library
java_runtime = native.java_runtime
java_toolchain = native.java_toolchain
