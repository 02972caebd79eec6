"""An Image: all that running a compiled program takes, without the Plan, as plain data.

It is kept on disk under the program's canonical text, so that a second process runs neither passes
nor code generation.  Its words name functions; loading puts addresses there.  Relies on the disk
cache; `module.py` makes images, `executable.py` runs them.
"""

from __future__ import annotations

import marshal
import sys
from collections import namedtuple

import numpy as np

from ...aligned import copied
from ...types import LONG, SHORT, ArrayType, held_as
from .. import cache
from . import host, threads


class Image(namedtuple("Image", """given made inputs outputs overwritten words places most arena
                       long tried objects tables""")):
    """given: types of the inputs, the constants and the tables.  made: types of what a call makes.

    inputs: how many there are.  outputs: per result ("made", k), ("given", k): that value itself,
    or ("taken", k): the memory of input k.  overwritten: positions of inputs.  words: instructions
    of the runner, a function's name where its address belongs.  places, most: see PlanTable.
    arena: bytes for temporaries and for what products work in.  long: is the interpreter's lock
    released?  tried: see PlanTable.  objects: (names of functions, key of the object on disk).
    tables: the memory of those of the Plan.
    """
    __slots__ = ()


def key(program):
    """The key on disk of the Image of a program, given as what determines it."""
    return cache.key("image", program, host.IDENTITY, threads.pool().size, cache.sources(),
                     sys.implementation.cache_tag)


def kept(program):
    """(Image, its objects) that a process has kept for a program, or None."""
    data = cache.disk().get(key(program))
    if data is None:
        return None
    image = from_bytes(data)
    objects = [cache.disk().get(key) for _, key in image.objects]
    return None if None in objects else (image, objects)


def keep(program, image):
    """Keeps the Image of a program on disk; its objects are there."""
    cache.disk().put(key(program), to_bytes(image))


def to_bytes(image):
    """The Image as bytes."""
    given, made = ([(SHORT[t.dtype], t.shape) for t in types] for types in image[:2])
    tables = [t.tobytes() for t in image.tables]
    return marshal.dumps((given, made, *image[2:-1], tables))


def from_bytes(data):
    """The Image of these bytes.

    >>> empty = Image([ArrayType("float32", (3,))], [], 1, [], [], [], [], 1, 0, False, False,
    ...               [], [])
    >>> from_bytes(to_bytes(empty)) == empty
    True
    """
    given, made, *rest, tables = marshal.loads(data)
    given, made = [[ArrayType(LONG[name], shape) for name, shape in types]
                   for types in (given, made)]
    types = given[len(given) - len(tables):]
    return Image(given, made, *rest, [copied(np.frombuffer(x, held_as(t.dtype)).reshape(t.shape))
                                      for x, t in zip(tables, types)])
