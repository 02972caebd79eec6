"""The leaves of a pytree as named NumPy arrays, and back: what all file formats share.

Relies on `tree.py` for paths; `safetensors.py`, `npz.py`, `checkpoint.py`, `torch.py` rely on it.
"""

from __future__ import annotations

import numpy as np

from .. import tree as pytree
from ..bf16 import BF16, WORD
from ..core import Array, WordArray
from ..errors import ArgumentError, DataError
from ..text import noun_of
from ..types import SCALARS, SHORT, default_complex, default_float, default_int

NAMES = {dtype: short.upper() for dtype, short in SHORT.items()}       # F32, I64, BOOL, …
DTYPES = {name: dtype for dtype, name in NAMES.items()}
MAX_AXES = 32              # NumPy 1 has no more


def named_arrays(tree):
    """The leaves as NumPy arrays, by name; those of bf16 as Arrays of fgrad."""
    out = {}
    for path, leaf in pytree.flatten_with_path(tree)[0]:
        name = name_of(path)
        if name in out or name == "__metadata__":
            where = pytree.path_text("tree", path)
            raise ArgumentError(f"the name {name!r} cannot be given to {where}.",
                                given="another leaf with this name" if name in out
                                else "a name of the format's own", fix="rename the key")
        out[name] = as_array(leaf, path)
    return out


def name_of(path):
    """The name of a leaf in the file: the keys of its path.

    >>> name_of(("layers", 0, ".w"))
    'layers/0/w'
    """
    for key in path:
        if not isinstance(key, (str, int)):
            raise ArgumentError(f"a key of type {type(key).__name__} has no name in a file.",
                                given=pytree.path_text("tree", path), expected="str and int keys")
    return "/".join(str(key).removeprefix(".") for key in path)


def as_array(leaf, path):
    """A leaf as a NumPy array of a dtype that the format has."""
    if getattr(leaf, "dtype", None) == BF16:
        return WordArray(leaf.words if isinstance(leaf, Array) else np.asarray(leaf).view(WORD))
    try:
        a = np.asarray(leaf, number_dtype(leaf))
    except OverflowError:
        raise ArgumentError(f"{pytree.path_text('tree', path)} is too large for {default_int()}.",
                            given=str(leaf), fix="np.int64(…) around it") from None
    if a.dtype.newbyteorder("=") not in NAMES:
        raise ArgumentError(f"{pytree.path_text('tree', path)} cannot be saved.",
                            given=f"{noun_of(leaf)} of dtype {a.dtype}",
                            expected="bool, integers, floats or complex numbers")
    return a


def number_dtype(leaf):
    """The dtype in which a Python number is stored; None for anything else."""
    if type(leaf) is complex:
        return default_complex()
    if type(leaf) not in SCALARS:
        return None
    return {bool: np.dtype(bool), int: default_int(), float: default_float()}[type(leaf)]


# ---------------------------------------------------------------------------- from names to a tree

def nested(path, arrays):
    """Nested dicts, from names split at "/"; the array itself when its name is empty."""
    if list(arrays) == [""]:
        return arrays[""]
    out = {}
    for name, a in arrays.items():
        *outer, last = name.split("/")
        at = out
        for key in outer:
            at = at.setdefault(key, {})
            if not isinstance(at, dict):
                break
        if not isinstance(at, dict) or last in at:
            raise DataError(f"{path} has a leaf {name!r} in the place of another one.",
                            fix="load with like=, which does not split names")
        at[last] = a
    return out


def fitted(arrays, like):
    """The tree of the structure of `like`, with these arrays, which fit it."""
    pairs, structure = pytree.flatten_with_path(like)
    return pytree.unflatten(structure, [as_like(arrays[name_of(p)], leaf) for p, leaf in pairs])


def as_like(a, leaf):
    """The array, or a Python number where `leaf` is one."""
    return a.item() if type(leaf) in SCALARS else a


def check_fits(path, found, like):
    """Raises DataError unless the file holds just the leaves of `like`, by name, shape and dtype.

    found: name → (dtype as F32, shape), as the file has them.
    """
    wanted = {name_of(p): kind_of(leaf) for p, leaf in pytree.flatten_with_path(like)[0]}
    missing = [f"missing   {name}: {text(k)}" for name, k in wanted.items() if name not in found]
    extra = [f"extra     {name}: {text(k)}" for name, k in found.items() if name not in wanted]
    unlike = [f"different {name}: {text(found[name])}, like has {text(k)}"
              for name, k in wanted.items() if name in found and found[name] != k]
    problems = missing + extra + unlike
    if problems:
        raise DataError(f"{path} does not fit `like`: leaves: {len(missing)} missing, "
                        f"{len(extra)} extra, {len(unlike)} different.",
                        given=shortened(problems, 20),
                        fix="build `like` with the configuration that was saved")


def shortened(lines, n):
    """The first n lines, and how many more there are."""
    return lines if len(lines) <= n else [*lines[:n], f"… and {len(lines) - n} more"]


def kind_of(leaf):
    """(dtype, shape) of a leaf of `like`."""
    if hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
        dtype = BF16 if leaf.dtype == BF16 else np.dtype(leaf.dtype)
        return NAMES.get(dtype, str(dtype)), tuple(leaf.shape)
    if type(leaf) in SCALARS:
        return NAMES[number_dtype(leaf)], ()
    a = np.asarray(leaf)
    return NAMES.get(a.dtype, str(a.dtype)), a.shape


def text(kind):
    """A (dtype, shape) pair as f32[8,3]."""
    return f"{kind[0].lower()}[{','.join(map(str, kind[1]))}]"
