# SPDX-License-Identifier: Apache-2.0
"""Finds the libraries that the operating system provides, and their versions.

Headers lie on the compiler's default path, so a library here is no more than what to link. A missing
library ends the build with one sentence that names its Debian package.
"""

_ABSL = [
    # Each library before those that it needs.
    "status",
    "statusor",
    "cord",
    "cordz_info",
    "cordz_handle",
    "cordz_functions",
    "cord_internal",
    "exponential_biased",
    "hash",
    "city",
    "low_level_hash",
    "raw_hash_set",
    "hashtablez_sampler",
    "synchronization",
    "graphcycles_internal",
    "symbolize",
    "stacktrace",
    "debugging_internal",
    "demangle_internal",
    "malloc_internal",
    "strerror",
    "str_format_internal",
    "time",
    "civil_time",
    "time_zone",
    "strings",
    "strings_internal",
    "int128",
    "bad_any_cast_impl",
    "bad_optional_access",
    "bad_variant_access",
    "throw_delegate",
    "base",
    "spinlock_wait",
    "raw_logging_internal",
    "log_severity",
]

def _library(package, header, libs = [], version_header = None, macros = [], pkg_config = None, linkopts = []):
    """A library: its package, a header that proves it is there, what to link, where its version stands.

    The version is either made of macros in version_header or taken from a pkg-config file.
    """
    return struct(
        package = package,
        header = header,
        libs = libs,
        version_header = version_header or header,
        macros = macros,
        pkg_config = pkg_config,
        linkopts = linkopts,
    )

_LIBRARIES = {
    "absl": _library(
        package = "libabsl-dev",
        header = "absl/base/config.h",
        libs = ["absl_" + name for name in _ABSL],
        macros = ["ABSL_LTS_RELEASE_VERSION", "ABSL_LTS_RELEASE_PATCH_LEVEL"],
        linkopts = ["-pthread"],
    ),
    "benchmark": _library(
        package = "libbenchmark-dev",
        header = "benchmark/benchmark.h",
        libs = ["benchmark"],
        pkg_config = "benchmark",
        linkopts = ["-pthread"],
    ),
    "cli11": _library(
        package = "libcli11-dev",
        header = "CLI/CLI.hpp",
        version_header = "CLI/Version.hpp",
        macros = ["CLI11_VERSION_MAJOR", "CLI11_VERSION_MINOR", "CLI11_VERSION_PATCH"],
    ),
    "gmock": _library(
        package = "libgmock-dev",
        header = "gmock/gmock.h",
        libs = ["gmock"],
        pkg_config = "gmock",
    ),
    "gtest": _library(
        package = "libgtest-dev",
        header = "gtest/gtest.h",
        libs = ["gtest"],
        pkg_config = "gtest",
        linkopts = ["-pthread"],
    ),
    "gtest_main": _library(
        package = "libgtest-dev",
        header = "gtest/gtest.h",
        libs = ["gtest_main"],
        pkg_config = "gtest_main",
    ),
    "highway": _library(
        package = "libhwy-dev",
        header = "hwy/highway.h",
        libs = ["hwy"],
        pkg_config = "libhwy",
    ),
    "json": _library(
        package = "nlohmann-json3-dev",
        header = "nlohmann/json.hpp",
        version_header = "nlohmann/detail/abi_macros.hpp",
        macros = ["NLOHMANN_JSON_VERSION_MAJOR", "NLOHMANN_JSON_VERSION_MINOR", "NLOHMANN_JSON_VERSION_PATCH"],
    ),
    "onednn": _library(
        package = "libdnnl-dev",
        header = "oneapi/dnnl/dnnl.hpp",
        libs = ["dnnl"],
        version_header = "oneapi/dnnl/dnnl_version.h",
        macros = ["DNNL_VERSION_MAJOR", "DNNL_VERSION_MINOR", "DNNL_VERSION_PATCH"],
    ),
    "xxhash": _library(
        package = "libxxhash-dev",
        header = "xxhash.h",
        libs = ["xxhash"],
        macros = ["XXH_VERSION_MAJOR", "XXH_VERSION_MINOR", "XXH_VERSION_RELEASE"],
    ),
}

def _missing(name, what, package):
    fail("Forerun needs %s (%s), which is not installed: run 'apt-get install %s'." % (name, what, package))

def _find_library(repository_ctx, lib):
    """The path of lib<lib>.so or .a as the compiler finds it, or None."""
    for suffix in [".so", ".a"]:
        file = "lib" + lib + suffix
        result = repository_ctx.execute(["gcc", "-print-file-name=" + file])
        if result.return_code == 0 and result.stdout.strip() != file:
            return repository_ctx.path(result.stdout.strip())
    return None

def _find_header(repository_ctx, header):
    for root in ["/usr/local/include", "/usr/include", "/usr/include/x86_64-linux-gnu"]:
        path = repository_ctx.path(root + "/" + header)
        if path.exists:
            return path
    return None

def _macro(text, name):
    """The value of '#define name value' in text, or '?'."""
    for line in text.split("\n"):
        words = line.replace("\t", " ").split(" ")
        words = [word for word in words if word]
        if len(words) >= 3 and words[0] == "#define" and words[1] == name:
            return words[2]
    return "?"

def _version(repository_ctx, library, directory):
    if library.macros:
        text = repository_ctx.read(_find_header(repository_ctx, library.version_header))
        return ".".join([_macro(text, name) for name in library.macros])
    file = directory.get_child("pkgconfig").get_child(library.pkg_config + ".pc")
    if file.exists:
        for line in repository_ctx.read(file).split("\n"):
            if line.startswith("Version:"):
                return line[len("Version:"):].strip()
    return "?"

def _system_libraries_impl(repository_ctx):
    if not repository_ctx.which("gcc"):
        _missing("a C++ compiler", "gcc", "g++")
    build = [
        "# Generated by //third_party:system_libraries.bzl.",
        "package(default_visibility = [\"@//third_party:__pkg__\"])",
        "licenses([\"notice\"])",
        "exports_files([\"versions.txt\"])",
    ]
    versions = []
    for name, library in _LIBRARIES.items():
        if not _find_header(repository_ctx, library.header):
            _missing(name, library.header, library.package)
        directory = None
        for lib in library.libs:
            path = _find_library(repository_ctx, lib)
            if not path:
                _missing(name, "lib" + lib, library.package)
            directory = path.dirname
        linkopts = ["-l" + lib for lib in library.libs] + library.linkopts
        build.append("cc_library(name = %r, linkopts = %r)" % (name, linkopts))
        versions.append("%s %s" % (name, _version(repository_ctx, library, directory)))
    repository_ctx.file("BUILD", "\n".join(build) + "\n")
    repository_ctx.file("versions.txt", "\n".join(versions) + "\n")

system_libraries = repository_rule(
    implementation = _system_libraries_impl,
    environ = ["PATH"],
    local = True,
)
