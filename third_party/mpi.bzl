# SPDX-License-Identifier: Apache-2.0
"""Finds Open MPI under $MPI_HOME or where Debian puts it. Without it @mpi//:defs.bzl says available = False."""

_DEBIAN = "/usr/lib/x86_64-linux-gnu/openmpi"

def _mpi_libraries_impl(repository_ctx):
    home = repository_ctx.path(repository_ctx.os.environ.get("MPI_HOME", _DEBIAN))
    found = home.get_child("include").get_child("mpi.h").exists
    repository_ctx.file("defs.bzl", "available = %s\n" % found)
    if not found:
        repository_ctx.file("BUILD", """
package(default_visibility = ["@//third_party:__pkg__"])
cc_library(name = "mpi", target_compatible_with = ["@//build_defs:incompatible"])
""")
        return
    repository_ctx.symlink(home.get_child("include"), "include")
    repository_ctx.file("BUILD", """
package(default_visibility = ["@//third_party:__pkg__"])
cc_library(
    name = "mpi",
    hdrs = glob(["include/**/*.h"]),
    # The C++ bindings were removed from MPI; without this mpi.h still includes them.
    defines = ["OMPI_SKIP_MPICXX"],
    includes = ["include"],
    linkopts = ["-L{home}/lib", "-lmpi"],
)
""".format(home = home))

mpi_libraries = repository_rule(
    implementation = _mpi_libraries_impl,
    environ = ["MPI_HOME"],
    local = True,
)
