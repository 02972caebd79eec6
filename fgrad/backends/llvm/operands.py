"""The forms of a contraction's operands: how A and B lie in memory, or that they are computed.

A form tells the engine what it has to know to plan; where an element is, the callbacks of
`contract_plan.Product` say.  `winograd.Windows` is one that an operand may have beside its own.
Relies on nothing; `contract_plan`, `contract` and what writes Plans rely on it.
"""

from __future__ import annotations

from ...records import frozen



@frozen
class Strided:
    """An operand or result that is a buffer: strides in elements, the first for its first index.

    A has indices (i, k), B (k, j), the result (i, j).  One of the two strides is 1.
    """
    first: int
    second: int
    cost = 1                     # scalar operations per element


@frozen
class Pulled:
    """An operand that is computed where it is packed, along "k", "m" (A) or "n" (B).

    cost: its scalar operations per element.  by_panel: where a vector is takes long to work out,
    and hardly depends on k: panels of B are packed one after the other.
    """
    along: str
    cost: int = 1
    by_panel: bool = False


@frozen
class Pieced:
    """An operand B that lies in pieces along "k" or "n": its elements between multiples of some
    number, of the squares or vectors that packing copies, lie behind each other.

    stride: along "k", how many elements columns lie apart.
    """
    along: str
    stride: int = 0
    cost = 1                     # see Strided


@frozen
class Offset:
    """An operand A whose element (i, k) lies at address[i] + offset[k]: a window over an array.

    Both tables are written block by block, A itself is read where it lies.  rows, depth: over how
    many elements the addresses, and the offsets, stretch.  Rows between multiples of `period` lie
    `step` elements apart.
    """
    rows: int
    depth: int
    period: int = 1
    step: int = 0


@frozen
class Bordered:
    """An operand A whose steps k … k + run - 1 lie behind each other, or are all zero.

    That is a window over an array with a border of zeros, which is nowhere stored.  A table says
    where each run of a row begins: at the row's place plus the run's, if each of the row's numbers
    plus the run's, unsigned, is below its limit.  rows, depth: see Offset.  Rows between multiples
    of `period` lie `step` elements apart, and all have the same numbers.
    """
    rows: int
    depth: int
    run: int
    limits: tuple
    period: int = 1
    step: int = 0


@frozen
class Strips:
    """An operand A of windows and strips, between zeros: what windows know of a padded array.

    `period` rows, a window, lie behind each other; `steps` steps, a strip, lie `step` elements
    apart.  Of each strip one stretch is inside of the array, the rest is zero.  rows, depth: see
    Offset.
    """
    rows: int
    depth: int
    period: int
    steps: int
    step: int
