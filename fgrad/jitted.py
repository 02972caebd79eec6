"""jit: a function staged once per signature, compiled, and called without Python where that is
possible.

    call → key of the signature → trace (once) → executable (once) → results

Under a transformation the compiled function is one `call` operation whose rules are Programs made
from it.  Python ints and bools are traced; those whose value tracing turns out to need become
static.  Of a function that is called with plain arrays by position, later calls go through a
native entry.  Relies on `signature` for keys, `interpreters.stage` for tracing, `compile` for
executables, `history` and `lowered` for what users ask; `fgrad.inspect` relies on it.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict, namedtuple
from contextvars import ContextVar

from . import compile as driver
from . import config, signature, tree
from .aligned import copied
from .arguments import check_function, name_of
from .blocks import block
from .core import (
    EVALUATE, Value, array_of, bound_axes, current, expect_memory, give_away, memory_of)
from .errors import boundary
from .history import History, Record, static_numbers
from .interpreters.call import call
from .interpreters.stage import Specialise, stage
from .interpreters.watch import entry
from .later import lazily
from .lowered import Lowered, summary
from .native_entry import Chain
from .text import counted
from .types import CHOICES, other_rules, rules

profiling = lazily("fgrad.profiling")
CacheInfo = namedtuple("CacheInfo", "hits misses size")
TRACES = 64                # kept per function
DISABLED = ContextVar("fgrad_disable_jit", default=False)     # set by disable_jit
CHOICES.append(DISABLED)


@block
def disable_jit(disable=True):
    """Within the block jitted functions run as the Python functions they are, on values.

    For debugging: `print`, `if` and pdb see the numbers of every call.  Functions that are given to
    loops (`lax.scan`) are traced all the same.  Other threads are not concerned.

    >>> import fgrad
    >>> f = fgrad.jit(lambda x: print("x is", x) or x * 2)
    >>> with fgrad.disable_jit():
    ...     f(1.5)
    x is 1.5
    3.0
    """
    with other_rules(DISABLED, bool(disable), True):
        yield


class Trace:
    """One staged signature: its Program, the tracers it closed over, how results are put together.

    `donate`: positions of the donated among the traced values.  `called`: has it been run before?
    """

    def __init__(self, key, staged, donate):
        self.key, self.donate = key, donate
        self.program, self.captured, self.out = staged.program, staged.captured, staged.out
        self.called = False

    def results(self, values):
        """The values as the function's result."""
        return tree.unflatten(self.out, values)


class Jitted:
    """A compiled function; call it like the function itself.

    Made by `fgrad.jit`.  Each has a class of its own, so that its `__call__` can become native.
    Threads share it: its tables change under its lock, while tracing and running hold none.
    """

    def __init__(self, function, options, max_traces, device):
        functools.update_wrapper(self, function)
        self.__name__ = name_of(function)
        self.function, self.device = function, device
        self.signature = signature.Signature(function, **options)
        self.history = History(self.__name__, self.signature.leaf_name, max_traces)
        self.traces = OrderedDict()              # key → Trace, least used first
        self.specialised = {}                    # structure → frozenset of leaves that are static
        self.hits = 0
        self.chain = Chain(self)
        self.lock = threading.RLock()            # guards the five above

    def __repr__(self):
        return f"jit({getattr(self.function, '__qualname__', self.function)})"

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self):
        return getattr(self.function, "__qualname__", self.__name__)     # as functions are pickled

    @entry
    def call(self, *args, **kwargs):
        """The result of the function, compiled for this signature."""
        if DISABLED.get():
            return self.function(*args, **kwargs)
        apart, trace = self.found(args, kwargs)
        if trace.captured or apart.traced or current() is not EVALUATE:
            values = *apart.values, *trace.captured
            return trace.results(call(*values, program=trace.program, device=self.device))
        return self.run(apart, trace, args, kwargs)

    def found(self, args, kwargs):
        """(the call taken apart, its Trace); again, where a Python number had to become static."""
        while True:
            apart = self.take_apart(args, kwargs)
            trace = self.lookup(apart)
            if trace is not None:
                return apart, trace

    def take_apart(self, args, kwargs):
        """The call as leaves, keys and values."""
        wrapped = self.signature.wrapped(args, kwargs)

        def name(k):
            return self.signature.leaf_name(tree.flatten_with_path(wrapped)[0][k][0])
        apart = signature.take_apart(*wrapped, self.specialised, name)
        apart.device = driver.device_of(apart.values, self.device)
        return apart

    def run(self, apart, trace, args, kwargs):
        """The results of a call outside of every transformation.

        After the second of a signature such calls are native: a function that is called once does
        not pay for that.
        """
        device = apart.device
        compiled = driver.compiled(trace.program, device, trace.donate)
        values, lent = [], lent_by_numpy(apart) if device == "cpu" else ()
        if trace.donate:
            expect_memory(apart.values)          # else those that have theirs would lose it
        try:
            values = [copy_of(x) if lent and id(memory_of(x)) in lent else x
                      for x in compiled(apart.values)]
        finally:                                 # a run that was stopped has written to them, too
            give_away([apart.values[k] for k in trace.donate], values)
        again, trace.called = trace.called, True
        if again:
            with self.lock:
                self.chain.add(apart, trace, compiled, args, kwargs)
        return trace.results(values)

    def leave_native(self):
        """Calls look at the blocks around them again, until the next one of its signature has run.
        """
        with self.lock:
            self.chain.cut(self.chain.careful)

    # -- tracing ------------------------------------------------------------------------------

    def lookup(self, apart):
        """The Trace of a signature, made when there is none; None when a number becomes static."""
        device = apart.device
        context = rules() if device == "cpu" else (rules(), device)
        key = apart.structure, apart.keys, tuple(bound_axes().items()), context
        with self.lock:
            trace = self.traces.get(key)
            if trace is not None:
                self.hits += 1
                self.traces.move_to_end(key)
                return trace
            record = Record(*key, tree.paths(apart.structure), False)
            static = static_numbers(apart.keys, self.specialised.get(apart.structure, ()))
            self.history.check(record, static)
        token = config.CHOSEN_DEVICE.set(device)         # what is traced may ask where it will run
        try:
            trace = self.trace(apart, key, record.paths)
        finally:
            config.CHOSEN_DEVICE.reset(token)
        return trace and self.kept(trace, record, static)

    def kept(self, trace, record, static):
        """The Trace, kept; or the one that another thread has made of this signature meanwhile."""
        with self.lock:
            before = self.traces.get(trace.key)
            if before is not None and not trace.captured:
                return before
            self.history.add(record._replace(captured=bool(trace.captured)), static)
            if not trace.captured:               # another call may close over other tracers
                self.traces[trace.key] = trace
            while len(self.traces) > TRACES:
                self.traces.popitem(last=False)
        return trace

    def trace(self, apart, key, paths):
        """The Trace of this signature, or None when a Python number is static from now on."""
        keys = [apart.keys[leaf] for leaf in apart.places]
        numbers = {k: n for k, n in enumerate(map(signature.number_of, keys)) if n}
        whole = {k for k in numbers if apart.values[k].dtype.kind in "ib"}
        names = [self.signature.leaf_name(paths[leaf]) for leaf in apart.places]
        try:
            with driver.uncollected():
                staged = stage(self.function_of(apart), [signature.key_type(k) for k in keys],
                               name=self.__name__, names=names, numbers=numbers,
                               specialisable=whole)
        except Specialise as signal:
            if signal.owner.specialisable is not whole:
                raise                            # it is for a jit further out
            return self.specialise(apart, [apart.places[k] for k in signal.arguments])
        donated = tuple(k for k, leaf in enumerate(apart.places)
                        if self.signature.donated_leaf(paths[leaf]))
        return Trace(key, staged, donated)

    def function_of(self, apart):
        """The function of the traced leaves alone."""
        position = {leaf: k for k, leaf in enumerate(apart.places)}

        def function(*tracers):
            leaves = [tracers[position[k]] if k in position else static_of(x, apart.keys[k])
                      for k, x in enumerate(apart.leaves)]
            args, kwargs = tree.unflatten(apart.structure, leaves)
            return self.function(*args, **kwargs)
        return function

    def specialise(self, apart, leaves):
        """Makes the Python numbers at these leaves static."""
        with self.lock:
            before = self.specialised.get(apart.structure, frozenset())
            self.specialised[apart.structure] = before.union(leaves)

    # -- what users ask -----------------------------------------------------------------------

    def cache_info(self):
        """CacheInfo(hits, misses, size): calls that found a trace (native calls are not counted),
        traces made, traces kept.
        """
        with self.lock:
            return CacheInfo(self.hits, self.history.count, len(self.traces))

    def explain(self):
        """Text: the traces of this function, why each was made, and the memory that it needs."""
        with self.lock:
            kept = list(self.traces.values())
            lines = [f"{self.__name__}: {counted(self.history.count, 'trace')}",
                     *self.history.lines()]
        return "\n".join(lines + [f"  {summary(trace.program)}" for trace in kept])

    @boundary
    def profile(self, *args, **kwargs):
        """Where the time of a call with these arguments goes: a printable Profile of its steps.

        The function is compiled, then called for about a second, by itself and with the clock read
        behind each of its kernels; what it prints or calls back happens as often.  Arguments that
        it is given to keep (`donate_argnums`) are copied before.
        Raises ConcretizationError within transformations, and for types in place of arrays.

        >>> import fgrad.numpy as fnp
        >>> f = jit(lambda x: fnp.sum(x @ x))
        >>> found = f.profile(fnp.ones((64, 64)))
        >>> [step.operations for step in found.steps], found.seconds > 0
        ([524288, 4096], True)
        """
        return profiling().profile(self, args, kwargs)

    def clear_cache(self):
        """Forgets every trace."""
        with self.lock:
            self.chain.cut(0)
            self.traces.clear()
            self.specialised.clear()
            self.history.clear()

    @boundary
    def lower(self, *args, **kwargs):
        """The Lowered form for these arguments, which may be arrays or their types."""
        apart, trace = self.found(args, kwargs)
        return Lowered(trace, apart.device)


def static_of(leaf, key):
    """The value that the function sees for a static leaf."""
    return leaf.value if leaf.__class__ is signature.Static else key.value


def lent_by_numpy(apart):
    """The memory, by its id, of what is no Array in a call: it may be written to afterwards."""
    return {id(memory_of(v)) for v, k in zip(apart.values, apart.places)
            if not isinstance(apart.leaves[k], Value)}


def copy_of(x):
    """An Array in memory of its own."""
    return array_of(copied(memory_of(x)), x.dtype)


@boundary
def jit(function=None, *, static_argnums=None, static_argnames=None, donate_argnums=None,
        donate_argnames=None, device=None, max_traces=None):
    """The function, compiled: traced once per signature of its arguments, then run as native code.

    Arrays and Python numbers are traced.  Strings, functions, enums, dtypes and frozen objects are
    static by themselves: each value is compiled for.  `static_argnums`/`static_argnames` make other
    arguments static, `donate_argnums`/`donate_argnames` let results take over the memory of
    arguments, which must not be used again.  `device` is "cpu", "opencl", "opencl:0", …; the
    default is where the arguments are, or that of the block (`fgrad.device`), or FGRAD_DEVICE.
    `max_traces` makes a retrace beyond that number an error.

    Raises ArgumentError for parameters that do not exist or static values that cannot be hashed,
    and ConcretizationError where the function needs the value of a traced array.

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
    device = getattr(device, "name", device)     # one of fgrad.devices()
    own = type("Jitted", (Jitted,), {"__call__": Jitted.call, "__module__": "fgrad"})
    return own(function, options, max_traces, device)
