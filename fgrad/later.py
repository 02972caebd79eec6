"""Modules and names that are loaded at first use, so that a process pays only for what it uses.

Relies on nothing.  Packages whose names are many or costly, and what needs llvmlite, rely on it.
"""

from __future__ import annotations

import importlib
import sys


def lazily(module, name=None, package=None):
    """() → a module, or what it calls `name`; it is imported when called.  package: where a
    `.module` is looked for.
    """
    def found():
        whole = importlib.import_module(module, package)
        return whole if name is None else getattr(whole, name)
    return found


def names(module, table, *, also={}, first=None, made=None):
    """(__getattr__, __dir__) of a module that loads its names at first use.

    table: module of the same package → the names that it gives, in one string; `a=b` is its b under
    the name a.  A module's own name stands for itself, and goes without saying if there is no
    other; other modules can be had, too, but are not in `__all__`.  also: the same of the package
    around, by `.module`, for names that this package has from above.  first: a module that is
    imported before any that gives names.  made(value, module): what is kept of one that is given.
    Type checkers and editors read `if TYPE_CHECKING:` and should not see `__getattr__`, which may
    give anything.  A module that has an `__all__` of its own lists that and nothing else.
    """
    space = vars(sys.modules[module])
    package = space["__package__"]
    place, given = {name: (name, None) for name in table}, set()
    for source, words in (*table.items(), *also.items()):
        for word in words.split() or [source]:
            name, _, theirs = word.partition("=")
            theirs = theirs or name
            place[name] = source, None if theirs == source else theirs
            given.add(name)

    def __getattr__(name):
        if name == "__all__":
            own = {n for n, x in space.items() if n[0] != "_" and not isinstance(x, type(sys))}
            return sorted(own | given)
        if name not in place:
            try:
                raise lazily(f"{__package__}.absent", "missing")()(sys.modules[module], name)
            except AttributeError as error:
                error.__traceback__ = None       # the user's line is shown, and not this one
                raise
        source, theirs = place[name]
        if first is not None and theirs is not None:
            importlib.import_module(first)
        value = lazily(f".{source}", theirs, package)()
        space[name] = value if theirs is None or made is None else made(value, module)
        return space[name]

    def __dir__():
        return sorted(space.get("__all__") or __getattr__("__all__"))
    return __getattr__, __dir__
