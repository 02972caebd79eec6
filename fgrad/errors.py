"""What fgrad says when something is wrong: one formatter for every error and notice.

An error holds a sentence, the user's line, what was given, what was expected, and how to fix it.
It relies on `source.py` for the line; everything that raises relies on it.  Each class is also a
builtin, so that `except TypeError` catches a ShapeError.

>>> print(ShapeError("matmul cannot contract axes of size 3 and 4.", given="x: f32[8,3]",
...                  fix="transpose x", where=None))
matmul cannot contract axes of size 3 and 4.
<BLANKLINE>
  given      x: f32[8,3]
  fix        transpose x
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
import warnings

from . import config, source

FIND = object()            # where=FIND: the user's line is looked for


class FgradError(Exception):
    """A sentence and, as far as they apply, the user's line, given, expected and fix.

    `given`, `expected` and `fix` are strings, or lists of strings, one per printed line.
    `where` is a `source.Place`, None for no line, or FIND: the innermost line of the user's.
    """

    def __init__(self, sentence, *, given=None, expected=None, fix=None, where=FIND):
        super().__init__(sentence)
        self.sentence = sentence
        self.given, self.expected, self.fix = given, expected, fix
        self.where = source.here() if where is FIND else where

    def __reduce__(self):                        # code objects cannot be pickled, a Place can
        return type(self), (self.sentence,), {**vars(self), "where": source.place(self.where)}

    def __str__(self):
        rows = [("given", self.given), ("expected", self.expected), ("fix", self.fix)]
        place = source.place(self.where)
        parts = [self.sentence]
        if place is not None:
            parts.append(f"\n    {place.short}    {place.text}".rstrip())
            if 0 < place.width < len(place.text):
                parts.append(" " * (8 + len(place.short) + place.column) + "^" * place.width)
        body = [line for title, content in rows for line in block(title, content)]
        if body:
            parts.append("\n" + "\n".join(body))
        return "\n".join(parts)


def block(title, content):
    """The lines of one titled block; its title stands in the first."""
    lines = [content] if isinstance(content, str) else list(content or ())
    flat = [line for text in lines for line in text.split("\n")]
    return [f"  {title if k == 0 else '':10} {line}".rstrip() for k, line in enumerate(flat)]


# ---------------------------------------------------------------------------- tracebacks

def boundary(function):
    """The function; what it raises shows the user's frames only, all with FGRAD_TRACEBACK=full."""
    if getattr(function, "is_boundary", False):
        return function
    if takes_one(function):
        def entered(x, /):                       # *args and **kwargs would cost 0.07 µs
            try:
                return function(x)
            except BaseException as error:
                shorten(error)
                raise
    else:
        def entered(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                shorten(error)
                raise
    made = functools.wraps(function)(entered)
    made.is_boundary = True
    return made


@functools.cache
def public(value, module):
    """What a user is given: a function as a boundary of that module, so that what it raises shows
    the user's frames only; anything else as it is.  Two names of one function stay one.
    """
    if not isinstance(value, types.FunctionType) or getattr(value, "is_boundary", False):
        return value
    made = boundary(value)
    made.__module__ = module
    return made


def at_home(value, module):
    """The same, of a function that keeps the name of the module it is written in, and is a boundary
    there, too: pickle and doctest look for it there.
    """
    if not isinstance(value, types.FunctionType):
        return value
    home = vars(sys.modules[value.__module__])
    if home.get(value.__name__) is value:
        home[value.__name__] = boundary(value)
    found = home.get(value.__name__)
    return found if getattr(found, "__wrapped__", None) is value else value


def bound(namespace, names=None, made=public):
    """Makes the functions of a module public, by default those that are written in it."""
    module = namespace["__name__"]
    for name, value in list(namespace.items()):
        chosen = getattr(value, "__module__", None) == module if names is None else name in names
        if chosen and not name.startswith("_"):
            namespace[name] = made(value, module)


def bound_methods(cls):
    """The class; what makes it and its public methods are boundaries."""
    for name, value in list(vars(cls).items()):
        if name.startswith("_") and name not in ("__init__", "__post_init__"):
            continue
        if isinstance(value, classmethod):
            setattr(cls, name, classmethod(boundary(value.__func__)))
        elif isinstance(value, types.FunctionType):
            setattr(cls, name, boundary(value))
    return cls


def takes_one(function):
    """Does the function take one argument, by position only, and no others?"""
    code = getattr(function, "__code__", None)
    return (code is not None and not function.__defaults__ and not hasattr(function, "__wrapped__")
            and code.co_posonlyargcount == code.co_argcount == 1 and not code.co_kwonlyargcount
            and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))


def shorten(error):
    """Takes the library's frames out of the traceback of a caught exception, which is raised again.

    An exception that is not fgrad's and was raised in the library keeps all: it is a mistake here;
    not so of recursion without end, of memory that there is not, and of a call with other arguments
    than a function takes, which are the user's wherever they are noticed.
    """
    entries, entry = [], error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    files = [e.tb_frame.f_code.co_filename for e in entries]
    mistake = (files[-1].startswith(source.LIBRARY) and not is_arity(error)
               and not isinstance(error, (FgradError, RecursionError, MemoryError)))
    if config.full_traceback() or mistake:
        return
    inside = [source.is_inside(file) or source.is_made(e.tb_frame)
              for file, e in zip(files, entries)]
    following = None
    for entry, ours in zip(reversed(entries), reversed(inside)):
        if not ours:
            entry.tb_next = following
            following = entry
    if following is not entries[0]:
        entries[0].tb_next = following           # before Python 3.11 the first stays
    error.__traceback__ = following


ARITY = re.compile(r"\(\) (missing \d|takes |got an unexpected keyword|got multiple values)")


def is_arity(error):
    """Is this what Python says of a call with too many or too few arguments?"""
    return type(error) is TypeError and ARITY.search(str(error)) is not None


class ShapeError(FgradError, TypeError):
    """Shapes do not fit together."""


class DtypeError(FgradError, TypeError):
    """An operation is not defined for these dtypes."""


class GradientError(FgradError, TypeError):
    """A derivative was asked for that does not exist."""


class MissingRuleError(FgradError, NotImplementedError):
    """An operation lacks the rule that a transformation needs."""


class TreeError(FgradError, TypeError):
    """Two pytrees that should have one structure differ."""


class ArgumentError(FgradError, TypeError):
    """An argument is missing, of the wrong kind, or out of range."""


class NanError(FgradError, FloatingPointError):
    """A NaN or an infinity was made, and reached the result."""


class RangeError(FgradError, ValueError, OverflowError):
    """A value lies outside of what is allowed, or does not fit into a dtype."""


class AxisError(FgradError, ValueError, IndexError):
    """An axis is out of range."""


class AxisNameError(FgradError, NameError):
    """An axis name that no vmap around has bound."""


class PositionError(FgradError, IndexError):
    """An index is out of range, or there are too many."""


class ConcretizationError(FgradError, TypeError):
    """Python asked for the value of something that has none while a function is being compiled."""


class LeakError(FgradError, RuntimeError):
    """A value was used outside of the transformation it belongs to."""


class MutationError(FgradError, TypeError):
    """An immutable array was assigned to."""


class NumpyError(FgradError, TypeError):
    """A NumPy call that cannot be traced."""


class RandomKeyError(FgradError, TypeError):
    """A random key is not a key."""


class DeviceError(FgradError, RuntimeError):
    """A device is missing, unknown, or out of memory."""


class DonationError(FgradError, RuntimeError):
    """An array was used after it had been donated."""


class DataError(FgradError, ValueError):
    """A file does not hold what it should."""


class MissingFileError(DataError, FileNotFoundError):
    """A file is not there."""


class FileError(DataError, OSError):
    """A file cannot be read or written."""


class DownloadError(DataError, OSError):
    """A file could not be fetched, or is not what was expected."""


class ParseError(FgradError, ValueError):
    """The text of a program cannot be read."""


class CheckError(FgradError, AssertionError):
    """A program breaks a rule of its own form: a mistake in fgrad, or in a hand-written program."""


class FgradWarning(UserWarning):
    """A notice of fgrad: nothing failed, but the user would want to know."""


class KeyReuseWarning(FgradWarning):
    """One random key was used twice."""


for _class in [c for c in list(globals().values()) if isinstance(c, type)]:
    if _class.__module__ == __name__:
        _class.__module__ = "fgrad"              # tracebacks say fgrad.ShapeError


NOTICED = set()            # keys of notices already given; owned by `notice`


def notice(key, sentence, category=FgradWarning, where=FIND):
    """Warns with the sentence, once per key, naming the user's line."""
    if key in NOTICED:
        return
    NOTICED.add(key)
    place = source.place(source.here() if where is FIND else where)
    line = f" ({place.short})" if place is not None else ""
    warnings.warn(f"{sentence}{line}", category, stacklevel=source.depth())
