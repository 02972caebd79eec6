"""What the machine can do at best: multiply-adds from registers; reading, writing, and copying.

These are loops in LLVM text, compiled by fgrad's own tools, so that they need nothing that fgrad
does not need.  Each thread runs its own; ctypes lets go of Python's lock meanwhile.
"""

from __future__ import annotations

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from fgrad.backends.llvm.host import HOST
from fgrad.backends.llvm.target import compile_text, load

from . import workloads

LANES = HOST.vector_bytes // 4
CHAINS = 12 if HOST.registers == 16 else 16      # independent multiply-adds: 4 deep × 2 units
LINES = 4                                        # vectors copied in one turn of the loop
STEP = LINES * HOST.vector_bytes
SERIAL = 1 << 18                                 # bytes below which one thread copies alone
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
        f"declare {vector} @llvm.fma.v{LANES}f32({vector}, {vector}, {vector})",
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


BYPASS = ", !nontemporal !0"                     # a store that leaves the cache alone
MOVES = {"copy": dict(), "copy_past": dict(hint=BYPASS), "read": dict(writes=False),
         "write": dict(reads=False), "write_past": dict(reads=False, hint=BYPASS)}


def compiled():
    """fma as a function of Python, and each of MOVES by its name."""
    moves = [move_text(name, **how) for name, how in MOVES.items()]
    library = load(compile_text("\n".join([fma_text(), *moves, "!0 = !{i32 1}"])))
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    move = ctypes.CFUNCTYPE(None, pointer, pointer, number, number)
    return (ctypes.CFUNCTYPE(None, pointer, number)(library.address("fma")),
            {name: move(library.address(name)) for name in MOVES})


class Machine:
    """The machine with so many threads; what it can do is measured anew each time it is asked."""

    def __init__(self, threads, clock=time.perf_counter):
        self.threads, self.clock = threads, clock
        self.pool = ThreadPoolExecutor(threads)
        self.fma, self.moves = compiled()

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
        taken = self.best(lambda k: self.fma(outs[k].ctypes.data, turns), self.threads)
        return 2 * LANES * CHAINS * turns * self.threads / taken

    def bytes_per_second(self, name, size):
        """Bytes per second of one of MOVES that touches `size` bytes in all."""
        workers, sides = self.threads if size >= SERIAL else 1, 2 if "copy" in name else 1
        part = max(size // sides // workers // STEP, 1) * STEP
        turns = max(4_000_000 // size, 1)
        buffers = [aligned(sides * part) for _ in range(workers)]

        def task(k):
            start = buffers[k].ctypes.data
            self.moves[name](start, start + (sides - 1) * part, part, turns)
        return sides * part * turns * workers / self.best(task, workers)

    def best(self, task, workers):
        """The least time of task(0) … task(workers - 1), run at once."""
        times = []
        for _ in range(5):
            start = self.clock()
            if workers == 1:
                task(0)
            else:
                list(self.pool.map(task, range(workers)))
            times.append(self.clock() - start)
        return min(times)


class LimitWorker:
    """Answers like a `worker.Worker`; its times are what the machine needs at least."""

    def __init__(self, threads, clock):
        self.machine = Machine(threads, clock)

    def versions(self):
        return {}

    def prepare(self, name):
        return []

    def measure(self, name, seconds):
        found = workloads.find(name)
        return self.machine.seconds(found.flops, found.reads, found.writes)


def aligned(size):
    """So many bytes of memory that has been touched, at the start of a page."""
    raw = np.ones(size + 4096, "uint8")
    start = -raw.ctypes.data % 4096
    return raw[start:start + size]
