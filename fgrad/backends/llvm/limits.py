"""What the machine can do at best: multiply-adds from registers; reading, writing, and copying.

These are loops in LLVM text, run as parts on the pool.  Relies on `target.py` and the pool; the
profiler relies on it, and so do the benchmarks.
"""

from __future__ import annotations

import functools
import time

import numpy as np

from . import native_call, objects, target, threads
from .host import HOST
from .text import PAST_CACHES, declarations

LANES = HOST.vector_bytes // 4
CHAINS = 12 if HOST.registers == 16 else 16      # independent multiply-adds: 4 deep × 2 units
LINES = 4                                        # vectors copied in one turn of the loop
STEP = LINES * HOST.vector_bytes
SERIAL = 1 << 18                                 # bytes below which one thread copies alone
MOVED = 1 << 26                                  # bytes in a measurement: they take far longer
LARGEST = 27                                     # 2**27 bytes move as fast as more of them
WARMING = 0.2                                    # seconds until each thread has a core of its own
ATTRIBUTES = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'


def fma_text():
    """void fma(float* out, i64 n): n turns of CHAINS multiply-adds that stay in registers."""
    vector, chains = f"<{LANES} x float>", range(CHAINS)
    phis = [f"  %a{k} = phi {vector} [ %start, %entry ], [ %b{k}, %loop ]" for k in chains]
    adds = [f"  %b{k} = call {vector} @llvm.fma.v{LANES}f32("
            f"{vector} %a{k}, {vector} %x, {vector} %start)" for k in chains]
    sums = [f"  %s1 = fadd {vector} %b0, %b1",
            *(f"  %s{k} = fadd {vector} %s{k - 1}, %b{k}" for k in chains[2:])]
    return "\n".join([
        f"define void @fma(ptr %out, i64 %n) {ATTRIBUTES} {{",
        "entry:", f"  %start = load {vector}, ptr %out, align 4",
        f"  %x = fmul {vector} %start, %start", "  br label %loop",
        "loop:", "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]", *phis, *adds,
        "  %next = add i64 %i, 1", "  %more = icmp ult i64 %next, %n",
        "  br i1 %more, label %loop, label %done",
        "done:", *sums, f"  store {vector} %s{CHAINS - 1}, ptr %out, align 4", "  ret void", "}"])


def move_text(name, reads=True, writes=True, hint=""):
    """void name(char* to, char* from, i64 bytes, i64 n): n passes; bytes a multiple of STEP.

    Reads `from` and writes it to `to`.  What is only read is asked for by volatile loads, so that
    it need not be used; what is only written is zero.
    """
    vector, moves = f"<{LANES} x float>", []
    load, align = "load" if writes else "load volatile", f"align {HOST.vector_bytes}"
    for k in range(LINES):
        moves += [f"  %o{k} = add i64 %i, {k * HOST.vector_bytes}",
                  f"  %p{k} = getelementptr i8, ptr %from, i64 %o{k}",
                  f"  %q{k} = getelementptr i8, ptr %to, i64 %o{k}"]
        if reads:
            moves.append(f"  %v{k} = {load} {vector}, ptr %p{k}, {align}")
        if writes:
            value = f"%v{k}" if reads else "zeroinitializer"
            moves.append(f"  store {vector} {value}, ptr %q{k}, {align}{hint}")
    return "\n".join([
        f"define void @{name}(ptr %to, ptr %from, i64 %bytes, i64 %n) {ATTRIBUTES} {{",
        "entry:", "  br label %turn",
        "turn:", "  %t = phi i64 [ 0, %entry ], [ %t2, %turned ]", "  br label %loop",
        "loop:", "  %i = phi i64 [ 0, %turn ], [ %i2, %loop ]", *moves,
        f"  %i2 = add i64 %i, {STEP}", "  %more = icmp ult i64 %i2, %bytes",
        "  br i1 %more, label %loop, label %turned",
        "turned:", "  %t2 = add i64 %t, 1", "  %again = icmp ult i64 %t2, %n",
        "  br i1 %again, label %turn, label %done",
        "done:", "  ret void", "}"])


MOVES = {"copy": dict(), "copy_past": dict(hint=PAST_CACHES), "read": dict(writes=False),
         "write": dict(reads=False), "write_past": dict(reads=False, hint=PAST_CACHES)}


PART = """
define void @{name}.part(ptr %job, i64 %k) {{
  %n.at = getelementptr i64, ptr %job, i64 1
  %own = getelementptr [2 x i64], ptr %n.at, i64 %k
  %to.at = getelementptr i64, ptr %own, i64 1
  %from.at = getelementptr i64, ptr %own, i64 2
  %bytes = load i64, ptr %job
  %n = load i64, ptr %n.at
  %to = load ptr, ptr %to.at
  %from = load ptr, ptr %from.at
  call void @{name}({arguments})
  ret void
}}
"""


def compiled():
    """The addresses of what does a part of a job, by name: fma, and each of MOVES.

    A job is numbers: how many bytes, how many turns, then for each part the addresses `to`, `from`.
    """
    moves = [move_text(name, **how) for name, how in MOVES.items()]
    parts = [PART.format(name="fma", arguments="ptr %to, i64 %n"),
             *(PART.format(name=name, arguments="ptr %to, ptr %from, i64 %bytes, i64 %n")
               for name in MOVES)]
    body = "\n".join([fma_text(), *moves, *parts])
    whole = native_call.for_host("\n".join([body, *declarations(body)]))
    [built] = objects.of([whole])
    library = target.load(built)
    return {name: library.address(f"{name}.part") for name in ("fma", *MOVES)}


class Machine:
    """This machine with so many threads of the pool; what it can do is measured whenever asked."""

    def __init__(self, threads, clock=time.perf_counter):
        self.threads, self.clock = threads, clock
        self.parts = compiled()

    def seconds(self, flops, reads, writes):
        """The least time for so many operations, or for moving so many bytes: the larger one."""
        multiply = flops / self.flops_per_second() if flops else 0.0
        return max(multiply, self.moving(reads, writes))

    def moving(self, reads, writes):
        """The least time for bytes that are read and written: a copy of what is both, and the rest.

        Stores may go past the cache where that is faster.
        """
        both, size = min(reads, writes), reads + writes
        parts = [(2 * both, ("copy", "copy_past")), (reads - both, ("read",)),
                 (writes - both, ("write", "write_past"))]
        return sum(part / max(self.bytes_per_second(name, size) for name in names)
                   for part, names in parts if part)

    def flops_per_second(self):
        """f32 multiplications and additions per second."""
        turns = 200_000
        outs = [np.full(LANES, 0.5, "float32") for _ in range(self.threads)]
        taken = self.best("fma", 0, turns, [(out.ctypes.data, 0) for out in outs])
        return 2 * LANES * CHAINS * turns * self.threads / taken

    def bytes_per_second(self, name, size):
        """Bytes per second of one of MOVES that touches `size` bytes in all."""
        workers, sides = self.threads if size >= SERIAL else 1, 2 if "copy" in name else 1
        part = max(size // sides // workers // STEP, 1) * STEP
        turns = max(MOVED // size, 1)
        buffers = [touched(sides * part) for _ in range(workers)]
        starts = [buffer.ctypes.data for buffer in buffers]
        taken = self.best(name, part, turns, [(to, to + (sides - 1) * part) for to in starts])
        return sides * part * turns * workers / taken

    def best(self, name, size, turns, places):
        """The least time of as many parts, run at once, as there are places (to, from)."""
        job = np.array([size, turns, *sum(places, ())], np.int64)
        run, times = threads.pool().run, []
        for _ in range(5):
            start = self.clock()
            run(self.parts[name], job.ctypes.data, len(places))
            times.append(self.clock() - start)
        return min(times)


class Known(Machine):
    """A Machine that measures once: multiply-adds, and for each size, in powers of two, moves."""

    def __init__(self, threads):
        super().__init__(threads)
        self.rates = {}
        self.peak, end = 0.0, self.clock() + WARMING
        while not self.peak or self.clock() < end:
            self.peak = max(self.peak, super().flops_per_second())

    def flops_per_second(self):
        return self.peak

    def bytes_per_second(self, name, size):
        key = name, min(int(size / 2**0.5).bit_length(), LARGEST)         # the nearest power
        if key not in self.rates:
            self.rates[key] = super().bytes_per_second(name, 1 << key[1])
        return self.rates[key]


@functools.cache
def known(threads):
    """What is known of this machine with so many threads; measured at first use."""
    return Known(threads)


def touched(size):
    """So many bytes of memory that has been touched, at the start of a page."""
    raw = np.ones(size + 4096, "uint8")
    start = -raw.ctypes.data % 4096
    return raw[start:start + size]
