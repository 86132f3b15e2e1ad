# SPDX-License-Identifier: Apache-2.0
"""Finds CUDA under $CUDA_HOME or /usr/local/cuda. Without it @cuda//:defs.bzl says available = False."""

_LIBS = ["cudart", "cublas", "cublasLt", "cudnn", "nccl"]

def _cuda_libraries_impl(repository_ctx):
    home = repository_ctx.path(repository_ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    found = home.get_child("include").get_child("cuda_runtime.h").exists
    nvcc = home.get_child("bin").get_child("nvcc") if found else None
    repository_ctx.file("defs.bzl", "available = %s\nnvcc = %r\n" % (found, str(nvcc) if found else ""))
    if not found:
        repository_ctx.file("BUILD", """
package(default_visibility = ["@//third_party:__pkg__"])
cc_library(name = "cuda", target_compatible_with = ["@//build_defs:incompatible"])
""")
        return
    repository_ctx.symlink(home.get_child("include"), "include")
    libdir = [home.get_child(d) for d in ["lib64", "lib"] if home.get_child(d).exists][0]
    libs = ["-l" + lib for lib in _LIBS if libdir.get_child("lib%s.so" % lib).exists]
    repository_ctx.file("BUILD", """
package(default_visibility = ["@//third_party:__pkg__"])
cc_library(
    name = "cuda",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    linkopts = ["-L{dir}", "-Wl,-rpath,{dir}"] + {libs},
)
""".format(dir = libdir, libs = libs))

cuda_libraries = repository_rule(
    implementation = _cuda_libraries_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
