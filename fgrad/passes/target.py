"""What the compiler's middle knows of the machine: the Target of a Plan.

Fusing asks whether columns are summed by accumulation; scheduling asks for lanes and parts.  A
backend makes its Target; a Plan made for one Target runs anywhere, only slower.
"""

from __future__ import annotations

from ..records import frozen



@frozen
class Target:
    """kind: "cpu" (loops over rows, vector lanes inside) or "gpu" (a work-item an element or row).

    vector_bytes: of a vector register.  registers: vector registers.  threads: that run a parallel
    loop.  region_cost: what starting a parallel region costs, in additions; smaller kernels are
    serial.  parts: partial results of a large reduction; 0: one a thread, or on a GPU 1024.
    side: vectors that are computed side by side in loops that call elementary functions.
    scratch: bytes of rows that a kernel may keep on its stack, or a work-item for itself.
    totals: can a product sum the columns of its right operand, and of its result, too?
    borders: can a product read an array with a border of zeros where it lies?
    cache: bytes of the cache that a thread has for itself; kernels take turns over what it holds.
    0: they do not.
    native_loops: is a loop of little work one native function?
    across: may a loop with vectors hold loops, whose sums are vectors then?
    jam: bytes that the last cache holds of what a loop moves, for the loops within several of its
    iterations to run as one.  0: they do not.
    streams: rows that sums read side by side from memory, which is the fastest way.
    tables: is what depends on no argument computed once, when a Program is compiled?
    slow_third: does the third cache give less than products of few rows can multiply?
    """
    kind: str = "cpu"
    vector_bytes: int = 32
    registers: int = 16
    threads: int = 1
    region_cost: int = 25_000
    parts: int = 0
    side: int = 1
    scratch: int = 1 << 18
    totals: bool = True
    borders: bool = False
    cache: int = 0
    native_loops: bool = False
    across: bool = False
    jam: int = 0
    streams: int = 1
    tables: bool = False
    slow_third: bool = False

    def lanes(self, dtype):
        """Elements of a vector."""
        return self.vector_bytes // dtype.itemsize if self.kind == "cpu" else 1

    @property
    def cut(self):
        """The number of partial results to aim at."""
        return self.parts or (self.threads if self.kind == "cpu" else 1024)


CPU = Target()
