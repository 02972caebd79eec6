"""What the machine can do at best: multiply-adds from registers, and copies at a given size.

Both are loops in LLVM text, compiled by fgrad's own tools, so that they need nothing that fgrad
does not need.  Each thread runs its own; ctypes lets go of Python's lock meanwhile.
"""

from __future__ import annotations

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from fgrad.backends.llvm.target import HOST, compile_text, load

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


def copy_text(name, hint):
    """void name(char* to, char* from, i64 bytes, i64 n): n copies; bytes a multiple of STEP."""
    vector = f"<{LANES} x float>"
    moves = []
    for k in range(LINES):
        at = k * HOST.vector_bytes
        moves += [f"  %o{k} = add i64 %i, {at}",
                  f"  %p{k} = getelementptr i8, ptr %from, i64 %o{k}",
                  f"  %q{k} = getelementptr i8, ptr %to, i64 %o{k}",
                  f"  %v{k} = load {vector}, ptr %p{k}, align {HOST.vector_bytes}"]
    moves += [f"  store {vector} %v{k}, ptr %q{k}, align {HOST.vector_bytes}{hint}"
              for k in range(LINES)]
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


def compiled():
    """fma, copy and stream as functions of Python."""
    text = "\n".join([fma_text(), copy_text("copy", ""),
                      copy_text("stream", ", !nontemporal !0"), "!0 = !{i32 1}"])
    library = load(compile_text(text))
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    fma = ctypes.CFUNCTYPE(None, pointer, number)(library.address("fma"))
    copies = [ctypes.CFUNCTYPE(None, pointer, pointer, number, number)(library.address(name))
              for name in ("copy", "stream")]
    return fma, copies


class Machine:
    """The machine with so many threads; what it can do is measured anew each time it is asked."""

    def __init__(self, threads):
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads)
        self.fma, self.copies = compiled()

    def seconds(self, flops, size):
        """The least time for so many operations, or for moving so many bytes: the larger one."""
        multiply = flops / self.flops_per_second() if flops else 0.0
        return max(multiply, size / self.bytes_per_second(size) if size else 0.0)

    def flops_per_second(self):
        """f32 multiplications and additions per second."""
        turns = 200_000
        outs = [np.full(LANES, 0.5, "float32") for _ in range(self.threads)]
        taken = self.best(lambda k: self.fma(outs[k].ctypes.data, turns), self.threads)
        return 2 * LANES * CHAINS * turns * self.threads / taken

    def bytes_per_second(self, size):
        """Bytes read and written per second by a copy that touches `size` bytes in all.

        The better of plain stores and of stores that bypass the cache.
        """
        workers = self.threads if size >= SERIAL else 1
        part = max(size // 2 // workers // STEP, 1) * STEP
        turns = max(4_000_000 // size, 1)
        pairs = [(aligned(part), aligned(part)) for _ in range(workers)]

        def copying(copy):
            return lambda k: copy(pairs[k][0].ctypes.data, pairs[k][1].ctypes.data, part, turns)
        taken = min(self.best(copying(copy), workers) for copy in self.copies)
        return 2 * part * turns * workers / taken

    def best(self, task, workers):
        """The least time of task(0) … task(workers - 1), run at once."""
        times = []
        for _ in range(5):
            start = time.perf_counter()
            if workers == 1:
                task(0)
            else:
                list(self.pool.map(task, range(workers)))
            times.append(time.perf_counter() - start)
        return min(times)


def aligned(size):
    """So many bytes of memory that has been touched, at the start of a page."""
    raw = np.ones(size + 4096, "uint8")
    start = -raw.ctypes.data % 4096
    return raw[start:start + size]
