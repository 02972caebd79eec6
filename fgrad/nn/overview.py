"""What a model is made of: a table of its layers, and the number of its parameters.

    >>> from fgrad import nn
    >>> print(summary(nn.Sequential(nn.Dense(4), nn.relu, nn.Dense(1)), fnp.ones((8, 3))))
    layer   kind   output    parameters  MACs  bytes
    dense1  dense  f32[8,4]          16    96     64
    relu1   relu   f32[8,4]           0     0      0
    dense2  dense  f32[8,1]           5    32     20
    total                            21   128     84

Relies on `layers`, whose `run` tells of every layer within another; users rely on it.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from .. import numpy as fnp
from .. import random, text, tree
from ..ir import programs_in
from ..transforms import eval_shape, make_ir
from ..types import ArrayType
from .layers import WATCHER

HEAD = ("layer", "kind", "output", "parameters", "MACs", "bytes")


def count_params(params):
    """The number of elements in a tree of parameters.

    >>> count_params({"w": fnp.ones((2, 3)), "b": fnp.ones(3)})
    9
    """
    return sum(prod(fnp.shape(leaf)) for leaf in tree.leaves(params))


def summary(model, x, key=None):
    """A table of the model's layers for inputs like x: shapes, parameters, work, memory.

    MACs are multiplications with an addition in products and convolutions, of one pass forward;
    bytes are those of the parameters.  x: an array or its type.  Only parameters are computed.
    Raises ShapeError, which names the layer, where a layer cannot take what it is given.
    """
    key = random.key(0) if key is None else key
    params, state = model.init(key, x)
    watcher = Watcher([], [])
    token = WATCHER.set(watcher)
    try:
        with watcher.inside(model.name, model, params, state, x) as done:
            done(eval_shape(lambda p, s, v: model.apply(p, s, v)[0], params, state, x))
    finally:
        WATCHER.reset(token)
    rows = [row for row in watcher.rows if row.is_leaf]
    cells = [HEAD, *(row.cells(len(rows) > 1) for row in rows)]
    whole = watcher.rows[-1]
    cells.append(("total", "", "", *numbers(whole.params, sum(row.macs for row in rows))))
    right = [max(len(row[k]) for row in cells) if k > 2 else 0 for k in range(len(HEAD))]
    return "\n".join(text.columns([tuple(cell.rjust(n) for cell, n in zip(row, right))
                                   for row in cells], gap="  "))


@dataclass(frozen=True)
class Row:
    """A layer that ran: its path, its parameters, what it gave, its multiply-adds."""
    path: str
    layer: object
    params: object
    output: object
    macs: int
    is_leaf: bool

    def cells(self, below):
        """What is printed; the path without the model itself, if there is anything below it."""
        path = self.path.split("/", 1)[1] if below and "/" in self.path else self.path
        shapes = " ".join(map(str, tree.leaves(tree.map(type_of, self.output))))
        return path, self.layer.name, shapes, *numbers(self.params, self.macs)


def numbers(params, macs):
    """The number of parameters, of multiply-adds, and of bytes."""
    size = sum(leaf.nbytes for leaf in tree.leaves(params))
    return f"{count_params(params):,}", f"{macs:,}", f"{size:,}"


def type_of(x):
    return str(x if isinstance(x, ArrayType) else x.type)


@dataclass
class Watcher:
    """Collects a Row for every layer that runs; a layer without layers inside is a leaf."""
    rows: list
    path: list

    @contextmanager
    def inside(self, name, layer, params, state, x):
        """The layer runs in here; done(output) says what it gave."""
        before, outs = len(self.rows), []
        self.path.append(name)
        yield outs.append
        is_leaf = len(self.rows) == before
        macs = macs_of(layer, params, state, x) if is_leaf else 0
        self.rows.append(Row("/".join(self.path), layer, params, outs[0], macs, is_leaf))
        self.path.pop()


def macs_of(layer, params, state, x):
    """Multiply-adds of one pass forward through a layer."""
    token = WATCHER.set(None)
    try:
        types = tree.map(lambda a: a if isinstance(a, ArrayType) else a.type, (params, state, x))
        program = make_ir(lambda p, s, v: layer.apply(p, s, v)[0])(*types)
    finally:
        WATCHER.reset(token)
    return work(program)


def work(program):
    """Multiply-adds of the products and convolutions in a Program; loops count their trips."""
    total = 0
    for eqn in program.eqns:
        if eqn.op.name in ("dot_general", "conv_general"):
            total += contraction(eqn)
        inner = [p for value in eqn.params.values() for p in programs_in(value)]
        total += eqn.params.get("length", 1) * sum(map(work, inner))
    return total


def contraction(eqn):
    """Multiply-adds of a product: places in the result times what is summed for each."""
    sizes = dict(zip(eqn.params["rhs"], eqn.args[1].type.shape))
    window = eqn.params.get("window", "")
    summed = [n for c, n in sizes.items() if c in window or c not in eqn.params["to"]]
    return prod(eqn.outs[0].type.shape) * prod(summed)
