# SPDX-License-Identifier: Apache-2.0
"""Which layer may depend on which. The one table behind visibility and //tests/architecture."""

_CORE = [
    "core/base",
    "core/device",
    "core/random",
    "core/tensor",
    "core/ops",
    "core/autograd",
    "core/nn",
]

_COMM = ["parallel/comm", "parallel/topology"]

_BELOW_LEAVES = _CORE + _COMM + [
    "parallel/tensor_parallel",
    "parallel/data_parallel",
    "parallel/pipeline",
    "models",
    "optim",
    "checkpoint",
    "data",
]

# layer: the layers that it may use, itself apart.
ALLOWED = {
    "core/base": [],
    "core/device": ["core/base"],
    "core/random": ["core/base"],
    "core/tensor": ["core/base", "core/device", "core/random"],
    "core/ops": ["core/base", "core/device", "core/random", "core/tensor"],
    "core/autograd": ["core/base", "core/device", "core/random", "core/tensor", "core/ops"],
    "core/nn": ["core/base", "core/device", "core/random", "core/tensor", "core/ops", "core/autograd"],
    # Ranks and messages; no layers, no tape.
    "parallel/comm": ["core/base", "core/device", "core/random", "core/tensor", "core/ops"],
    "parallel/topology": ["core/base", "core/device", "core/random", "core/tensor", "core/ops", "parallel/comm"],
    "parallel/tensor_parallel": _CORE + _COMM,
    "parallel/data_parallel": _CORE + _COMM,
    "parallel/pipeline": _CORE + _COMM,
    "models": _CORE + _COMM + ["parallel/tensor_parallel"],
    # Sees buckets, never a model.
    "optim": _CORE + _COMM + ["parallel/data_parallel"],
    # Sees names, boxes and tensors; it is handed a barrier as a function.
    "checkpoint": ["core/base", "core/device", "core/tensor"],
    "data": ["core/base", "core/random", "core/tensor"],
    "trainer": _BELOW_LEAVES,
    "bench": _BELOW_LEAVES + ["trainer"],
    "tests": _BELOW_LEAVES + ["trainer"],
    "tools": _BELOW_LEAVES + ["trainer"],
    "examples": _BELOW_LEAVES + ["trainer"],
}

def layer_groups():
    """Declares a package_group users_of_<layer> for each layer that another one may use."""
    for layer in _BELOW_LEAVES + ["trainer"]:
        users = [user for user, used in ALLOWED.items() if user == layer or layer in used]
        name = layer if layer.startswith("core/") or layer in _COMM else layer.split("/")[-1]
        native.package_group(
            name = "users_of_" + name.replace("/", "_"),
            packages = ["//%s/..." % user for user in users],
        )
