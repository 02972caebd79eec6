"""jit: a function staged once per signature, compiled, and called without Python where that is possible.

    call → key of the signature → trace (once) → executable (once) → results

Under a transformation the compiled function is one `call` operation whose rules are Programs made from
it.  Python ints and bools are traced; those whose value tracing turns out to need become static.  Of a
function that is called with plain arrays by position, later calls go through a native entry.
"""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict, namedtuple

from . import compile as driver
from . import signature, tree, types
from .arguments import check_function
from .core import EVALUATE, Array, current
from .backends.base import Same
from .errors import ConcretizationError, DonationError, notice
from .interpreters.call import call
from .interpreters.stage import Specialise, stage
from .text import counted
from .types import ArrayType

CacheInfo = namedtuple("CacheInfo", "hits misses size")
VALUES = 8                 # of one Python number that may be specialised on
TRACES = 64                # kept per function
CHAIN = 8                  # native entries per function
JITTED = weakref.WeakSet()
NOTICE = 5                 # traces after which the user is told why


class Trace:
    """One staged signature: its Program, the tracers it closed over, and how results are put together."""

    def __init__(self, key, program, captured, out, donate):
        self.key, self.program, self.captured, self.out = key, program, captured, out
        self.donate, self.native = donate, False

    def results(self, values):
        """The values as the function's result."""
        return tree.unflatten(self.out, values)


class Jitted:
    """A compiled function; call it like the function itself.

    Made by `fgrad.jit`.  Each has a class of its own, so that its `__call__` can become native code.
    """

    def __init__(self, function, options, max_traces, device):
        functools.update_wrapper(self, function)
        self.__name__ = getattr(function, "__name__", None) or getattr(
            getattr(function, "func", None), "__name__", type(function).__name__)
        self.function, self.signature = function, signature.Signature(function, **options)
        self.max_traces, self.device = max_traces, device
        self.traces = OrderedDict()              # key → Trace, least used first
        self.history = []                        # (structure, keys, paths) of every trace, for explain()
        self.specialised = {}                    # structure → leaf numbers that are static by now
        self.hits = 0
        self.natives = []                        # installed, each falls back on the one before
        JITTED.add(self)

    def __repr__(self):
        return f"jit({getattr(self.function, '__qualname__', self.function)})"

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def call(self, *args, **kwargs):
        """The result of the function, compiled for this signature."""
        while True:
            apart = self.take_apart(args, kwargs)
            trace = self.lookup(apart)
            if trace is None:                    # a Python number is static by now: look again
                continue
            if trace.captured or apart.traced or current() is not EVALUATE:
                out = call(*apart.values, *trace.captured, program=trace.program, device=self.device)
                return trace.results(out)
            return self.run(apart, trace, args, kwargs)

    def take_apart(self, args, kwargs):
        """The call as leaves, keys and values."""
        wrapped = self.signature.wrapped(args, kwargs)

        def name(k):
            return self.signature.leaf_name(tree.flatten_with_path(wrapped)[0][k][0])
        return signature.take_apart(*wrapped, self.specialised, name)

    def run(self, apart, trace, args, kwargs):
        """The results of a call outside of every transformation; makes the next such call native."""
        device = driver.device_of(apart.values, self.device)
        compiled = driver.compiled(trace.program, device, trace.donate)
        values = compiled(apart.values)
        for k in trace.donate:
            consume(apart.values[k])
        if not kwargs and device == "cpu" and not trace.native:
            self.install(apart, trace, compiled, args)
        return trace.results(values)

    def install(self, apart, trace, compiled, args):
        """Lets the class's `__call__` begin with a native function for calls of this very signature.

        What it does not recognise goes to the one installed before, and at last to `call`.
        """
        trace.native = True
        forms = native_forms(apart, args)
        if forms is None or trace.donate or trace.key[-1] != signature.STANDARD or len(self.natives) == CHAIN:
            return
        before = self.natives[-1] if self.natives else self.call
        native = compiled.executable.native(
            trace.program.in_types, forms, compiled.constants, trace.out, before, self.__name__)
        if native is not None:
            self.natives.append(native)
            type(self).__call__ = staticmethod(native)

    def uninstall(self):
        """Every call goes through Python again."""
        self.natives.clear()
        type(self).__call__ = Jitted.call
        for trace in self.traces.values():
            trace.native = False

    # -- tracing --------------------------------------------------------------------------------

    def lookup(self, apart):
        """The Trace of a signature, made when there is none; None when a number had to become static."""
        key = apart.structure, apart.keys, signature.context()
        trace = self.traces.pop(key, None)
        if trace is not None:
            self.hits += 1
            self.traces[key] = trace             # it is the latest used
            return trace
        trace = self.trace(apart, key)
        if trace is not None and not trace.captured:                     # another call may close over other tracers
            self.traces[key] = trace
            while len(self.traces) > TRACES:
                self.traces.popitem(last=False)
        return trace

    def trace(self, apart, key):
        """Stages the function for this signature."""
        paths = tree.paths(apart.structure)
        self.check_values(apart, paths)
        traced = {leaf: k for k, leaf in enumerate(apart.places)}
        names = [self.signature.leaf_name(paths[leaf]) for leaf in apart.places]
        keys = [apart.keys[leaf] for leaf in apart.places]
        numbers = {k for k, key_ in enumerate(keys) if signature.is_number_key(key_)}
        whole = {k for k in numbers if apart.values[k].dtype.kind in "ib"}

        def function(*tracers):
            leaves = [tracers[traced[k]] if k in traced else static_of(x, apart.keys[k])
                      for k, x in enumerate(apart.leaves)]
            args, kwargs = tree.unflatten(apart.structure, leaves)
            return self.function(*args, **kwargs)

        try:
            staged = stage(function, [signature.key_type(k) for k in keys], name=self.__name__, names=names,
                           numbers=numbers, specialisable=whole)
        except Specialise as signal:
            if signal.owner.specialisable is not whole:
                raise                            # it is for a jit further out
            return self.specialise(apart, [apart.places[k] for k in signal.arguments])
        self.remember(apart, paths)
        donate = tuple(k for k, leaf in enumerate(apart.places) if self.signature.donated_leaf(paths[leaf]))
        return Trace(key, staged.program, staged.captured, staged.out, donate)

    def specialise(self, apart, places):
        """Makes the Python numbers at these leaves static.  Raises when one has had too many values."""
        self.specialised.setdefault(apart.structure, set()).update(places)

    def check_values(self, apart, paths):
        """Raises ConcretizationError when a Python number is about to be compiled for a ninth value."""
        for leaf in self.specialised.get(apart.structure, ()):
            seen = {keys[leaf] for structure, keys, _ in self.history if structure == apart.structure}
            seen = {k for k in seen if isinstance(k, signature.Static)}
            if len(seen) >= VALUES and apart.keys[leaf] not in seen:
                name = self.signature.leaf_name(paths[leaf])
                raise ConcretizationError(
                    f"`{self.__name__}` needs the value of `{name}`, and has been compiled for {VALUES} values of it.",
                    given=f"{name} = {apart.keys[leaf]}, after " + ", ".join(sorted(map(repr, seen))),
                    fix=[f"static_argnames={name!r}, if it takes few values", "or pass an array of a fixed shape instead"])

    def remember(self, apart, paths):
        """Keeps the signature for explain(), and tells the user when there are too many."""
        self.history.append((apart.structure, apart.keys, paths))
        count = len(self.history)
        limit = self.max_traces
        if limit is not None and count > limit:
            raise ConcretizationError(
                f"{self.__name__} may be traced {limit} times, and is about to be traced again: {self.why()}.",
                fix="call it with the same shapes and dtypes, or raise max_traces")
        if count == NOTICE:
            notice((id(self), "traces"),
                   f"`{self.__name__}` has been traced {count} times; {self.why()}. Each trace is compiled anew: "
                   "keep shapes and dtypes equal (pad the last batch, or drop it)")

    def why(self):
        """In words, what made the latest trace necessary: its difference from the closest one before."""
        if len(self.history) < 2:
            return "it is the first trace"
        structure, keys, paths = self.history[-1]

        def distance(other):
            return (other[0] != structure) * 1000 + sum(a != b for a, b in zip(other[1], keys))
        closest = min(reversed(self.history[:-1]), key=distance)          # of equals the latest
        return signature.difference(closest, (structure, keys), closest[2], paths, self.signature.leaf_name)

    # -- what users ask -------------------------------------------------------------------------

    def cache_info(self):
        """CacheInfo(hits, misses, size): calls that found a trace (native calls are not counted), traces
        made, traces kept."""
        return CacheInfo(self.hits, len(self.history), len(self.traces))

    def explain(self):
        """Text: each trace of this function, why it was made, and the memory of its compiled form."""
        lines = [f"{self.__name__}: {counted(len(self.history), 'trace')}"]
        history = self.history
        for k in range(len(history)):
            self.history = history[:k + 1]
            lines.append(f"  {k + 1}. {self.why()}")
        self.history = history
        for trace in self.traces.values():
            memory = memory_text(trace, self.device)
            operations = counted(len(trace.program.eqns), "operation")
            lines.append(f"  {trace.program.name}: {operations}{memory}")
        return "\n".join(lines)

    def clear_cache(self):
        """Forgets every trace."""
        self.uninstall()
        self.traces.clear()
        self.specialised.clear()
        self.history.clear()

    def lower(self, *args, **kwargs):
        """The Lowered form for these arguments, which may be arrays or their types."""
        while True:
            apart = self.take_apart(args, kwargs)
            trace = self.lookup(apart)
            if trace is not None:
                return Lowered(trace, driver.device_of(apart.values, self.device))


def native_forms(apart, args):
    """Per positional argument what the native entry expects there, or None where it cannot tell.

    The structure of the call is that of (args, {}); a leaf is an array, a Python float, or one object.
    """
    def form(structure, given):
        if structure.kind is None:
            k = next(leaves)
            key = apart.keys[k]
            if isinstance(key, ArrayType):
                return "array"
            return "float" if key is float else Same(given) if isinstance(key, signature.Static) else None
        cls, children = structure.kind.cls, structure.children
        if cls is type(None):
            return Same(None)
        if cls is dict and all(isinstance(k, str) for k in structure.meta):
            parts = {k: form(c, given[k]) for k, c in zip(structure.meta, children)}
            return None if None in parts.values() else parts
        parts = [form(c, x) for c, x in zip(children, given)] if issubclass(cls, (tuple, list)) else [None]
        if None in parts:
            return None
        return structure.kind.make(structure.meta, parts)

    leaves = iter(range(len(apart.leaves)))
    found = [form(c, a) for c, a in zip(apart.structure.children[0].children, args)]
    return None if None in found else found


def static_of(leaf, key):
    """The value that the function sees for a static leaf."""
    return leaf.value if leaf.__class__ is signature.Static else key.value


class Donated(Array):
    """An Array whose memory has been given away."""
    __slots__ = ()

    @property
    def np(self):
        raise DonationError("an array was used after its memory had been donated to a compiled function.",
                            given=f"an array {self.type}",
                            fix=["use the function's result instead", "or leave it out of donate_argnums"])


def consume(value):
    """Marks a donated Array: it must not be used again."""
    if value.__class__ is Array:
        value.__class__ = Donated


def defaults_changed():
    """Native entries know the standard default dtypes only: within default_dtype they are off."""
    for jitted in list(JITTED):
        jitted.uninstall()


types.CHANGED.append(defaults_changed)


def memory_text(trace, device):
    """`, 12 kB of temporaries` once compiled."""
    found = [made for (how, _), made in driver.inlined(trace.program).derived.items() if how is driver.Compiled]
    return f", {found[0].executable.plan.arena:,} bytes of temporaries" if found else ""


class Lowered:
    """One signature of a function, printable at every stage: ir, fused, loops, llvm, asm, opencl, ….

    `str()` is the program; `text(stage)` any stage; `compile()` the compiled function of its leaves.
    """

    def __init__(self, trace, device):
        self.trace, self.device = trace, device

    @property
    def ir(self):
        """The array Program."""
        return self.trace.program

    def __str__(self):
        return str(self.trace.program)

    __repr__ = __str__

    def text(self, stage="ir"):
        """The text of a stage."""
        return driver.text(self.trace.program, stage, self.device)

    def __getattr__(self, stage):
        if stage.startswith("_"):
            raise AttributeError(stage)
        return self.text(stage)

    def compile(self):
        """A function of the flat list of arrays that runs the compiled code and gives the results."""
        compiled = driver.compiled(self.trace.program, self.device)
        return lambda *values: self.trace.results(compiled([signature.as_value(v) for v in values]))


def jit(function=None, *, static_argnums=None, static_argnames=None, donate_argnums=None, donate_argnames=None,
        device=None, max_traces=None):
    """The function, compiled: traced once per signature of its arguments, then run as native code.

    Arrays and Python numbers are traced.  Strings, functions, enums, dtypes and frozen objects are static
    by themselves: each value is compiled for.  `static_argnums`/`static_argnames` make other arguments
    static, `donate_argnums`/`donate_argnames` let results take over the memory of arguments, which must
    not be used again.  `device` is "cpu", "opencl", "opencl:0", …; the default is where the arguments
    are, or FGRAD_DEVICE.  `max_traces` makes a retrace beyond that number an error.

    Raises ArgumentError for parameters that do not exist or static values that cannot be hashed, and
    ConcretizationError where the function needs the value of a traced array.

    >>> import fgrad.numpy as fnp
    >>> f = jit(lambda x: fnp.sum(x * x))
    >>> f(fnp.array([1.0, 2.0, 3.0]))
    Array(14., f32[])
    """
    options = dict(static_argnums=static_argnums, static_argnames=static_argnames,
                   donate_argnums=donate_argnums, donate_argnames=donate_argnames)
    if function is None:
        return functools.partial(jit, device=device, max_traces=max_traces, **options)
    check_function(function, "jit")
    own = type("Jitted", (Jitted,), {"__call__": Jitted.call, "__module__": "fgrad"})
    return own(function, options, max_traces, device)
