"""Records: classes that are their fields, made in a sixth of the time that `dataclass` takes.

    @record                            @frozen
    class Step:                        class Tile:
        name: str                          rows: int
        after: list = new(list)            columns: int = 2

A `record` is equal to itself alone and may be written to; what is `frozen` may not, and is equal to
what has the same class and fields.  The compiler has some fifty of them, made in every process that
compiles: as dataclasses, whose methods are compiled one by one, they took 33 of the 530 ms of a
first train step (Python 3.11).  Layers, which users write too, are dataclasses.  Relies on nothing.
"""

from __future__ import annotations

from operator import attrgetter


class new:
    """The default of a field of which each record has its own: new(list)."""

    def __init__(self, make):
        self.make = make


def record(cls):
    """Gives the class __init__, with its annotated names in order, and __repr__.

    >>> @record
    ... class Step:
    ...     name: str
    ...     after: list = new(list)
    >>> step = Step("load")
    >>> step.after.append(Step("run"))
    >>> step
    Step(name='load', after=[Step(name='run', after=[])])
    """
    return made(cls, "self.{0} = {0}")


def frozen(cls):
    """Like `record`, for what does not change: compared and hashed by its fields.

    >>> @frozen
    ... class Tile:
    ...     rows: int
    ...     columns: int = 2
    >>> Tile(4) == Tile(4, 2), Tile(4) == (4, 2), len({Tile(4), Tile(rows=4)})
    (True, False, 1)
    >>> Tile(4).rows = 5
    Traceback (most recent call last):
    AttributeError: a Tile cannot be changed: replace(tile, rows=…) gives another
    """
    made(cls, "put(self, {0!r}, {0})")
    cls.key = attrgetter(*cls.__match_args__ or ("__class__",))
    cls.__eq__, cls.__hash__, cls.__setattr__ = is_same, hash_of, refused
    return cls


def made(cls, assigned):
    """The class with the methods of every record.  assigned: a field's line of __init__."""
    names = list(cls.__dict__.get("__annotations__", ()))
    defaults = {n: cls.__dict__[n] for n in names if n in cls.__dict__}
    parameters = [f"{n}=defaults[{n!r}]" if n in defaults else n for n in names]
    lines = [f"    if {n} is defaults[{n!r}]: {n} = {n}.make()"
             for n, default in defaults.items() if default.__class__ is new]
    lines += [f"    {assigned.format(n)}" for n in names]
    known = {"defaults": defaults, "put": object.__setattr__}
    exec("\n".join([f"def __init__({', '.join(['self', *parameters])}):", *lines, "    return"]),
         known)
    cls.__init__, cls.__repr__, cls.__match_args__ = known["__init__"], shown, tuple(names)
    cls.__init__.__qualname__ = f"{cls.__qualname__}.__init__"
    return cls


def replace(found, **changes):
    """A record like the one found, but for these fields.

    >>> from fgrad.loop import Buffer
    >>> replace(Buffer("x", None), kind="local")
    Buffer(name='x', type=None, kind='local')
    """
    fields = [changes.pop(n) if n in changes else getattr(found, n) for n in found.__match_args__]
    return found.__class__(*fields, **changes)           # what is left is no field: a TypeError


def shown(self):
    fields = ", ".join(f"{n}={getattr(self, n)!r}" for n in self.__match_args__)
    return f"{self.__class__.__qualname__}({fields})"


def is_same(self, other):
    if self.__class__ is not other.__class__:
        return NotImplemented
    return self.key(self) == self.key(other)


def hash_of(self):
    return hash(self.key(self))


def refused(self, name, _):
    kind = self.__class__.__name__
    raise AttributeError(f"a {kind} cannot be changed: "
                         f"replace({kind.lower()}, {name}=…) gives another")
