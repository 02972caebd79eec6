"""Where the time of a compiled function goes: its steps, measured one by one while it runs.

    step on cpu: 412 us a call, median of 640 calls
       us     %  GFLOP/s  GB/s  limit  runs  step
    151.2  36.7    171.2   8.0    92%     1  step1   mlp.py:7   x @ w1, :8
      ...
      3.1   0.8                              outside of the steps

A copy of the compiled Plan has a mark behind every step: a step of the host that looks at the
clock.  So every backend can be measured, and its code is the code that runs without marks.  What a
mark takes is known from marks behind each other, and taken off.  What the processor needs at least
is measured too, beside the work that a kernel has by its loop IR.  Relies on the compile driver;
jit relies on it.
"""

from __future__ import annotations

import json
import time
from collections import Counter, namedtuple
from itertools import groupby, pairwise
from statistics import median

from . import compile as driver
from . import config, source, tree
from .backends import base
from .core import as_value
from .errors import ConcretizationError
from .jitted import copy_of
from .later import lazily
from .loop import Call, Contract, For, Kernel, Loop, is_idle, turns_of
from .loop_text import loop_head
from .passes import work
from .records import replace
from .text import counted
from .types import ArrayType

SECONDS = 1.0              # how long a function is measured
FEWEST = 3                 # calls of it, after as many for practice
MOST = 1000
LINES = 3                  # of the user's that are named beside a step
SHOWN = 1e-3               # share of a call from which a step has a line of its own

limits = lazily("fgrad.backends.llvm.limits")


class Step(namedtuple("Step", "name seconds runs operations bytes least where")):
    """A step of a compiled function: a kernel, a loop, or an operation that NumPy runs.

    seconds, operations, bytes: of all its `runs` in one call.  operations: on numbers, of which a
    multiply-add is two and an exponential one.  bytes: of the arrays that it reads and writes, each
    counted once a run; what is read at places that an array says is left out.  least: the seconds
    in which this processor multiplies and adds as often, or copies as much; None where that says
    nothing (other devices, what NumPy runs, loops).  where: the user's lines that it computes.
    """
    __slots__ = ()


class Profile:
    """What a call of a compiled function takes; print it, or `save` it for a viewer.

    seconds: of a whole call, the median of `calls`.  steps: its Steps in order, each with the
    median of its seconds.
    """

    def __init__(self, name, device, seconds, calls, steps, events):
        self.name, self.device, self.seconds, self.calls = name, device, seconds, calls
        self.steps, self.events = steps, events

    def __str__(self):
        inside = sum(step.seconds for step in self.steps)
        whole = max(self.seconds, inside)
        order = sorted(self.steps, key=lambda step: -step.seconds)
        shown = [step for step in order if step.seconds >= SHOWN * whole] or order[:1]
        rows = [["us", "%", "GFLOP/s", "GB/s", "limit", "runs", "step"]]
        for step in shown:
            rates = [rate(n, step.seconds) for n in (step.operations, step.bytes)]
            rows.append([*share(step.seconds, whole), *rates, of_limit(step), f"{step.runs:,}",
                         f"{step.name}   {step.where}".rstrip()])
        rest = order[len(shown):]
        if rest:
            rows.append([*share(sum(step.seconds for step in rest), whole), "", "", "",
                         f"{sum(step.runs for step in rest):,}",
                         counted(len(rest), "short step")])
        rows.append([*share(whole - inside, whole), "", "", "", "", "outside of the steps"])
        widths = [max(map(len, column)) for column in zip(*rows)][:-1]
        return "\n".join([
            f"{self.name} on {self.device}: {in_words(self.seconds)} a call, "
            f"median of {counted(self.calls, 'call')}",
            *["  ".join([*map(str.rjust, numbers, widths), what]) for *numbers, what in rows]])

    __repr__ = __str__

    def save(self, path):
        """Writes the last call as a trace, in the JSON that Perfetto and chrome://tracing read."""
        events = [{"name": name, "ph": "X", "pid": 0, "tid": 0, "ts": 1e6 * start,
                   "dur": 1e6 * seconds, "args": {"where": where}}
                  for name, where, start, seconds in self.events]
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def share(seconds, whole):
    """Microseconds, and hundredths of the whole."""
    digits = 1 if whole > 1e-5 else 3
    return f"{1e6 * seconds:.{digits}f}", f"{100 * seconds / whole:.1f}" if whole else ""


def rate(count, seconds):
    """Thousands of millions in a second; nothing of nothing."""
    return f"{count / seconds / 1e9:.1f}" if count and seconds else ""


def of_limit(step):
    """How near a step comes to what the processor can do, in hundredths."""
    return f"{100 * step.least / step.seconds:.0f}%" if step.least and step.seconds else ""


def in_words(seconds):
    """`412 us`, `1.92 ms` or `3.4 s`."""
    unit, size = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3)) if seconds >= s),
                      ("us", 1e-6))
    return f"{seconds / size:.3g} {unit}"


# ---------------------------------------------------------------------------- measuring

def profile(jitted, args, kwargs):
    """The Profile of a jitted function; see `Jitted.profile`."""
    apart, trace = jitted.found(args, kwargs)
    if trace.captured or apart.traced or any(isinstance(v, ArrayType) for v in apart.values):
        raise ConcretizationError("profile runs the function, and there are no values to run it "
                                  "with.", expected="arrays, outside of every transformation")
    device, program = apart.device, driver.inlined(trace.program)
    backend = base.find(device)
    clock = Clock(lambda: backend.wait(device), backend.is_whole)
    made = driver.built(program, device, trace.donate, clock.marked)
    marked = function_of(driver.of_values(made, program), program, jitted.__name__, device)
    donated, seconds = {apart.places[k] for k in trace.donate}, []

    def call():
        leaves = [copy_of(as_value(x)) if k in donated else x for k, x in enumerate(apart.leaves)]
        args, kwargs = tree.unflatten(apart.structure, leaves)
        start = time.perf_counter()
        jitted(*args, **kwargs)
        backend.wait(device)
        seconds.append(time.perf_counter() - start)

    def call_marked():
        values = [copy_of(x) if k in trace.donate else x for k, x in enumerate(apart.values)]
        with clock:
            marked(*values)
    by_turns(call, call_marked)
    known = limits().known(config.threads()) if device == "cpu" else None
    return Profile(jitted.__name__, device, median(seconds[FEWEST:]), len(seconds) - FEWEST,
                   *clock.read(FEWEST, known))


def function_of(executable, program, name, device):
    """An executable as a function of the Program's inputs; on the CPU a native one, as jit's."""
    constants = [array for _, array in program.hidden]

    def called(*values):
        return executable([*values, *constants])
    if device != "cpu":
        return called
    _, results = tree.flatten((0,) * len(program.out_types))
    forms = ["array"] * len(program.in_types)
    native = executable.native(program.in_types, forms, constants, results, called, name)
    return called if native is None else native


def by_turns(*functions):
    """Calls functions by turns: FEWEST times for practice, then for some time."""
    count, end = 0, None
    while count < 2 * FEWEST or count < MOST and time.perf_counter() < end:
        for function in functions:
            function()
        count += 1
        if count == FEWEST:
            end = time.perf_counter() + SECONDS


class Mark:
    """The operation of a mark: it notes the time, and behind which step."""
    name, multiple, nested, prepare = "mark", True, False, None

    def __init__(self, note):
        self.note = note

    def numpy(self):
        self.note()
        return ()

    def into(self, outs):
        self.note()


class Clock:
    """The marks of a Plan, and what they note.

    wait(): returns when what was started has ended.  is_whole: see Backend.
    """

    def __init__(self, wait, is_whole):
        self.wait, self.is_whole = wait, is_whole
        self.known = []                          # of each step (a Step of one run, what it runs)
        self.noted = []                          # (position of a step or None, time), of one call
        self.calls = []                          # of each call (sums by step, what a mark takes)
        self.caller = None                       # the source of the Loop that calls what is marked

    def __enter__(self):
        """A call begins."""
        self.noted = []

    def __exit__(self, error, *rest):
        """It ends: in a loop there may be millions of marks, so only sums are kept."""
        if error is not None:
            return
        taken = Counter()
        for k, _, seconds in self.spent():
            taken[k] += seconds
        self.calls.append((taken, self.noted[1][1] - self.noted[0][1]))

    def spent(self):
        """(position of a step, where it began, seconds until its mark) in the last call."""
        for (_, start), (k, end) in pairwise(self.noted):
            if k is not None:
                yield k, start, end - start

    def note(self, k):
        self.wait()
        self.noted.append((k, time.perf_counter()))

    def mark(self, steps=(), loop=""):
        """A step of a Plan: steps that are measured together have ended, or none has."""
        k = None
        if steps:
            k = len(self.known)
            self.known.append((described(steps, loop, self.caller), steps))
        return Call("mark", Mark(lambda: self.note(k)), {}, [], [])

    def marked(self, plan):
        """The Plan with marks; it begins with two, between which there is nothing."""
        with_marks = self.with_marks(plan, "")
        return replace(with_marks, steps=[self.mark(), *with_marks.steps])

    def with_marks(self, plan, loop):
        """A Plan with a mark in front and one behind every step.  loop: what its names begin with.
        """
        steps = [self.mark()]
        for turns, found in groupby(plan.steps, key=turns_of):
            if turns is None:
                for step in found:
                    steps += self.step(step, loop)
            else:
                found = list(found)
                steps += [*found, self.mark(found, loop)]
        return replace(plan, steps=steps)

    def step(self, step, loop):
        """A step of a Plan and its mark; of a Loop the marks are inside, where there can be some.
        """
        if isinstance(step, Loop) and not self.is_whole(step):
            before, self.caller = self.caller, step.source if step.kind == "call" else self.caller
            plans = tuple([self.with_marks(p, f"{loop}{step.name}/") for p in step.plans])
            self.caller = before
            return [replace(step, plans=plans), self.mark()]
        idle = isinstance(step, Kernel) and is_idle(step)
        return [step] if idle else [step, self.mark([step], loop)]

    def read(self, first, limits):
        """(Steps, events of the last call); Steps of the calls noted but the first.

        limits: what the device does at best, or None.  An event: name, where, seconds from the
        beginning, seconds that it took.
        """
        sums, marks = zip(*self.calls[first:])
        mark, begin = median(marks), self.noted[0][1]
        runs = Counter(k for k, _, _ in self.spent())
        found = []
        for k, (step, steps) in enumerate(self.known):
            if runs[k]:
                spent = median(taken[k] for taken in sums) - runs[k] * mark
                least = limits and least_of(steps, limits)
                found.append(step._replace(
                    seconds=max(0.0, spent), runs=runs[k], operations=step.operations * runs[k],
                    bytes=step.bytes * runs[k], least=least and least * runs[k]))
        names = [(step.name, step.where) for step, _ in self.known]
        return found, [(*names[k], start - begin, max(0.0, seconds - mark))
                       for k, start, seconds in self.spent()]


# ---------------------------------------------------------------------------- steps in words

def described(steps, loop, caller):
    """The Step of some steps that are measured together, of one run and no time.

    caller: the source that stands for those of steps which are on no line of the user's.
    """
    names = ", ".join(map(name_of, steps))
    turns = " by turns" * (len(steps) > 1)
    return Step(loop + names + turns, 0.0, 1, *map(sum, zip(*map(work_of, steps))), None,
                lines(where if where and where[0] else caller
                      for s in steps for where in sources(s)))


def least_of(steps, limits):
    """The seconds that some steps take at least, if all are kernels."""
    if not all(isinstance(s, Kernel) for s in steps):
        return None
    total = 0.0
    for kernel in steps:
        with kernel.space:
            moved, done = work.moved(kernel), work.operations(kernel) * words(kernel)
        reads, writes = [sum(moved[b] for b in dict.fromkeys(buffers))
                         for buffers in (kernel.params, kernel.outputs)]
        total += limits.seconds(done, reads, writes)
    return total


def words(kernel):
    """How many words of 32 bits a number has that the kernel computes: as many vectors it takes."""
    return max(b.type.dtype.itemsize for b in kernel.outputs) // 4 or 1


def name_of(step):
    """What a step is called; of what NumPy runs it is the operation."""
    match step:
        case Loop():
            return loop_head(step)
        case Call():
            return f"{step.op.name} (not fused)"
    return step.name


def work_of(step):
    """(operations, bytes moved) of a step; of a loop only what is known before it runs."""
    match step:
        case Kernel():
            with step.space:
                return work.operations(step), sum(work.moved(step).values())
        case Loop(kind="scan"):
            inner = [work_of(s)[0] for p in step.plans for s in p.steps]
            return step.length * sum(inner), 0
        case Loop():
            return 0, 0
    return 0, sum(b.type.nbytes for b in (*step.params, *step.outputs) if hasattr(b, "type"))


def sources(step):
    """The (source, mark) pairs of what a step computes, in order."""
    if not isinstance(step, Kernel):
        yield step.source
        return
    stack = step.body[::-1]
    while stack:
        s = stack.pop()
        yield getattr(s, "source", None)
        if isinstance(s, For | Contract):
            stack += s.body[::-1]


def lines(wheres):
    """The user's lines of (source, mark) pairs: `mlp.py:7   x @ w1, :8, ∂ :7`; ∂: derivatives."""
    found = {}
    for where in wheres:
        code, mark = where if where is not None else (None, None)
        place = source.place(code if mark is None else mark)
        if place is not None and place.file:
            found.setdefault((place.file, place.line, mark is not None), place)
    parts, file = [], None
    for (name, line, is_derivative), place in list(found.items())[:LINES]:
        at = f":{line}" if name == file else place.short
        words = "" if parts or is_derivative else "   " + place.words
        parts.append(("∂ " * is_derivative + at + words).rstrip())
        file = name
    return ", ".join(parts + ["…"] * (len(found) > LINES))
