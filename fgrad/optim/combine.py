"""Transformations put together: one after the other, and one for each group of parameters.

Relies on `masking.py`; the optimizers rely on it.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import tree
from ..errors import ArgumentError
from ..text import noun_of
from .base import (
    GradientTransformationExtraArgs, check_transformation, with_extra_args_support)
from .masking import masked


def chain(*transformations):
    """The transformations one after the other; the state is the tuple of theirs.

    Arguments by name (`value=`) reach those that take them.  Raises ArgumentError for a state that
    another chain made, and for what is no transformation.

    >>> import fgrad.numpy as fnp
    >>> from fgrad.optim import clip, scale
    >>> opt = chain(clip(1.0), scale(-0.5))
    >>> opt.update(fnp.array([3.0]), opt.init(fnp.array([0.0])))[0]
    Array([-0.5], f32[1])
    """
    transformations = [with_extra_args_support(t, "chain takes transformations of gradients")
                       for t in transformations]

    def init(params):
        return tuple(t.init(params) for t in transformations)

    def update(updates, state, params=None, **extra):
        if not isinstance(state, (tuple, list)) or len(state) != len(transformations):
            known = isinstance(state, (tuple, list))
            raise ArgumentError("the state was not made by this chain.",
                                given=f"a state of {len(state)} parts" if known
                                else f"state: {noun_of(state)}",
                                expected=f"{len(transformations)}, one for each transformation",
                                fix="state = optimizer.init(params)")
        after = []
        for t, s in zip(transformations, state):
            updates, s = t.update(updates, s, params, **extra)
            after.append(s)
        return updates, tuple(after)
    return GradientTransformationExtraArgs(init, update)


class PartitionState(NamedTuple):
    """The state of each group's transformation, by label."""
    inner_states: object


def multi_transform(transforms, param_labels):
    """One transformation for each group of parameters: rates of their own, freezing, unfreezing.

    transforms: {label: transformation};   param_labels: a tree of labels like params, or a prefix
    of it, or a function that makes one of params.  `set_to_zero()` freezes a group, and
    `unfreeze_at(opt, step)` lets it go later.  Raises ArgumentError for a label without
    transformation.

    >>> import fgrad.numpy as fnp
    >>> from fgrad.optim import sgd, set_to_zero
    >>> opt = multi_transform({"train": sgd(0.5), "freeze": set_to_zero()},
    ...                       {"body": "freeze", "head": "train"})
    >>> params = {"body": {"w": fnp.array([1.0])}, "head": {"w": fnp.array([1.0])}}
    >>> opt.update(params, opt.init(params))[0]
    {'body': {'w': Array([0.], f32[1])}, 'head': {'w': Array([-0.5], f32[1])}}
    """
    for t in transforms.values():
        check_transformation(t, "multi_transform takes transformations of gradients")

    def group(label, labels):
        return masked(transforms[label], tree.map(lambda found: found == label, labels))

    def resolved(whole):
        labels = param_labels(whole) if callable(param_labels) else param_labels
        unknown = sorted({str(k) for k in tree.leaves(labels) if k not in transforms})
        if unknown:
            raise ArgumentError("some labels have no transformation.", given=", ".join(unknown),
                                expected="one of " + ", ".join(map(str, transforms)))
        return labels

    def init(params):
        labels = resolved(params)
        return PartitionState({k: group(k, labels).init(params) for k in transforms})

    def update(updates, state, params=None, **extra):
        labels, after = resolved(updates), {}
        for k in transforms:
            updates, after[k] = group(k, labels).update(updates, state.inner_states[k], params,
                                                        **extra)
        return updates, PartitionState(after)
    return GradientTransformationExtraArgs(init, update)


partition = multi_transform
