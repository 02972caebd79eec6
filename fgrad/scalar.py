"""Scalar expressions: what one element of an array is, as a function of an index.

Nodes are hash-consed in the current `index.Space`.  A node is one of

    const      data = a Python number
    load       data = (buffer, Ix): an element of a stored array
    index      data = Ix: an index as a number
    name       data = the name of a Let or an accumulator
    guard      args = (inside, outside), data = ((Ix, lo, hi), …): inside where every lo <= Ix < hi
    reduce     args = (body,), data = (how, Vars): body reduced over variables
    cast       args = (x,)
    bits       args = (x,): the memory of an integer, f32 or f64 read as another of the same size
    instruction  one row of INSTRUCTIONS

`pull` rules build them; fuse and lower place them in loops; every backend emits them.

Nodes are never f16 or bf16, which are dtypes of memory: a load gives f32, and a store rounds.  In
between a value is rounded only where it leaves its dtype, converted or compared, by an instruction
of its own.
"""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from . import index
from .bf16 import BF16, rounded
from .types import BOOL, F16, F32, F64, SHORT, computed


class Instruction:
    """cost: in additions.  numpy: its value.  logical: the result is bool for any arguments.

    floats: its value of arrays of floats, where `numpy` is for integers too, and slower.
    """

    def __init__(self, cost, numpy, logical=False, floats=None):
        self.cost, self.numpy, self.logical, self.floats = cost, numpy, logical, floats


# Rational approximations of Cephes (S. Moshier, ndtr.c): erf is x T(x²) / U(x²) below 1, and
# 1 - exp(-x²) P(x) / Q(x) above; at 6 it is 1 to the last bit of f64.  Highest power first.
_ERF_T = (9.60497373987051638749, 90.0260197203842689217, 2232.00534594684319226,
          7003.32514112805075473, 55592.3013010394962768)
_ERF_U = (1, 33.5617141647503099647, 521.357949780152679795, 4594.32382970980127987,
          22629.0000613890934246, 49267.3942608635921086)
_ERF_P = (2.46196981473530512524e-10, 0.564189564831068821977, 7.46321056442269912687,
          48.6371970985681366614, 196.520832956077098242, 526.445194995477358631,
          934.528527171957607540, 1027.55188689515710272, 557.535335369399327526)
_ERF_Q = (1, 13.2281951154744992508, 86.7072140885989742329, 354.937778887819891062,
          975.708501743205489753, 1823.90916687909736289, 2246.33760818710981792,
          1656.66309194161350182, 557.535340817727675546)


def polynomial(coefficients, x):
    """Horner's scheme, the highest power first."""
    out = coefficients[0]
    for c in coefficients[1:]:
        out = out * x + c
    return out


def _erf(x):
    """The error function in f64, rounded once to the dtype; measured error: 3 ulp of f64."""
    x = np.asarray(x)
    v = x.astype(F64)
    a = np.minimum(np.abs(v), 6)
    z = a * a
    small = v * (polynomial(_ERF_T, z) / polynomial(_ERF_U, z))
    large = np.copysign(1 - np.exp(-z) * polynomial(_ERF_P, a) / polynomial(_ERF_Q, a), v)
    return np.where(a < 1, small, large).astype(x.dtype)


def _divide(x, y):
    """True division of floats; integers round towards zero, and x / 0 is 0."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind in "fc":
        return np.divide(x, y)
    safe = np.where(y == 0, np.ones_like(y), y)
    quotient = np.floor_divide(x, safe)
    rest = x - quotient * safe
    fix = (rest != 0) & ((x < 0) != (safe < 0))
    return np.where(y == 0, np.zeros_like(x), quotient + fix.astype(x.dtype)).astype(x.dtype)


def _remainder(x, y):
    """C's remainder, with the sign of x; integers: x % 0 is 0."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind == "f":
        return np.fmod(x, y)
    safe = np.where(y == 0, np.ones_like(y), y)
    return np.where(y == 0, np.zeros_like(x), np.fmod(x, safe)).astype(x.dtype)


def _shift(numpy):
    """Shifts by less than 0 or at least the width give 0, or the sign for a signed right shift."""
    def shifted(x, n):
        x, n = np.asarray(x), np.asarray(n)
        width = 8 * x.dtype.itemsize
        inside = (n >= 0) & (n < width)
        moved = numpy(x, np.where(inside, n, 0).astype(x.dtype))
        sign = x.dtype.kind == "i" and numpy is np.right_shift
        over = np.where(x < 0, -1, 0).astype(x.dtype) if sign else np.zeros_like(x)
        return np.where(inside, moved, over).astype(x.dtype)
    return shifted


#   name                        cost  numpy
INSTRUCTIONS = {
    "add":         Instruction(1,  np.add),                  # bool: or
    "sub":         Instruction(1,  np.subtract),
    "mul":         Instruction(1,  np.multiply),             # bool: and
    "div":         Instruction(4,  _divide, floats=np.divide),
    "rem":         Instruction(12, _remainder),
    "neg":         Instruction(1,  np.negative),
    "abs":         Instruction(1,  np.abs),
    "sign":        Instruction(2,  np.sign),
    "max":         Instruction(1,  np.maximum),              # NaN of either side stays
    "min":         Instruction(1,  np.minimum),
    "floor":       Instruction(1,  np.floor),
    "ceil":        Instruction(1,  np.ceil),
    "round":       Instruction(1,  np.rint),                 # half to even
    "sqrt":        Instruction(6,  np.sqrt),
    "rsqrt":       Instruction(8,  lambda x: 1 / np.sqrt(x)),
    "exp":         Instruction(16, np.exp),
    "expm1":       Instruction(20, np.expm1),
    "log":         Instruction(18, np.log),
    "log1p":       Instruction(20, np.log1p),
    "tanh":        Instruction(24, np.tanh),
    "logistic":    Instruction(20, lambda x: 1 / (1 + np.exp(-x))),
    "sin":         Instruction(20, np.sin),
    "cos":         Instruction(20, np.cos),
    "tan":         Instruction(24, np.tan),
    "asin":        Instruction(24, np.arcsin),
    "acos":        Instruction(24, np.arccos),
    "atan":        Instruction(24, np.arctan),
    "atan2":       Instruction(28, np.arctan2),
    "sinh":        Instruction(24, np.sinh),
    "cosh":        Instruction(24, np.cosh),
    "erf":         Instruction(24, _erf),
    "pow":         Instruction(40, np.power),
    "eq":          Instruction(1,  np.equal, True),
    "ne":          Instruction(1,  np.not_equal, True),
    "lt":          Instruction(1,  np.less, True),
    "le":          Instruction(1,  np.less_equal, True),
    "gt":          Instruction(1,  np.greater, True),
    "ge":          Instruction(1,  np.greater_equal, True),
    "and":         Instruction(1,  np.bitwise_and),          # bool: logical
    "or":          Instruction(1,  np.bitwise_or),
    "xor":         Instruction(1,  np.bitwise_xor),
    "not":         Instruction(1,  np.invert),
    "shl":         Instruction(1,  _shift(np.left_shift)),
    "shr":         Instruction(1,  _shift(np.right_shift)),  # arithmetic if signed
    "is_finite":   Instruction(1,  np.isfinite, True),
    "round_f16":   Instruction(2,  lambda x: np.asarray(x).astype(F16).astype(F32)),
    "round_bf16":  Instruction(6,  rounded),                 # f32 to the nearest, ties to even
    "select":      Instruction(1,  np.where),                # (condition, x, y)
}

EXPENSIVE = 16             # from this cost on an instruction is not computed twice for one index


def lowest(dtype):
    """The identity of max."""
    return -np.inf if dtype.kind == "f" else False if dtype == BOOL else np.iinfo(dtype).min


def highest(dtype):
    """The identity of min."""
    return np.inf if dtype.kind == "f" else True if dtype == BOOL else np.iinfo(dtype).max


#   how       instruction   identity of a dtype
REDUCTIONS = {
    "sum":  ("add", lambda d: 0),
    "prod": ("mul", lambda d: 1),
    "max":  ("max", lowest),
    "min":  ("min", highest),
    "and":  ("and", lambda d: True),
    "or":   ("or",  lambda d: False),
}


class Node:
    """One hash-consed scalar expression.  `below`: its arguments, and the nodes inside of its
    indices.  `origin`, set by fuse: the Var it is an element of.
    """
    __slots__ = ("op", "args", "data", "dtype", "free", "id", "origin", "below")

    @property
    def cost(self):
        row = INSTRUCTIONS.get(self.op)
        return row.cost if row else 0

    def __repr__(self):
        return text(self)


INDEXED = {"load", "index", "guard"}             # whose data holds indices


def node(op, args, data, dtype, free=0):
    """The Node; `free` is what `data` contributes to the mask of variables."""
    space = index.space()
    key = (op, args, data, dtype, free) if op == "name" else (op, args, data, dtype)
    found = space.table.get(key)
    if found is None:
        found = space.table[key] = Node()
        found.op, found.args, found.data, found.dtype, found.origin = op, args, data, dtype, None
        found.id = len(space.table)
        inside = index_nodes(found) if op in INDEXED else ()
        found.below = (*args, *inside) if inside else args
        for a in args:
            free |= a.free
        if op == "reduce":
            for v in data[1]:
                free &= ~v.bit
        found.free = free
    return found


# ---------------------------------------------------------------------------- making nodes

ROUNDING = {F16: "round_f16", BF16: "round_bf16"}


def const(value, dtype):
    """A number of a dtype; one of f16 or bf16 is the f32 that it equals."""
    if dtype in ROUNDING:
        with np.errstate(over="ignore"):
            value = dtype.type(value)
        dtype = F32
    value = bool(value) if dtype == BOOL else int(value) if dtype.kind in "iu" else float(value)
    if isinstance(value, float):                  # 0.0 == -0.0 and nan != nan: key by the bits
        return node("const", (), FloatConstant(value), dtype)
    return node("const", (), value, dtype)


class FloatConstant(float):
    """A float compared by its bits, so that 0.0 is not -0.0 and NaN is NaN."""

    def __eq__(self, other):
        return isinstance(other, FloatConstant) and self.hex() == other.hex()

    def __hash__(self):
        return hash(self.hex())


def apply(name, *args):
    """An instruction applied to nodes of one dtype (select: bool first; shifts: integers)."""
    if name == "add":
        for zero, x in (args[::-1], args):
            if zero.op == "const" and is_zero(zero) and is_no_minus_zero(x):
                return x
    row = INSTRUCTIONS[name]
    return node(name, args, None, BOOL if row.logical else args[-1].dtype)


def is_zero(x):
    """Is a constant 0, and not -0.0?"""
    return not x.data and not str(x.data).startswith("-")


def is_no_minus_zero(x):
    """Is it known that a value is not -0.0, so that adding 0 changes nothing?"""
    if x.dtype.kind != "f":
        return True
    while x.op == "add":                             # -0.0 is a sum of -0.0 only
        if any(a.op == "const" and (a.data or is_zero(a)) for a in x.args):
            return True
        x = x.args[0]
    return x.op == "const" and (bool(x.data) or is_zero(x))


def cast(x, dtype):
    """x as another dtype: to bool `x != 0`, float to int towards zero, f16 and bf16 as f32."""
    if dtype in ROUNDING:
        if x.op == "const":
            return const(x.data, dtype)
        exact = x.op == ROUNDING[dtype] or is_read(x, dtype)
        return x if exact else apply(ROUNDING[dtype], cast(x, F32))
    return x if x.dtype == dtype else node("cast", (x,), None, dtype)


def bits(x, dtype):
    """x of an integer dtype, f32 or f64 read as another of the same size."""
    if x.op == "bits":
        x = x.args[0]
    return x if x.dtype == dtype else node("bits", (x,), None, dtype)


def is_read(x, dtype):
    """Is the node an element of memory of that dtype?"""
    return x.op == "load" and x.data[0].type.dtype == dtype


def held(x, dtype):
    """x as a store in a buffer of `dtype` takes it, which rounds."""
    x = cast(x, computed(dtype))
    return x.args[0] if x.op == ROUNDING.get(dtype) else x


def load(buffer, at):
    """The element of a buffer (something with .type) at the offset `at`, an Ix."""
    return node("load", (), (buffer, at), computed(buffer.type.dtype), at.free)


def index_value(at, dtype):
    """An Ix as a number."""
    whole = node("index", (), at, computed(dtype), at.free)
    return cast(whole, dtype) if dtype in ROUNDING else whole


def name(text, dtype, free):
    """The value of a Let or an accumulator, known where the variables `free` are."""
    return node("name", (), text, dtype, free)


def guard(ranges, inside, outside):
    """`inside` where lo <= Ix < hi for every (Ix, lo, hi) of `ranges`, else `outside`.

    Ranges that always hold are dropped; loads of `inside` happen only where all hold.
    """
    ranges = undecided(ranges)
    if not ranges or inside is outside:
        return outside if ranges is None else inside
    free = 0
    for x, _, _ in ranges:
        free |= x.free
    return node("guard", (inside, outside), ranges, inside.dtype, free)


def undecided(ranges):
    """Those of some (Ix, lo, hi) that do not always hold; None where one of them never does."""
    left = tuple((x, lo, hi) for x, lo, hi in ranges if x.lo < lo or x.hi >= hi)
    never = any(x.hi < lo or x.lo >= hi or lo >= hi for x, lo, hi in left)
    return None if never else left


def reduce(how, extents, body):
    """body(indices) reduced over new variables of these extents."""
    space = index.space()
    variables = tuple(space.variable(n) for n in extents)
    got = body(tuple(index.of(v) for v in variables))
    variables = tuple(v for v in variables if v.extent != 1)
    if not variables:
        return got
    if 0 in extents:
        return const(REDUCTIONS[how][1](got.dtype), got.dtype)
    return node("reduce", (got,), (how, variables), got.dtype)


def pairwise(how, values):
    """The reduction of several values, by twos: a + b and c + d before their sum."""
    while len(values) > 1:
        pairs = [apply(REDUCTIONS[how][0], a, b) for a, b in zip(values[::2], values[1::2])]
        values = pairs + values[len(values) // 2 * 2:]
    return values[0]


def begun(how, first):
    """A reduction so far, of its first element: a sum of -0.0 begins with 0.0, and is that."""
    square = first.op == "mul" and first.args[0] is first.args[1]
    if how != "sum" or first.dtype.kind != "f" or square:
        return first
    return apply("add", const(0, first.dtype), first)


# ---------------------------------------------------------------------------- walking, rewriting

def walk(root, seen=None, below=None):
    """Nodes below `root` and it, arguments first, each once, as the keys of a dict.

    The nodes inside of run-time indices count as arguments.  below: node → which of its arguments
    to go to, all by default.
    """
    seen = {} if seen is None else seen
    below, stack = below or attrgetter("below"), [root]
    while stack:
        n = stack[-1]
        for a in below(n):
            if a not in seen:
                if below(a):
                    stack.append(a)
                    break
                seen[a] = None
        else:
            seen[n] = None
            stack.pop()
    return seen


def index_nodes(n):
    """The nodes that the indices of a load, index or guard contain."""
    if n.op == "load":
        return n.data[1].nodes
    if n.op == "index":
        return n.data.nodes
    if n.op == "guard":
        return tuple(d for x, _, _ in n.data for d in x.nodes)
    return ()


def rewrite(root, to, nodes, memo):
    """`root` with variables substituted (`to`: Var → Ix) and whole nodes replaced (`nodes`).

    A reduction keeps its own variables; it gets others where one of them would come to stand for a
    variable that is substituted into it.
    """
    stack, changed, landing = [root], 0, 0
    for v, x in to.items():
        changed |= v.bit
        landing |= x.free
    while stack:
        n = stack[-1]
        if n in memo or n in nodes:
            stack.pop()
            continue
        if n.op == "reduce" and to:
            own = sum([v.bit for v in n.data[1]])
            if own & changed or own & landing and n.free & changed:
                memo[n] = apart(n, to, landing, nodes)
                memo[n].origin = memo[n].origin or n.origin
                continue
        side = chosen(n, to) if n.op == "guard" and n.free & changed else None
        missing = [a for a in n.below if a not in memo and a not in nodes and side in (None, a)]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        new = lambda a: nodes[a] if a in nodes else memo[a]
        made = memo[n] = rebuilt(n, to, new) if side is None else new(side)
        made.origin = made.origin or n.origin
    return nodes[root] if root in nodes else memo[root]


def chosen(n, to):
    """The argument that a guard comes to be where the variables are substituted, or None.

    So it is known before the other one is rewritten: of many parts, each place wants one.
    """
    if any(x.nodes for x, _, _ in n.data):
        return None
    left = undecided((index.substitute(x, to), lo, hi) for x, lo, hi in n.data)
    if left:
        return None
    return n.args[1] if left is None else n.args[0]


def apart(n, to, landing, nodes):
    """A reduction rewritten, with new variables for those that are met in what is substituted."""
    how, variables = n.data
    new = tuple([index.space().variable(v.extent) if v.bit & landing else v for v in variables])
    inside = {v: x for v, x in to.items() if v not in variables}
    inside.update((v, index.of(w)) for v, w in zip(variables, new) if v is not w)
    return node("reduce", (rewrite(n.args[0], inside, nodes, {}),), (how, new), n.dtype)


def rebuilt(n, to, new):
    """n with its arguments replaced by new(argument), and its indices substituted."""
    args = tuple(new(a) for a in n.args)
    match n.op:
        case "load":
            return load(n.data[0], index.substitute(n.data[1], to, new))
        case "index":
            return index_value(index.substitute(n.data, to, new), n.dtype)
        case "guard":
            tests = tuple([(index.substitute(x, to, new), lo, hi) for x, lo, hi in n.data])
            return guard(tests, *args)
        case "name":
            return name(n.data, n.dtype, moved(n.free, to))
        case "const":
            return n
        case "add":
            return apply("add", *args)
    return node(n.op, args, n.data, n.dtype)


def moved(free, to):
    """A mask of variables after substitution."""
    for v, x in to.items():
        if free & v.bit:
            free = free & ~v.bit | x.free
    return free


# ---------------------------------------------------------------------------- print

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "eq": "==", "ne": "!=",
         "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "&", "or": "|", "xor": "^",
         "shl": "<<", "shr": ">>"}


LONGEST_TEXT = 10_000      # characters of an expression


def number_text(value, dtype):
    """A constant as the printed forms spell it."""
    if dtype == BOOL:
        return "true" if value else "false"
    if dtype.kind != "f":
        return str(int(value))
    short = repr(float(dtype.type(value))) if dtype == F64 else str(dtype.type(value))
    return short


def at_text(buffer, at, known=index.NO_TEXTS):
    """buffer[i,j] where the offset falls apart into indices within axes, else buffer[offset]."""
    shape = buffer.type.shape
    whole = at.lo < 0 or 0 in shape or index.space() is None
    parts = (at,) if whole else index.unflat(at, shape)
    if any(index.divides(x) for x in parts) and not index.divides(at):
        parts = (at,)
    return f"{buffer.name}[{','.join([index.text(x, known) for x in parts])}]"


def text(root):
    """The expression as printed in loop programs; of parts that are very long only how much they
    compute: what is used in several places is written in each, and so may be longer than memory.
    """
    known = {}
    for n in walk(root):
        known[n] = node_text(n, known)
        if len(known[n]) > LONGEST_TEXT:
            known[n] = f"({len(walk(n))} operations)"
    return known[root]


def node_text(n, known):
    """The text of one node, given those of what it is computed from."""
    args = [known[a] for a in n.args]
    match n.op:
        case "const":
            return number_text(n.data, n.dtype)
        case "name":
            return n.data
        case "load":
            return at_text(*n.data, known)
        case "index":
            return f"{SHORT[n.dtype]}({index.text(n.data, known)})"
        case "cast":
            return f"{SHORT[n.dtype]}({args[0]})"
        case "bits":
            return f"bits_{SHORT[n.dtype]}({args[0]})"
        case "guard":
            test = " and ".join(f"{lo} <= {index.text(x, known)} < {hi}" for x, lo, hi in n.data)
            return f"({args[0]} if {test} else {args[1]})"
        case "reduce":
            how, variables = n.data
            return f"({how} {','.join(v.name for v in variables)}: {args[0]})"
        case "neg":
            return f"-{args[0]}"
        case op if op in INFIX:
            return f"({args[0]} {INFIX[op]} {args[1]})"
        case op:
            return f"{op}({', '.join(args)})"
