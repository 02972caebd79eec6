"""Parameters out of torch's state dicts, as plain arrays: names and layouts; torch is not needed.

    torch           here        layout
    weight          w           Linear [out,in] → [in,out]; Conv [out,in,*k] → [*k,in,out]
    weight          scale       of normalisation layers
    bias            b, shift
    running_mean    mean        in the state of BatchNorm
    running_var     variance

Modules are matched by their names where those are equal ("block.0" is block/0), else by order:
the k-th module of a kind (normalisation, linear, 1-d to 3-d convolution) to the k-th layer of
that kind.  A state dict does not tell a transposed convolution from another one: give those by
hand.
Relies on `leaves.py`.
"""

from __future__ import annotations

import re

import numpy as np

from .. import tree as pytree
from ..bf16 import foreign_words, values_of
from ..errors import ArgumentError, DataError
from .leaves import fitted, name_of, shortened

ROLES = {"w": "weight", "scale": "weight", "b": "bias", "shift": "bias", "mean": "running_mean",
         "variance": "running_var"}
IGNORED = "num_batches_tracked"


def from_torch_state_dict(mapping, like, *, names=None, flattened=None):
    """The arrays of a torch state dict in the structure of `like`, with its dtypes.

    mapping: name → array ("layers.0.weight"), in the order of the modules; of torch's own tensors,
    {k: v.numpy() for k, v in model.state_dict().items()}.
    like: params, or the pair (params, state) that `init` gives.
    names: {"features.0": "conv1", …}, torch's module to layer path, for modules that neither name
    nor order matches; "" is the outermost module.
    flattened: {"fc": (c, h, w)} for a Linear right behind a Flatten of torch's [n,c,h,w]: its
    inputs are reordered to the channels-last order here.
    Raises DataError naming all leaves that are missing, left over, or of another shape, and
    ArgumentError for `names` or `flattened` of modules that are not there.

    >>> like = {"dense1": {"w": np.zeros((3, 2)), "b": np.zeros(2)}}
    >>> found = from_torch_state_dict({"0.weight": np.ones((2, 3)), "0.bias": np.ones(2)}, like)
    >>> found["dense1"]["w"].shape
    (3, 2)
    """
    given = torch_modules(mapping)
    layers = layers_of(like)
    flattened = flattened or {}
    check_known(flattened, given, "flattened", "modules of the state dict")
    match = matched(given, layers, names or {})
    out, problems = {}, [f"left over {module}: {', '.join(given[module])}"
                         for module in given if module not in match.values()]
    for layer, leaves in layers.items():
        module = given.get(match.get(layer), {})
        for key, (name, leaf) in leaves.items():
            if ROLES.get(key) not in module:
                problems.append(f"missing   {name}{list(leaf.shape)}")
                continue
            a = laid_out(module[ROLES[key]], key, leaf, flattened.get(match[layer]))
            out[name] = a.astype(leaf.dtype)
            if a.shape != tuple(leaf.shape):
                theirs = f"{match[layer]}.{ROLES[key]}{list(module[ROLES[key]].shape)}"
                problems.append(f"different {theirs}, {name} has {list(leaf.shape)}")
        problems += [f"left over {match[layer]}.{role}{list(a.shape)}" for role, a in module.items()
                     if role not in [ROLES.get(key) for key in leaves]]
    if problems:
        raise DataError("the state dict does not fit `like`.", given=shortened(problems, 20),
                        expected="one module per layer, of the same sizes",
                        fix="names={\"torch.module\": \"layer/path\", …} where the order differs")
    return fitted(out, like)


def torch_modules(mapping):
    """module → {role: array}, in the mapping's order, without counters."""
    out = {}
    for name, value in mapping.items():
        module, _, role = name.rpartition(".")
        if role != IGNORED:
            words = foreign_words(value)
            a = np.asarray(value) if words is None else values_of(words)
            out.setdefault(module, {})[role] = a
    return out


def layers_of(like):
    """layer path → {key: (name of the leaf, leaf)}; params and state of a pair stand together."""
    pair = type(like) is tuple and len(like) == 2
    out = {}
    for path, leaf in pytree.flatten_with_path(like)[0]:
        inner = path[1:] if pair else path
        layer, key = name_of(inner[:-1]), name_of(inner[-1:])
        out.setdefault(layer, {})[key] = name_of(path), leaf
    return out


def matched(given, layers, names):
    """layer path → module: by `names`, then by equal names, then by order within a kind."""
    check_known(names, given, "names", "modules of the state dict")
    check_known(names.values(), layers, "names", "layers of `like`")
    match = {layer: module for module, layer in names.items()}
    for layer in layers:
        if layer.replace("/", ".") in given and layer not in match:
            match[layer] = layer.replace("/", ".")
    taken = set(match.values())
    free = {}
    for module, roles in given.items():
        if module not in taken:
            free.setdefault(torch_kind(roles), []).append(module)
    for layer in sorted(layers, key=natural):
        candidates = free.get(layer_kind(layers[layer]), [])
        if layer not in match and candidates:
            match[layer] = candidates.pop(0)
    return match


def check_known(wanted, known, what, of):
    """Raises ArgumentError for names that are not there."""
    strange = [name for name in wanted if name not in known]
    if strange:
        raise ArgumentError(f"{what} has {', '.join(map(repr, strange))}, which are not {of}.",
                            given=", ".join(map(repr, known)))


def torch_kind(roles):
    """How many axes the weight has: 1 normalisation, 2 linear, more: convolution."""
    return roles["weight"].ndim if "weight" in roles else 0


def layer_kind(leaves):
    """The same for a layer here."""
    return next((leaf.ndim for key, (_, leaf) in leaves.items() if ROLES.get(key) == "weight"), 0)


def natural(name):
    """A sort key by which conv2 stands before conv10."""
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part)
            for part in re.split(r"(\d+)", name)]


def laid_out(a, key, leaf, flattened):
    """torch's array in the layout of a leaf here."""
    if key != "w" or a.ndim < 2 or a.ndim != leaf.ndim:
        return a
    if flattened is not None and a.ndim == 2 and a.shape[1] == np.prod(flattened):
        a = np.moveaxis(a.reshape(len(a), *flattened), 1, -1).reshape(a.shape)
    return np.moveaxis(a, (0, 1), (-1, -2))                # [out,in,*k] → [*k,in,out]
