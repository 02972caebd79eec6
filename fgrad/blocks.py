"""Blocks that users enter with `with`: what they raise is short, and one never entered is noticed.

Relies on errors; devices, default dtypes and other rules for a block are made with it.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager

from .errors import boundary, notice


def block(function):
    """What makes a context manager of a function that yields once, as contextlib's does.

    >>> @block
    ... def shouting():
    ...     print("begins")
    ...     yield "HEY"
    ...     print("ends")
    >>> with shouting() as word:
    ...     print(word)
    begins
    HEY
    ends
    """
    manager = contextmanager(function)

    @functools.wraps(function)
    def made(*args, **kwargs):
        return Block(function.__name__, functools.partial(manager, *args, **kwargs))
    return made


class Block:
    """A block of a name, each time begun anew, and a decorator of functions that are to run in it.
    """

    def __init__(self, name, begin):
        self.name, self.begin, self.entered = name, begin, []
        self.is_used = False
        begin()                                  # wrong arguments are refused here

    def __call__(self, function):
        self.is_used = True

        @functools.wraps(function)
        def within(*args, **kwargs):
            with Block(self.name, self.begin):
                return function(*args, **kwargs)
        return boundary(within)

    @boundary
    def __enter__(self):
        self.is_used = True
        manager = self.begin()
        value = manager.__enter__()
        self.entered.append(manager)
        return value

    @boundary
    def __exit__(self, *error):
        return self.entered.pop().__exit__(*error)

    def __del__(self):
        if not getattr(self, "is_used", True):
            notice((self.name, "unused"), f"{self.name} acts within a block, and there is none: "
                   f"write `with fgrad.{self.name}(…):`")
