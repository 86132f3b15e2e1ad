# SPDX-License-Identifier: Apache-2.0
"""The project's own sources as data of a test: //tests/architecture reads them as text.

A filegroup cannot cross package boundaries, so this repository links every source under a name that makes no
package (BUILD becomes BUILD.txt). It is made anew whenever a BUILD file changes, and without a change to one
no source joins the build.
"""

load("//build_defs:layers.bzl", "ALLOWED")

_DIRECTORIES = [
    "bench",
    "build_defs",
    "checkpoint",
    "core",
    "data",
    "examples",
    "models",
    "optim",
    "parallel",
    "tests",
    "third_party",
    "tools",
    "trainer",
]

def _source_tree_impl(repository_ctx):
    root = repository_ctx.path(Label("@//:WORKSPACE")).dirname
    found = repository_ctx.execute(
        ["find"] + [d for d in _DIRECTORIES if root.get_child(d).exists] +
        ["-type", "f"] +
        ["(", "-name", "BUILD", "-o", "-name", "*.bzl", "-o", "-name", "*.h", "-o", "-name", "*.cc"] +
        ["-o", "-name", "*.cu", "-o", "-name", "*.sh", ")"],
        working_directory = str(root),
    )
    if found.return_code != 0:
        fail("The sources cannot be listed: " + found.stderr)
    files = sorted([line for line in found.stdout.split("\n") if line])

    # Asking for the path of a label makes this repository depend on that file.
    for file in files:
        if file.endswith("/BUILD") and not file.startswith("third_party/"):
            repository_ctx.path(Label("@//%s:BUILD" % file[:-len("/BUILD")]))
    for file in files:
        repository_ctx.symlink("%s/%s" % (root, file), "tree/%s.txt" % file)
    repository_ctx.file("files.txt", "".join([file + "\n" for file in files]))
    repository_ctx.file("allowed.txt", "".join([
        " ".join([layer] + used) + "\n"
        for layer, used in ALLOWED.items()
    ]))
    repository_ctx.file("BUILD", """
package(default_visibility = ["@//tests/architecture:__pkg__"])
exports_files(["files.txt", "allowed.txt"])
filegroup(name = "sources", srcs = glob(["tree/**"]))
""")

source_tree = repository_rule(
    implementation = _source_tree_impl,
    local = True,
)
