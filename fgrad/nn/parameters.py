"""Parts of a tree of parameters, chosen by path: to freeze, to load in part, to share.

    body, head = nn.split(params, "dense3/*")     trains the last layer only:
    grads = grad(lambda head: loss(nn.merge(body, head)))(head)

A map of labels gives groups of parameters their own optimizers, or freezes some:

    >>> from fgrad import nn, optim
    >>> params = {"dense1": {"w": 1.0, "b": 2.0}, "dense2": {"w": 3.0, "b": 4.0}}
    >>> labels = tree.map(lambda new: "new" if new else "frozen", nn.mask(params, "dense2/*"))
    >>> opt = optim.multi_transform({"new": optim.sgd(0.5), "frozen": optim.set_to_zero()}, labels)
    >>> updates, _ = opt.update(params, opt.init(params), params)
    >>> tree.map(float, updates)
    {'dense1': {'b': 0.0, 'w': 0.0}, 'dense2': {'b': -2.0, 'w': -1.5}}

What another model has under the same paths is loaded by `merge(rest, filter(loaded, "conv*"))`, and
a weight is shared by giving one leaf to two places: `{**params, "out": params["in"]}`.

A path is the names from the root, joined by "/".  What a tree lacks is None there, which has no
leaves: `optim` and the transformations pass over it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from .. import tree
from ..errors import ArgumentError, TreeError


def chooser(which):
    """chosen(path, leaf) → bool, of a pattern, several of them, or a function of both."""
    if callable(which):
        return which
    patterns = (which,) if isinstance(which, str) else tuple(which)
    if not all(isinstance(p, str) for p in patterns):
        raise ArgumentError("parameters are chosen by patterns of paths, or by a function.",
                            given=repr(which), expected='as "dense1/*", or f(path, leaf) -> bool')
    return lambda path, leaf: any(fnmatchcase(path, p) for p in patterns)


def path_text(path):
    """The path as text: "dense1/w"."""
    return "/".join(str(key).lstrip(".") for key in path)


def paths(params):
    """The path of every leaf, in order.

    >>> paths({"dense1": {"w": 1.0, "b": 2.0}})
    ['dense1/b', 'dense1/w']
    """
    return [path_text(path) for path, _ in tree.flatten_with_path(params)[0]]


def mask(params, which):
    """A tree like params of True where a leaf is chosen, for optim.masked.

    which: a pattern of paths ("conv*/w"), a list of them, or a function (path, leaf) → bool.

    >>> mask({"dense1": {"w": 1.0, "b": 2.0}}, "*/w")
    {'dense1': {'b': False, 'w': True}}
    """
    chosen = chooser(which)
    return tree.map_with_path(lambda path, x: bool(chosen(path_text(path), x)), params)


def filter(params, which):
    """The chosen leaves; None in place of the others.  which: as in `mask`.

    >>> filter({"dense1": {"w": 1.0, "b": 2.0}}, "*/w")
    {'dense1': {'b': None, 'w': 1.0}}
    """
    return tree.map(lambda x, keep: x if keep else None, params, mask(params, which))


def split(params, which):
    """(the others, the chosen): two trees that `merge` puts together again.

    Raises ArgumentError where nothing is chosen: a pattern that fits no path is a slip.

    >>> rest, chosen = split({"dense1": {"w": 1.0}, "dense2": {"w": 2.0}}, "dense2/*")
    >>> rest, chosen
    ({'dense1': {'w': 1.0}, 'dense2': {'w': None}}, {'dense1': {'w': None}, 'dense2': {'w': 2.0}})
    """
    kept = mask(params, which)
    if not any(tree.leaves(kept)):
        raise ArgumentError("no parameter is chosen.", given=repr(which),
                            expected="paths: " + ", ".join(paths(params)[:8]))
    return (tree.map(lambda x, keep: None if keep else x, params, kept),
            tree.map(lambda x, keep: x if keep else None, params, kept))


def merge(*trees):
    """One tree of several that were split: at each place the one that is not None.

    Raises TreeError where two of them have something at one place.

    >>> merge({"w": 1.0, "b": None}, {"w": None, "b": 2.0})
    {'b': 2.0, 'w': 1.0}
    """
    first, shape = tree.flatten_with_path(trees[0], is_leaf=lambda x: x is None)
    others = [tree.flatten_up_to(shape, t) for t in trees[1:]]
    return tree.unflatten(shape, [one_of(path_text(path), [x, *xs])
                                  for (path, x), *xs in zip(first, *others)])


def one_of(path, values):
    found = [x for x in values if x is not None]
    if len(found) > 1:
        raise TreeError(f"merge: {len(found)} trees have something at {path!r}.",
                        fix="split them by the same pattern")
    return found[0] if found else None
