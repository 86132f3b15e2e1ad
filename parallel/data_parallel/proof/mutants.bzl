# SPDX-License-Identifier: Apache-2.0
"""Mutants: the product with one fault, linked into the same proof, which must find it."""

# What a mutant replaces one of.
_SOURCES = ["bucket_plan", "grad_reduce", "param_sync"]

def _mutated_source_impl(ctx):
    output = ctx.actions.declare_file(ctx.label.name + ".cc")
    arguments = ctx.actions.args()
    arguments.add_all([ctx.file.src, output])
    for find, replacement in ctx.attr.edits.items():
        arguments.add_all([find, replacement])
    ctx.actions.run(
        executable = ctx.executable._mutate,
        arguments = [arguments],
        inputs = [ctx.file.src],
        outputs = [output],
        mnemonic = "Mutate",
    )
    return [DefaultInfo(files = depset([output]))]

_mutated_source = rule(
    implementation = _mutated_source_impl,
    attrs = {
        "src": attr.label(allow_single_file = True),
        "edits": attr.string_dict(),
        "_mutate": attr.label(
            default = "//parallel/data_parallel/proof:mutate",
            executable = True,
            cfg = "exec",
        ),
    },
)

def mutant(name, source, edits):
    """Declares NAME_mutant_test, which passes if the random proof finds the fault.

    Args:
      name: what is wrong.
      source: which source has the fault, without the suffix.
      edits: text that stands exactly once in the source: what replaces it. Several where the
        product has a second line of defence that would hide the fault.
    """
    _mutated_source(
        name = name + "_source",
        testonly = True,
        src = "//parallel/data_parallel:%s.cc" % source,
        edits = edits,
    )
    native.cc_library(
        name = name + "_mutant",
        testonly = True,
        srcs = [name + "_source"],
        copts = ["-w"],  # a fault may leave something unused
        target_compatible_with = select({
            "//build_defs:asan": ["//build_defs:incompatible"],
            "//conditions:default": [],
        }),
        deps = [
            ":chain_headers",
            "//core/base:check",
            "//third_party:absl",
        ],
    )
    native.cc_test(
        name = name + "_mutant_test",
        size = "small",
        tags = ["no-asan"],
        # A mutant tells of the proof, not of memory.
        target_compatible_with = select({
            "//build_defs:asan": ["//build_defs:incompatible"],
            "//conditions:default": [],
        }),
        deps = [":mutant_test_main", name + "_mutant"] +
               ["//parallel/data_parallel:" + s for s in _SOURCES if s != source],
    )
