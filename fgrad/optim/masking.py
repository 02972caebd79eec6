"""Transformations of part of the tree: what a mask hides is not there for them.

Relies on `base.py`; weight decay and groups of parameters rely on it.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import tree
from .base import GradientTransformationExtraArgs, stateless, with_extra_args_support, zeros


class MaskedState(NamedTuple):
    """The state of the inner transformation, for the leaves that it sees."""
    inner_state: object


class MaskedNode(NamedTuple):
    """Stands for what a mask hides: a node without leaves."""


def masked(inner, mask):
    """`inner` where the mask is true; other updates pass as they are.

    mask: a tree of bools like params, or a prefix of it, or a function that makes one of params.
    What `inner` keeps, it keeps for the leaves it sees.

    >>> import fgrad.numpy as fnp
    >>> from fgrad.optim import scale
    >>> opt = masked(scale(0.0), {"w": True, "b": False})
    >>> updates = {"w": fnp.array([1.0]), "b": fnp.array([1.0])}
    >>> opt.update(updates, opt.init(updates))[0]
    {'b': Array([1.], f32[1]), 'w': Array([0.], f32[1])}
    """
    inner = with_extra_args_support(inner, "masked takes a transformation of gradients")

    def shown(where, whole):
        return tree.map(lambda m, x: x if m else MaskedNode(), where, whole)

    def resolved(whole):
        return mask(whole) if callable(mask) else mask

    def init(params):
        return MaskedState(inner.init(shown(resolved(params), params)))

    def update(updates, state, params=None, **extra):
        where = resolved(updates)
        seen = None if params is None else shown(where, params)
        found, after = inner.update(shown(where, updates), state.inner_state, seen, **extra)
        out = tree.map(lambda m, a, b: a if m else b, where, found, updates)
        return out, MaskedState(after)
    return GradientTransformationExtraArgs(init, update)


def freeze(mask):
    """Updates zero where the mask is true: at the end of a chain, these parameters stay.

    >>> import fgrad.numpy as fnp
    >>> opt = freeze({"w": True, "b": False})
    >>> updates = {"w": fnp.array([1.0]), "b": fnp.array([1.0])}
    >>> opt.update(updates, opt.init(updates))[0]
    {'b': Array([1.], f32[1]), 'w': Array([0.], f32[1])}
    """
    return masked(stateless(lambda updates, params: zeros(updates)), mask)
