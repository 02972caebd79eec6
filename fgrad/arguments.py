"""What transformations take and give: which arguments are chosen, which leaves are arrays, and
what is said when something does not fit.

Relies on core and pytrees; `transforms.py` and `custom.py` rely on it.
"""

from __future__ import annotations

import enum
import functools
import inspect
import types

import numpy as np

from . import source, text, tree
from .bf16 import BF16
from .core import Array, Primitive, Value, array_in, as_value
from .errors import ArgumentError, AxisError, DtypeError, GradientError, ShapeError
from .text import noun_of
from .types import (
    BOOL, F64, I64, INEXACT_KINDS, SCALARS, SHORT, ArrayType, default_complex, default_for,
    dtype_of_scalar, is_known)

IN_FULL = {bool: BOOL, int: I64, float: F64}       # dtypes that keep all digits


# ---------------------------------------------------------------------------- leaves

def is_array(x):
    """Is the leaf an array or a number, which transformations see?  Others reach the function as
    they are.
    """
    kind = x.__class__
    return (kind is Array or kind in SCALARS or kind is complex or isinstance(x, Value)
            or isinstance(x, (np.ndarray, np.generic)) and is_known(x.dtype))


def is_float(x):
    """Is the leaf an array of floats, or a float, complex ones too: what has a derivative?"""
    kind = x.__class__
    return is_array(x) and (kind is float or kind is complex or kind not in SCALARS
                            and x.dtype.kind in INEXACT_KINDS)


def put(leaves, places, values):
    """The leaves with those at `places` replaced."""
    out = list(leaves)
    for k, x in zip(places, values):
        out[k] = x
    return out


def refuse(x, name, aside):
    """The error for a leaf that is neither an array nor a fixed value; `aside`: a way around it."""
    return ArgumentError(
        f"{name} is {noun_of(x)}, which is neither an array nor a fixed value.",
        given=f"{name}: {x!r:.60}",
        fix=["decorate the class with @fgrad.pytree, if it holds arrays",
             "make it a frozen dataclass, or define __eq__ and __hash__, if it is configuration",
             f"or {aside}"])


FIXED = (str, bytes, complex, enum.Enum, type, np.dtype, np.ufunc, ArrayType, Primitive, range,
         slice, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType,
         functools.partial)


def is_fixed(x):
    """Can x be a static argument without being named one?

    Mutable objects that are compared by identity cannot.
    """
    kind = type(x)
    if isinstance(x, FIXED) or hasattr(x, "__wrapped__"):
        return True
    frozen = getattr(kind, "__dataclass_params__", None)
    return frozen.frozen if frozen else kind.__eq__ is not object.__eq__


def lifted(x):
    """An array leaf as a Value of its own: NumPy arrays are copied, since their owner may write to
    them.
    """
    if x.__class__ is Array:
        return x
    if isinstance(x, np.ndarray) and x.dtype in SHORT:
        return Array(x.copy())
    return as_value(x)


def put_arrays(leaves, arrays):
    """The leaves with the arrays among them replaced, in order."""
    arrays = iter(arrays)
    return [next(arrays) if is_array(x) else x for x in leaves]


def staged_type(x):
    """The type of the variable that stands for a leaf: Python numbers keep all their digits."""
    return ArrayType(IN_FULL[x.__class__], ()) if x.__class__ in SCALARS else type_of(x)


def type_of(x):
    """The ArrayType of an array leaf; Python numbers, traced or not, have the default dtypes."""
    if isinstance(x, ArrayType):
        return x
    if x.__class__ in SCALARS:
        return ArrayType(dtype_of_scalar(x), ())
    if x.__class__ is complex:
        return ArrayType(default_complex(), ())
    if isinstance(x, Value) and x.is_number:
        return ArrayType(default_for(x.dtype, x.is_number), x.shape)
    return ArrayType(x.dtype if x.dtype in SHORT else BF16, x.shape)


def text_of(x):
    """A leaf in a message: `f32[3]`, or `int 3`."""
    if x.__class__ in SCALARS:
        return f"{type(x).__name__} {x!r}"
    if is_array(x) or isinstance(x, ArrayType):
        return str(type_of(x))
    return type(x).__name__


def tree_text(x):
    """A pytree with its leaves as types: `(f32[], {'w': f32[3]})`."""
    class Shown:
        def __init__(self, leaf):
            self.text = text_of(leaf)

        def __repr__(self):
            return self.text
    return repr(tree.map(Shown, x)) if tree.kind_of(x) else text_of(x)


# ---------------------------------------------------------------------------- functions

def name_of(f):
    """What to call a function, a partial or a callable object."""
    inner = getattr(f, "func", None)
    return (getattr(f, "__name__", None) or getattr(inner, "__name__", None)
            or type(f).__name__)


def check_takes(f, count, what):
    """Raises ArgumentError unless a function can be called with so many positional arguments."""
    code = f.__code__ if f.__class__ is types.FunctionType else None
    if code is not None and code.co_argcount == count and not code.co_kwonlyargcount:
        return
    try:
        inspect.signature(f).bind(*range(count))
    except TypeError as error:
        raise ArgumentError(f"{what}: {place_of(f)} is called with "
                            f"{text.counted(count, 'argument')}: {error}.") from None
    except ValueError:                           # builtins do not always tell
        pass


def spoken(f):
    """The function's name as code may have it: of a lambda, f."""
    return name_of(f) if name_of(f).isidentifier() else "f"


def place_of(f):
    """The function's name, and where it is written."""
    code = getattr(f, "__code__", None)
    if code is None:
        return f"`{name_of(f)}`"
    where = source.Place(code.co_filename, code.co_firstlineno, "", "")
    return f"`{name_of(f)}` ({where.short})"


def named(function, name):
    """The function under another name."""
    function.__name__ = function.__qualname__ = name
    return function


def check_function(f, what, argument=None, fix=None):
    """Raises ArgumentError unless f, the (only) argument of `what`, can be called."""
    if callable(f):
        return
    if argument is not None:
        raise ArgumentError(f"{what}: {argument} must be a function, not {noun_of(f)}.",
                            given=f"{argument}: {f!r:.60}", expected="a function", fix=fix)
    raise ArgumentError(f"{what} takes a function, not {noun_of(f)}.",
                        given=f"{what}({text_of(f)})",
                        fix=f"{what}(f)(x), with the arguments behind")


def positional_names(f):
    """(names of the positional parameters, are there more by *args?)."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return [], True
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return names, any(p.kind is p.VAR_POSITIONAL for p in parameters)


def positions(f, what, option, given):
    """An option of the transformation `what` as positions of arguments of f, none negative.

    Raises ArgumentError for one that f does not have.
    """
    names, more = positional_names(f)
    found = several(what, option, given, (int, np.integer), "a position, or a tuple of positions")
    for n in found:
        if n < -len(names) or n >= len(names) and not more:
            count = text.counted(len(names), "positional parameter")
            raise ArgumentError(f"{option}={n} is out of range: {name_of(f)} has {count}.",
                                expected=", ".join(names))
    return tuple([int(n) % len(names) if n < 0 else int(n) for n in found])


def several(what, option, given, kind, expected):
    """An option as a tuple of ints, or of names.  Raises ArgumentError for what is neither."""
    if given is None or isinstance(given, kind):
        return () if given is None else (given,)
    found = tuple(given) if hasattr(given, "__iter__") and not isinstance(given, str) else (given,)
    if not all(isinstance(x, kind) for x in found):
        raise ArgumentError(f"{what}: {option} is {expected}.", given=f"{option}={given!r:.60}")
    return found


def argument_name(f, k):
    """The name of positional argument k."""
    names, _ = positional_names(f)
    return names[k] if 0 <= k < len(names) else f"argument {k + 1 if k >= 0 else k}"


class LeafNames:
    """The names of leaves of (args, kwargs), worked out when one is asked for."""

    def __init__(self, f, args, kwargs):
        self.given = f, args, kwargs

    def __getitem__(self, k):
        return leaf_names(*self.given)[k]


def leaf_names(f, args, kwargs):
    """Per leaf of (args, kwargs) its name as the user would write it: `params['w']`."""
    names, out = positional_names(f)[0], []
    for part, which, *rest in tree.paths(tree.structure((tuple(args), dict(kwargs)))):
        root = which if part else names[which] if which < len(names) else f"argument {which + 1}"
        out.append(tree.path_text(root, rest))
    return out


class Places:
    """Which arguments of f a transformation is about: positions and names, one or several."""

    def __init__(self, f, argnums, argnames, what, allows_int=False):
        check_function(f, what)
        self.f, self.what, self.allows_int = f, what, allows_int
        chosen = argnums if argnames is None else argnames
        self.single = isinstance(chosen, (int, str))
        if not self.single and not isinstance(chosen, (tuple, list)):
            raise self.no_choice(chosen)
        self.keys = (chosen,) if self.single else tuple(chosen)
        if any(k.__class__ is not int or k < 0 for k in self.keys):
            self.keys = tuple([self.resolved(k) for k in self.keys])
        self.position = self.keys[0] if self.single and self.keys[0].__class__ is int else None
        if not self.keys or len(set(self.keys)) < len(self.keys):
            raise ArgumentError(f"{what} needs different arguments to differentiate.",
                                given=f"argnums={chosen!r}")

    def resolved(self, k):
        """A position where it is known, else the name of a keyword argument."""
        names, more = positional_names(self.f)
        if isinstance(k, str):
            known = self.parameters()
            if known is not None and k not in known:
                raise ArgumentError(f"{self.what}: `{name_of(self.f)}` has no argument {k!r}.",
                                    given=f"argnames={k!r}", expected="one of " + ", ".join(known))
            return names.index(k) if k in names else k
        if not isinstance(k, int) or k.__class__ is bool:
            raise self.no_choice(k)
        if k >= 0 or more:                       # the last of *args is known at the call
            return k
        return len(names) + k if -len(names) <= k else self.out_of_range(k)

    def no_choice(self, k):
        """The error for an argnums that chooses nothing."""
        return ArgumentError(f"{self.what}: argnums is a position, a name, or a tuple of them.",
                             given=f"argnums={k!r:.60}", fix="argnums=0, or (0, 1)")

    def parameters(self):
        """Every name that f accepts, or None when it accepts any."""
        try:
            found = inspect.signature(self.f).parameters.values()
        except (TypeError, ValueError):
            return None
        return None if any(p.kind is p.VAR_KEYWORD for p in found) else [p.name for p in found]

    def take(self, args, kwargs):
        """The chosen arguments: one value, or a tuple.  A position may have been given by name."""
        if self.position is not None and -len(args) <= self.position < len(args):
            return args[self.position]
        found = tuple([self.one(k, args, kwargs) for k in self.keys])
        return found[0] if self.single else found

    def one(self, k, args, kwargs):
        if k.__class__ is int and -len(args) <= k < len(args):
            return args[k]
        name = k if k.__class__ is str else self.name(k)
        if name in kwargs:
            return kwargs[name]
        return self.out_of_range(k)

    def name(self, k):
        return k if k.__class__ is str else argument_name(self.f, k)

    def out_of_range(self, k):
        names, _ = positional_names(self.f)
        raise ArgumentError(
            f"{self.what} with argnums={k!r}: `{name_of(self.f)}` was given no such argument.",
            given=f"`{name_of(self.f)}` has {text.counted(len(names), 'positional parameter')}: "
                  f"{', '.join(names) or 'none'}",
            expected=f"argnums from 0 to {len(names) - 1}, or a name" if names else None)

    def put(self, values, args, kwargs):
        """(args, kwargs) with the chosen arguments replaced."""
        k, args = self.position, list(args)
        if k is not None and k < len(args):
            args[k] = values
            return args, kwargs
        values = (values,) if self.single else values
        for k, x in zip(self.keys, values):
            if k.__class__ is int and k < len(args):
                args[k] = x
            else:
                kwargs = {**kwargs, self.name(k): x}
        return args, kwargs

    def leaf_name(self, structure, k):
        """The name of leaf k of the chosen arguments: `params['w']`."""
        path = tree.paths(structure)[k]
        if self.single:
            return tree.path_text(self.name(self.keys[0]), path)
        return tree.path_text(self.name(self.keys[path[0]]), path[1:])


# ---------------------------------------------------------------------------- messages of grad

def check_fixed(places, structure, k, x):
    """Raises ArgumentError for a leaf k that may hold arrays, and has none that can be found."""
    if not is_fixed(x):
        raise refuse(x, places.leaf_name(structure, k), "leave it out of argnums")


def not_a_float(places, structure, k, x):
    """The error for differentiating by an integer: by leaf k of the chosen arguments."""
    what, name = places.what, places.leaf_name(structure, k)
    if is_key(structure, k):
        key = name.removesuffix(".data")
        return GradientError(f"{what} needs float arguments, but `{key}` is a random key.",
                             given=f"{key}: a random key", expected="f16, bf16, f32 or f64",
                             fix=["argnums=…, for the arguments that are floats",
                                  f"or close over the key: {what}(lambda x: f(x, key))"])
    number = x.__class__ in SCALARS
    fix = f"write {float(x)}" if number else f"{name}.astype('float32')"
    shown = f"the {text_of(x)}" if number else text_of(x)
    zeros = ["allow_int=True, for a gradient of zeros"] if places.allows_int else []
    return GradientError(f"{what} needs float arguments, but `{name}` is {shown}.",
                         given=f"{name}: {text_of(x)}", expected="f16, bf16, f32 or f64",
                         fix=[fix, *zeros])


def is_key(structure, k):
    """Is leaf k the data of a random key?"""
    parent = None
    while structure.kind is not None:
        parent = structure.kind.cls
        for child in structure.children:
            if k < child.count:
                structure = child
                break
            k -= child.count
    return parent is not None and parent.__name__ == "Key" and hasattr(parent, "data")


def not_real(value, f, holomorphic):
    """The error for a complex result where a real one is needed, or the other way round."""
    if holomorphic:
        return GradientError(f"holomorphic=True needs a complex result, but `{name_of(f)}` "
                             f"returned {value.type}.", fix="leave it out for real functions")
    return GradientError(f"grad needs a real result, but `{name_of(f)}` returned {value.type}.",
                         expected="f32 or f64",
                         fix=["return its real part, or abs(…), as a loss",
                              "holomorphic=True, for the derivative of a function of complex "
                              "numbers", "vjp, for one cotangent"])


def not_holomorphic(what, name, x):
    """The error for complex arguments without `holomorphic`, or real ones with it."""
    if type_of(x).dtype.kind == "c":
        return GradientError(f"{what} by the complex `{name}` needs holomorphic=True.",
                             given=f"{name}: {text_of(x)}",
                             fix=["holomorphic=True, for a function of complex numbers",
                                  "or differentiate by its real and imaginary parts"])
    return GradientError(f"holomorphic=True needs complex arguments, but `{name}` is "
                         f"{text_of(x)}.", fix=f"{name}.astype('complex64')")


def not_scalar(out, f, what="grad"):
    """The error for a result that is no float scalar; `out` is the result, or its type."""
    leaves, returned = tree.leaves(out), f"`{name_of(f)}` returned {tree_text(out)}"
    if not any(map(is_array, leaves)):
        return GradientError(f"{what} needs a float result, but {returned}.", expected="f32[]",
                             fix="return the loss")
    if len(leaves) == 1 and type_of(leaves[0]).shape == () and not tree.kind_of(out):
        return GradientError(f"{what} needs a float result, but {returned}.",
                             expected="f16, bf16, f32 or f64",
                             fix="compute in floats, or convert with astype")
    name = spoken(f)
    fix = ["end with .sum() or .mean()", f"jacrev({name}) for all derivatives",
           f"vmap(grad({name})) for one gradient per example"]
    if isinstance(out, tuple) and len(out) == 2:
        fix = ["has_aux=True, if it returns (loss, aux)"]
    return GradientError(f"{what} needs a scalar result, but {returned}.",
                         expected="f32[]", fix=fix)


def pair_of(out, f):
    """(loss, aux).  Raises ArgumentError when the function did not return a pair."""
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise ArgumentError(
            f"has_aux=True expects `{name_of(f)}` to return (loss, aux), but it returned "
            f"{tree_text(out)}.",
            expected="a tuple of two", fix=["return loss, aux", "or leave out has_aux"])
    return out


def check_same_shape(what, name, x, wanted, of):
    """Raises ShapeError unless leaf x has the shape of the type `wanted`; `of` says what it belongs
    to.
    """
    if not is_array(x):
        raise ArgumentError(f"{what}: `{name}` is {noun_of(x)}, not an array.",
                            given=f"{name}: {x!r:.60}",
                            expected=f"{wanted}, the type of {of}")
    if type_of(x).shape != wanted.shape:
        raise ShapeError(f"{what}: `{name}` must have the shape of {of}.",
                         given=f"{name}: {type_of(x)}",
                         expected=str(wanted))


def check_same_type(what, name, x, wanted, of):
    """check_same_shape, and DtypeError for another dtype; a Python number takes its own."""
    check_same_shape(what, name, x, wanted, of)
    if type_of(x).dtype != wanted.dtype and not takes(x, wanted.dtype):
        raise DtypeError(f"{what}: `{name}` must have the dtype of {of}.",
                         given=f"{name}: {type_of(x)}",
                         expected=str(wanted), fix=f"convert it with astype('{wanted.dtype}')")


# ---------------------------------------------------------------------------- tangents

def direction(f, primals, tangents, what):
    """(leaves, tangents of the floats among them, structure).  Raises an error unless they fit."""
    for title, given in (("primals", primals), ("tangents", tangents)):
        check_tuple(f, title, given, what)
    leaves, structure = tree.flatten(tuple(primals))
    ts, other = tree.flatten(tuple(tangents))
    tree.check_same(structure, other, f"{what}: tangents must have the tree of primals")
    names = LeafNames(f, primals, {})
    out = []
    for k, (x, t) in enumerate(zip(leaves, ts)):
        if is_float(x):
            wanted = type_of(x)
            if not (is_array(t) and type_of(t) is wanted):
                check_same_type(what, f"the tangent of {names[k]}", t, wanted, f"`{names[k]}`")
            out.append(like(t, wanted))
    return leaves, out, structure


def check_tuple(f, title, given, what):
    """Raises ArgumentError unless what is given for each argument is a tuple."""
    if not isinstance(given, (tuple, list)):
        raise ArgumentError(f"{what}: {title} must be a tuple, one entry per argument of "
                            f"`{name_of(f)}`.",
                            given=f"{title}: {tree_text(given)}",
                            fix=f"({title},)")


def takes(x, dtype):
    """Is the leaf a Python number that takes a dtype: a real one each, a complex one complex ones?
    """
    return x.__class__ in SCALARS or x.__class__ is complex and dtype.kind == "c"


def like(x, other):
    """An array leaf as a Value of the other's dtype, if it is a Python number that takes it."""
    return array_in(np.array(x), other.dtype) if takes(x, other.dtype) else lifted(x)


# ---------------------------------------------------------------------------- axes of vmap

def is_axis(x):
    """A leaf of in_axes and out_axes: a position, or None."""
    return x is None


def axes_of_leaves(axes, trees, what, f):
    """Per leaf of `trees` its axis: `axes` is a tree prefix whose leaves are ints or None.

    Raises ArgumentError when `axes` is built differently.
    """
    leaves, structure = tree.flatten(axes, is_leaf=is_axis)
    for axis in leaves:
        if axis is not None and (not isinstance(axis, int) or axis.__class__ is bool):
            raise ArgumentError(f"vmap: {what} holds {axis!r}.", given=f"{what}={axes!r}",
                                expected="ints, or None for what is not mapped")
    try:
        parts = tree.flatten_up_to(structure, trees, (f"in {what}", "in what it is for"))
    except tree.TreeError as error:
        raise ArgumentError(
            f"vmap: {what} does not fit what it is for in `{name_of(f)}`: {error.sentence}",
            given=[f"{what}={axes!r}", f"for {tree_text(trees)}"],
            expected="an int or None for each, or for whole subtrees") from None
    return [axis for axis, part in zip(leaves, parts) for _ in tree.leaves(part)]


def check_arity(in_axes, args, f):
    """Raises ArgumentError when in_axes is a tuple of another length than the arguments."""
    if isinstance(in_axes, (tuple, list)) and len(in_axes) != len(args):
        raise ArgumentError(
            f"vmap of `{name_of(f)}` has in_axes for {len(in_axes)} arguments, but was called with "
            f"{len(args)}.",
            given=f"in_axes={in_axes!r}",
            expected=f"one entry per argument: {tree_text(tuple(args))}",
            fix="one int for all arguments, or None for those that are not mapped")


def normal_axis(axis, x, names, k):
    """The axis as a position from the left.  Raises AxisError when x, leaf k, has no such axis."""
    ndim = len(x.shape)
    if not -ndim <= axis < ndim:
        raise AxisError(
            f"vmap cannot map over axis {axis} of `{names[k]}`, which has "
            f"{text.counted(ndim, 'axis', 'axes')}.",
            given=f"{names[k]}: {type_of(x)}",
            expected=f"an axis from {-ndim} to {ndim - 1}" if ndim
            else "an array of at least one axis",
            fix=not_mapped(names, [k]))
    return axis % ndim


def mapped_size(leaves, axes, names, places, axis_size, f):
    """The one size of the mapped axes.  Raises ShapeError with a table when they differ."""
    sizes = {x.shape[d] for x, d in zip(leaves, axes)}
    if axis_size is not None:
        sizes.add(axis_size)
    if not sizes:
        raise ArgumentError(f"vmap of `{name_of(f)}` has nothing to map over: no argument has an "
                            "axis.", fix="give axis_size, or an array")
    if len(sizes) == 1:
        return sizes.pop()
    rows = [(names[k] + ":", str(type_of(x)), f"  axis {d} has size {x.shape[d]}")
            for x, d, k in zip(leaves, axes, places)]
    table = text.columns(rows)
    if axis_size is not None:
        table.append(f"axis_size={axis_size}")
    raise ShapeError(f"vmap of `{name_of(f)}` maps over axes of different sizes.", given=table,
                     expected="one size", fix=not_mapped(names, places))


def not_mapped(names, places):
    """How to leave one of these leaves as it is: an argument by keyword is out of in_axes' reach.
    """
    n, fixes = len(tree.leaves(names.given[1])), []            # n leaves by position
    if any(k < n for k in places):
        fixes.append("in_axes=None for an argument that is not mapped")
    if any(k >= n for k in places):
        fixes.append("close over an argument by keyword that is not mapped")
    return fixes
