"""The forms of arguments: what an entry of a compiled function expects at each position.

    a leaf        ARRAY, or STRIDED: an array that may have to be copied to be contiguous; or a
                  number: FLOAT, INT or BOOL of Python, FLOAT64 of NumPy
    a container   a tuple, list or dict of forms, or `Attributes` of a class, or a `Mapping`
    Same          this very object, or one that equals it, which is no input

The leaves of forms, left to right, are the inputs of an executable.  `taker` writes them out as one
expression of Python.  Relies on pytrees; the executables of backends and `native_entry` rely on it.
"""

from __future__ import annotations

import functools

import numpy as np

from ..tree import alike

ARRAY, STRIDED = "array", "strided"
FLOAT, INT, BOOL, FLOAT64 = "float", "int", "bool", "float64"
NUMBERS = {FLOAT: float, INT: int, BOOL: bool, FLOAT64: np.float64}


class Same:
    """The form of an argument that must be this very object; it is no input.

    or_equal: `taker` takes an equal one too, of the same types through and through.
    """

    def __init__(self, object, or_equal=False):
        self.object, self.or_equal = object, or_equal


class Attributes:
    """The form of an argument of this very class: forms of its attributes, by name."""

    def __init__(self, cls, parts):
        self.cls, self.parts = cls, parts


class Mapping:
    """The form of a dict of another class: an OrderedDict, whose keys come in the order of these,
    or a defaultdict with this factory.  No table can hold it.
    """

    def __init__(self, cls, parts, factory=None):
        self.cls, self.parts, self.factory = cls, parts, factory


def missed(*args, **kwargs):
    """What an entry calls, and gives back, where it does not recognise its arguments."""
    return missed


def parts(form, at):
    """(expression, form) of each part of a container's form, where it is called `at`."""
    if isinstance(form, (str, Same)):
        return []
    if isinstance(form, Attributes):
        return [(f"{at}.{name}", part) for name, part in form.parts.items()]
    form = form.parts if isinstance(form, Mapping) else form
    keyed = form.items() if isinstance(form, dict) else enumerate(form)
    return [(f"{at}[{key!r}]", part) for key, part in keyed]


def paths(form, at):
    """The expressions of the inputs within an argument of this form that is called `at`."""
    if isinstance(form, str):
        return [at]
    return [path for inside, part in parts(form, at) for path in paths(part, inside)]


def tests(form, at, names):
    """Expressions that are all true where what is called `at` has the form, but for its arrays.

    `names` gets the objects that they name.
    """
    if isinstance(form, str):
        return [f"{at}.__class__ is {form}"] if form in NUMBERS else []

    def word(thing):
        name = f"object{len(names)}"
        names[name] = thing
        return name
    if isinstance(form, Same):
        same = f"{at} is {word(form.object)}"
        return [f"({same} or alike({at}, {word(form.object)}))" if form.or_equal else same]
    is_own = isinstance(form, (Attributes, Mapping))
    found = [f"{at}.__class__ is {word(form.cls if is_own else form.__class__)}"]
    if not isinstance(form, Attributes):
        found.append(f"len({at}) == {len(form.parts if is_own else form)}")
    if isinstance(form, Mapping):
        found.append(f"[*{at}] == {word([*form.parts])}" if form.factory is None else
                     f"{at}.default_factory is {word(form.factory)}")
    return found + [test for inside, part in parts(form, at) for test in tests(part, inside, names)]


def is_tabled(form):
    """Can a table of records hold the form?"""
    return (form != STRIDED and not isinstance(form, Mapping)
            and all(is_tabled(part) for _, part in parts(form, "")))


def takes_equals(form):
    """Is there something in the form that need not be the very same object?"""
    return (isinstance(form, Same) and form.or_equal
            or any(takes_equals(part) for _, part in parts(form, "")))


def leaves(form):
    """The inputs within a form: their own forms."""
    if isinstance(form, str):
        return [form]
    return [leaf for _, part in parts(form, "") for leaf in leaves(part)]


def taker(forms):
    """A function of the tuple of arguments: the list of their inputs, or None for other forms.

    >>> take = taker([{"b": [ARRAY], "w": ARRAY}, FLOAT, Same(None)])
    >>> take(({"w": 1, "b": [2]}, 0.5, None))
    [2, 1, 0.5]
    >>> take(({"w": 1, "b": (2,)}, 0.5, None)) is None
    True
    """
    names = {"alike": alike, FLOAT64: np.float64}
    found = [f"len(args) == {len(forms)}"]
    inputs = []
    for k, form in enumerate(forms):
        found += tests(form, f"args[{k}]", names)
        inputs += paths(form, f"args[{k}]")
    text = f"lambda args: [{', '.join(inputs)}] if {' and '.join(found)} else None"
    take = eval(code_of(text), names)

    def taken(args):
        try:
            return take(args)
        except (LookupError, AttributeError):    # a dict of other keys, an attribute that is gone
            return None
    return taken


@functools.lru_cache(maxsize=256)
def code_of(text):
    """The code of an expression: blocks that come again and again make entries anew."""
    return compile(text, "<forms>", "eval")
