"""Watching: runs a function operation by operation, and notes which one made a NaN or an infinity.

`Watch` evaluates like the bottom interpreter; what it gives are arrays that know where they were
made, so that an operation of a derivative is told apart, with the line it is the derivative of.
Compiled functions are run equation by equation.  A NaN that `where` hides reaches no result, and is
no fault.  Relies on staging; `debug.nans` and the entries of transformations rely on it.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import config, source, text, tree
from ..bf16 import BF16
from ..core import EVALUATE, Array, Tracer, WordArray, array_of, current, memory_of
from ..errors import NanError, boundary
from ..types import SCALARS
from .stage import Noting, evaluate

PRODUCTS = ("mul", "div")  # what makes a NaN of a zero cotangent: 0 * inf, 0 / 0


# ---------------------------------------------------------------------------- what is noted

class Site:
    """An operation that made a NaN or an inf which its arguments did not have.

    cause: the Site of an inf among its arguments, or None.  mask: the Place of a `where` whose zero
    cotangent it multiplied, or None.  reached: did it come into a result?
    """

    def __init__(self, op, what, place, backward, rows, cause, mask):
        self.op, self.what, self.place, self.backward = op, what, place, backward
        self.rows, self.cause, self.mask, self.reached = rows, cause, mask, False

    def first(self):
        """The Site that began it."""
        return self if self.cause is None else self.cause.first()

    def title(self):
        """What happened, in a sentence."""
        where = "the derivative of this line" if self.backward else "this line"
        return f"{where} made {self.what}, by the operation {self.op.name}."

    def fixes(self):
        """What to write instead, as far as that is clear."""
        word = self.place.words if self.place is not None and self.place.words else "f"
        if self.mask is not None:
            call = f"{word}(where(m, x, 1))" if word.isidentifier() else f"where(m, x, 1) {word}"
            return [f"the `where` at {self.mask.short} hides this value, but not its derivative: "
                    "0 times inf is NaN", f"write {call} inside of where(m, …, …)"]
        return FIXES.get(word if self.backward else self.op.name)


FIXES = {
    "log": "log(maximum(x, tiny)), or log1p(x) near 1",
    "div": "fgrad.debug.safe_div(x, y), which is 0 where y is 0",
    "sqrt": "fgrad.debug.safe_sqrt(x), which is 0, and has the derivative 0, at 0",
    "norm": "fgrad.debug.safe_norm(x), which has the derivative 0 at 0",
    "exp": "subtract the maximum first, as fgrad.nn.log_softmax does",
}


class Sited:
    """What a Watch makes: the lines it belongs to, and the Site of what is wrong with it."""
    __slots__ = ()


class Seen(Sited, Array):
    """An Array made by a Watch."""
    __slots__ = ("source", "mark", "site")


class SeenWords(Sited, WordArray):
    """An Array of bf16 made by a Watch."""
    __slots__ = ("source", "mark", "site")


class Watch(Noting):
    """Evaluates, and notes Sites in order.   inf: is an infinity a fault, too?"""
    title = "a watched function"

    def __init__(self, below, inf=True):
        self.below, self.inf = below, inf
        self.mark = self.source = self.mask = None
        self.sites = []

    def process(self, op, args, params):
        if op.transparent:
            return self.run(evaluate, params["program"], args)
        place = self.source or source.here()
        if op.nested:
            return self.looped(op, args, params, place)
        out = self.below.process(op, args, params)
        if op.multiple:
            return tuple([self.seen(x, op, args, place) for x in out])
        if op.name == "select" and self.mark is not None:
            self.mask = self.mark
        return self.seen(out, op, args, place)

    def looped(self, op, args, params, place):
        """The results of control flow, whose bodies are watched too: a fault of a result began at
        the first Site in there.
        """
        before = len(self.sites)
        found = self.run(functools.partial(op.steps, **params), *args)
        outs = [self.seen(x, op, (), place) for x in found]
        for x in outs:
            if faults(x):
                x.site = self.sites[before] if len(self.sites) > before else self.inherited(args)
        return tuple(outs)

    def inherited(self, args):
        """The Site of an argument, or None."""
        return next((a.site for a in args if isinstance(a, Sited) and a.site is not None), None)

    def seen(self, x, op, args, place):
        """x as a Seen."""
        out = SeenWords(x.words) if x.dtype is BF16 else Seen(x.np)
        out.source, out.mark, out.site = place, self.mark, None
        bad = faults(out)
        if bad:
            out.site = self.site(out, op, args, place, bad)
        return out

    def site(self, out, op, args, place, bad):
        """The Site of a value with faults: a new one, that of an argument, or None for an input."""
        arrays = [a for a in args if isinstance(a, Array)]
        cause = self.inherited(arrays)
        new = bad - set().union(*[faults(a) for a in arrays])
        if not new or not arrays:
            return cause
        masked = self.mark is not None and op.name in PRODUCTS and times_zero(out, arrays)
        made = Site(op, counted(out), source.place(self.mark or place), self.mark is not None,
                    [ranges(a) for a in args], cause,
                    source.place(self.mask) if masked else None)
        if made.cause is not None and made.cause.backward:
            made.cause.mask = made.cause.mask or made.mask
        self.sites.append(made)
        return made

    def derivative_of(self, out):
        """The next operations belong to the derivative of the line that made `out`."""
        while isinstance(out, Tracer):
            out = out.inner()
        if isinstance(out, Sited):
            self.mark = out.mark or out.source

    def check(self, out):
        """The result without what was noted.  Raises NanError where it has a fault."""
        for path, x in tree.flatten_with_path(out)[0]:
            bad = faults(x) if isinstance(x, Array) else ()
            if bad and (self.inf or "NaN" in bad):
                raise fault(x, path)
        return plain(out)

    def mark_reached(self, out):
        """Notes which Sites came into the result."""
        for x in tree.leaves(out):
            site = x.site if isinstance(x, Sited) else None
            while site is not None:
                site.reached, site = True, site.cause


def plain(out):
    """The pytree with Arrays for what Watch made."""
    return tree.map(lambda x: array_of(memory_of(x), x.dtype) if isinstance(x, Sited) else x, out)


def values_in(x):
    """The elements as an ndarray, of bf16 as f32."""
    return np.asarray(x.value_for("a check"))


def faults(x):
    """What is in the array: a set of "NaN" and "inf"."""
    if x.dtype.kind not in "fc":
        return set()
    value = values_in(x)
    if np.isfinite(value).all():
        return set()
    return {word for word, test in (("NaN", np.isnan), ("inf", np.isinf)) if test(value).any()}


def times_zero(out, arrays):
    """Is one of the arguments 0 where the result is NaN?"""
    wrong = np.isnan(values_in(out))
    return any(np.any((values_in(a) == 0) & wrong) for a in arrays)


def counted(x):
    """`NaN in 2 of 3 elements`."""
    value = values_in(x)
    counts = {"NaN": int(np.isnan(value).sum()), "inf": int(np.isinf(value).sum())}
    return " and ".join(f"{word} in {n} of {value.size} elements" if value.ndim else word
                        for word, n in counts.items() if n)


def ranges(x):
    """`f32[3]  from 0 to 4, 1 zero` of an argument."""
    if x.__class__ in SCALARS:
        return repr(x)
    value = values_in(x)
    if value.dtype.kind == "b" or not value.size:
        return str(x.type)
    finite = value[np.isfinite(value)]
    parts = [f"from {finite.min():.6g} to {finite.max():.6g}"] if finite.size > 1 else \
        [f"{v:.6g}" for v in finite]
    for word, n in (("zero", int((value == 0).sum()) if value.size > 1 else 0),
                    ("NaN", int(np.isnan(value).sum())), ("inf", int(np.isinf(value).sum()))):
        if n:
            several = "s" if word == "zero" and n > 1 else ""
            parts.append(f"{n} {word}{several}" if value.size > 1 else word)
    return f"{x.type}  {', '.join(parts)}"


# ---------------------------------------------------------------------------- what is said

def fault(x, path):
    """The NanError of a result with a fault."""
    last = x.site if isinstance(x, Sited) else None
    if last is None:
        name = tree.path_text("result", path)
        return NanError(f"{name} has {counted(x)}, and so had an argument.",
                        fix="look at the arguments", where=None)
    site = last.first()
    given = [f"argument {k + 1} of {site.op.name}: {row}" for k, row in enumerate(site.rows)]
    if site is not last:
        at = f" at {last.place.short}" if last.place is not None else ""
        given.append(f"then {last.op.name} made {last.what}{at}")
    given.append(f"{tree.path_text('result', path)} has {counted(x)}")
    return NanError(site.title(), given=given, fix=site.fixes(), where=site.place)


def table(sites):
    """Every Site as a line: where, what, of which arguments, and whether it reached a result."""
    rows = [(s.place.short if s.place is not None else "", "∂" if s.backward else "",
             s.op.name, s.what, "" if s.reached else "masked", " · ".join(s.rows)) for s in sites]
    return "\n".join(line.rstrip() for line in text.columns(rows, gap="  "))


# ---------------------------------------------------------------------------- entries

def entry(function):
    """A function that users enter the library by: its errors show their frames only, and with
    FGRAD_NANS=1 it is watched.
    """
    if not config.nans():
        return boundary(function)

    @functools.wraps(function)
    def watched(*args, **kwargs):
        if current() is not EVALUATE:
            return function(*args, **kwargs)
        watch = Watch(EVALUATE)
        return watch.check(watch.run(functools.partial(function, **kwargs), *args))
    return boundary(watched)
