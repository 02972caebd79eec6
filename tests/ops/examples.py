"""Example arguments of every operation: one row each, from which the law tests draw.

A Case is a list of argument specifications and the parameters.  `draw` makes NumPy arrays of them
in a given dtype; sizes 0, 1 and odd ones are among the shapes.
"""

from dataclasses import dataclass, field

import numpy as np

from fgrad.bf16 import BF16
from fgrad.core import array_in
from fgrad.types import as_dtype


def numbers(x, dtype):
    """A NumPy array in a dtype; of bf16, an Array."""
    return array_in(x, dtype) if dtype is BF16 else x.astype(dtype)


@dataclass(frozen=True)
class X:
    """An array of the dtype under test, with values in [low, high)."""
    shape: tuple = ()
    low: float = -2
    high: float = 2
    dtype: str = None                # instead of the dtype under test

    def draw(self, dtype, rng):
        dtype = as_dtype(self.dtype or dtype)
        if dtype.kind == "b":
            return rng.random(self.shape) < 0.5
        if dtype.kind == "c":
            parts = [rng.uniform(self.low, self.high, self.shape) for _ in "ri"]
            return (parts[0] + 1j * parts[1]).astype(dtype)
        if dtype.kind == "f":
            return numbers(rng.uniform(self.low, self.high, self.shape), dtype)
        low = max(self.low, 0) if dtype.kind == "u" else self.low
        return rng.integers(int(np.ceil(low)), int(self.high) + 1, self.shape).astype(dtype)


@dataclass(frozen=True)
class Number:
    """A Python number beside the arrays: an int for integers, True for bool."""
    value: float

    def draw(self, dtype, rng):
        kind = as_dtype(dtype).kind
        return bool(self.value) if kind == "b" else self.value if kind in "fc" else \
            int(self.value)


@dataclass(frozen=True)
class Values:
    """An array of exactly these values, of the dtype under test unless given."""
    values: tuple
    dtype: str = None

    def draw(self, dtype, rng):
        return numbers(np.array(self.values), as_dtype(self.dtype or dtype))


@dataclass(frozen=True)
class Matrices:
    """Square matrices that are well conditioned; positive: symmetric and positive definite."""
    shape: tuple
    positive: bool = False

    def draw(self, dtype, rng):
        x = rng.uniform(-1, 1, self.shape)
        x = x @ np.swapaxes(x, -1, -2) if self.positive else x
        return numbers(x + 2 * np.eye(self.shape[-1]), dtype)


def B(*shape):
    """A bool array."""
    return X(shape, dtype="bool")


def I(*shape, low=-1, high=4):
    """An index array; some of its indices are out of range."""
    return X(shape, low, high, "int32")


def K(*lead):
    """Random keys."""
    return X((*lead, 2), 0, 2**31, "uint32")


@dataclass(frozen=True)
class Case:
    args: tuple
    params: dict = field(default_factory=dict)

    def draw(self, dtype, seed=0):
        """The arguments: NumPy arrays and Python numbers."""
        rng = np.random.default_rng(seed)
        return [spec.draw(dtype, rng) for spec in self.args]


def case(*args, **params):
    return Case(args, params)


def each(count, low=-2, high=2, number=None):
    """Cases of an elementwise operation of `count` arguments, one maybe a Python number."""
    shapes = [(), (0,), (1,), (2, 3)]
    cases = [Case(tuple(X(s, low, high) for _ in range(count))) for s in shapes]
    if count > 1:
        number = max(low, 1) if number is None else number
        cases.append(Case((Number(number), *(X((3,), low, high) for _ in range(count - 1)))))
        cases.append(Case((*(X((3,), low, high) for _ in range(count - 1)), Number(number))))
    return cases


def arrays(count, low, high):
    """Cases of an elementwise operation that takes no Python numbers."""
    return [Case(tuple(X(s, low, high) for _ in range(count))) for s in [(), (0,), (1,), (2, 3)]]


def over(**params):
    """Cases of a reduction: all, no, first, last and empty axes."""
    return [case(X((2, 3)), axes=(0, 1)), case(X((2, 3)), axes=()), case(X((2, 3, 2)), axes=(0, 2)),
            case(X((5,)), axes=(0,)), case(X((0, 3)), axes=(0,)), case(X((1, 3)), axes=(0,)),
            case(X((3, 0)), axes=(0,))]


def along(**params):
    """Cases of an operation along one axis."""
    return [case(X((5,)), axis=0, **params), case(X((2, 3)), axis=1, **params),
            case(X((2, 3)), axis=0, **params), case(X((1, 3)), axis=0, **params),
            case(X((3, 0)), axis=0, **params)]


def running():
    return [Case(c.args, {**c.params, "reverse": r}) for c in along() for r in (False, True)] + [
        case(X((0,)), axis=0, reverse=False), case(Values((2, 0, 3, 0, 1)), axis=0, reverse=False)]


def scattered(*more):
    return [case(X((3, 2)), I(2), X((2, 2)), axes=(0,), mode="clip"),
            case(X((3, 2)), I(2), X((2, 2)), axes=(0,), mode="drop"),
            case(X((2, 3)), I(), X((2,)), axes=(1,), mode="drop"),
            case(X((2, 3)), I(4, high=3), I(4, high=3), X((4,)), axes=(0, 1), mode="drop"),
            case(X((3,)), I(0), X((0,)), axes=(0,), mode="clip"), *more]


def repeated(shape, indices, updates=None):
    """A scatter into a vector with equal indices."""
    u = X((len(indices),)) if updates is None else Values(updates)
    return case(X(shape), Values(indices, "int32"), u, axes=(0,), mode="clip")


def product(a, b, labels):
    """A dot_general of shapes a and b."""
    operands, to = labels.split("->")
    lhs, rhs = operands.split(",")
    return case(X(a), X(b), lhs=lhs, rhs=rhs, to=to)


PRODUCTS = [
    ((2, 3), (3, 4), "ij,jk->ik"),
    ((2, 3), (4, 3), "ij,kj->ki"),
    ((3, 2), (3, 4), "ji,jk->ik"),
    ((3, 2), (4, 3), "ji,kj->ik"),
    ((3,), (3,), "j,j->"),
    ((2, 3), (3,), "ij,j->i"),
    ((3,), (3, 2), "j,jk->k"),
    ((3,), (2, 3), "j,kj->k"),
    ((2,), (3,), "i,j->ij"),
    ((2,), (3,), "i,j->ji"),
    ((2, 3, 2), (2, 2, 4), "bij,bjk->bik"),
    ((2, 3, 4), (4, 2, 3), "aij,jai->a"),
    ((2, 3), (2, 3), "ij,ij->ji"),
    ((2, 3), (3, 2), "ij,jk->k"),
    ((2, 3), (3, 2), "ij,jk->"),
    ((2, 0), (0, 3), "ij,jk->ik"),
    ((0, 2), (2, 1), "ij,jk->ik"),
    ((), (), ",->"),
    ((), (2,), ",i->i"),
    ((2, 3, 2, 1), (3, 1, 2), "abcd,bde->cae"),
    ((2, 3), (), "ij,->j"),
    ((2, 3), (3, 2), "ij,ji->j"),
]
def convolution(x, w, labels, window, stride=None, dilation=None):
    """A conv_general of shapes x and w."""
    operands, to = labels.split("->")
    lhs, rhs = operands.split(",")
    ones = (1,) * len(window)
    return case(X(x), X(w), lhs=lhs, rhs=rhs, to=to, window=window, stride=stride or ones,
                dilation=dilation or ones)


CONVOLUTIONS = [
    ((1, 5, 2), (3, 2, 3), "nwi,wio->nwo", "w"),
    ((2, 4, 5, 2), (2, 3, 2, 3), "nhwi,hwio->nhwo", "hw"),
    ((1, 2, 5, 6), (3, 2, 2, 3), "nihw,oihw->nohw", "hw", (2, 3)),
    ((2, 7), (3, 1), "nw,wo->now", "w", (1,), (2,)),
    ((1, 8, 2), (2, 2), "nwg,wg->nwg", "w", (2,), (3,)),
    ((1, 5, 5, 2, 1), (3, 2, 2, 1, 2), "nhwgi,hwgio->nhwgo", "hw", (2, 1), (1, 2)),
    ((2, 3, 2), (4, 2, 1), "nwi,wio->nwo", "w"),
    ((5,), (1,), "w,w->w", "w", (2,)),
    ((1, 3, 2, 4, 1), (2, 2, 3, 1, 2), "ndhwi,dhwio->ndhwo", "dhw"),
    ((0, 5, 1), (2, 1, 2), "nwi,wio->nwo", "w"),
    ((1, 5, 0), (2, 0, 2), "nwi,wio->nwo", "w"),
]


def windows():
    """Cases of an operation over windows of its first argument, and the places of each."""
    rows = [((5,), (2,), (1,), (1,)), ((5,), (3,), (2,), (1,)), ((7,), (2,), (3,), (2,)),
            ((2, 4, 5, 1), (1, 2, 3, 1), (1, 2, 1, 1), (1, 1, 2, 1)),
            ((3, 4), (2, 2), (2, 2), (1, 1)),
            ((2,), (3,), (1,), (1,)), ((0, 3), (1, 2), (1, 1), (1, 1)), ((), (), (), ()),
            ((7, 8), (6, 7), (1, 1), (1, 1)), ((4, 1), (1, 1), (2, 1), (1, 1))]
    for shape, window, stride, dilation in rows:
        places = tuple(max(0, (n - (k - 1) * d - 1) // s + 1)
                       for n, k, s, d in zip(shape, window, stride, dilation))
        yield shape, places, dict(window=window, stride=stride, dilation=dilation)


def over_windows(*more):
    return [case(X(shape), **params) for shape, _, params in windows()] + list(more)


def position(places, window):
    """A position in each window."""
    return X(places, 0, int(np.prod(window)) - 1, "int32")


BITS = [((), "u4"), ((5,), "u4"), ((2, 3), "u1"), ((3,), "u2"), ((3,), "u8"), ((0,), "u4")]
SQUARES = [(1, 1), (3, 3), (2, 2, 2), (0, 0), (0, 2, 2)]
EXAMPLES = {
    # elementwise
    "add": each(2), "sub": each(2), "mul": each(2), "div": each(2, 0.5, 3),
    "rem": each(2, 0.6, 4, 3),
    "neg": each(1), "abs": each(1), "sign": each(1), "max": each(2), "min": each(2),
    "share": each(2), "floor": each(1), "ceil": each(1), "round": each(1), "square": each(1),
    "clamp": each(3) + [case(Number(0), X((7,)), Number(1)), case(X((3,)), Number(0), X((3,)))],
    "sqrt": each(1, 0.1, 3), "cbrt": each(1, 0.2, 3), "rsqrt": each(1, 0.1, 3), "exp": each(1),
    "expm1": each(1),
    "log": each(1, 0.1, 3), "log1p": each(1, -0.5, 3), "pow": each(2, 0.5, 2), "logistic": each(1),
    "logaddexp": each(2), "hypot": each(2), "erf": each(1, -3, 3), "sin": each(1), "cos": each(1),
    "tan": each(1, -1, 1),
    "lgamma": each(1, -2, 9), "digamma": each(1, 0.2, 9), "erfc": each(1, -4, 4),
    "asinh": each(1, -9, 9), "acosh": each(1, 1.1, 9),
    "log_ndtr": each(1, -6, 4), "ndtri": each(1, 0.02, 0.98), "erf_inv": each(1, -0.9, 0.9),
    "bessel_i0e": each(1, 0.1, 12), "bessel_i1e": each(1, -12, 12),
    "gammainc": arrays(2, 0.3, 6), "gammaincc": arrays(2, 0.3, 6), "betainc": arrays(3, 0.2, 0.8),
    "betainc_by_a": arrays(3, 0.2, 0.8), "betainc_by_b": arrays(3, 0.2, 0.8),
    "gamma_shift": arrays(2, 0.3, 6), "gamma_number": each(2, 0.3, 2),
    "expint": [case(Values((0, 1, 2, 5)), X((4,), 0.3, 3)), case(Values((3,)), X((1,), 0.3, 3)),
               case(X((0,)), X((0,)))],
    "expi": arrays(1, 0.2, 6), "sine_integral": arrays(1, -6, 6),
    "cosine_integral": arrays(1, 0.3, 6), "spence": each(1, 0.2, 4),
    "nextafter": arrays(2, -2, 2),
    "asin": each(1, -0.9, 0.9), "acos": each(1, -0.9, 0.9), "atan": each(1), "atan2": each(2),
    "sinh": each(1),
    "cosh": each(1), "tanh": each(1),
    "eq": each(2), "ne": each(2), "lt": each(2), "le": each(2), "gt": each(2), "ge": each(2),
    "is_finite": each(1) + [case(Values((np.inf, -np.inf, np.nan, 1.0)))],
    "and": each(2), "or": each(2), "xor": each(2), "not": each(1),
    "shl": each(2, 0, 9), "shr": each(2, -9, 9),
    "fft": [case(X(s), axis=a, inverse=i) for s, a in (((1,), 0), ((7,), 0), ((3, 4), 0),
                                                       ((2, 6), 1), ((0, 3), 1))
            for i in (False, True)],
    "rfft": [case(X(s), axis=a) for s, a in (((1,), 0), ((2,), 0), ((7,), 0), ((3, 4), 0),
                                             ((2, 6), 1), ((0, 3), 1))],
    "irfft": [case(X(s), axis=a, n=n) for s, a, n in (
        ((1,), 0, 1), ((2,), 0, 2), ((4,), 0, 7), ((2, 3), 0, 3), ((2, 4), 1, 6), ((0, 2), 1, 3))],
    "real": each(1), "imag": each(1),
    "complex": [case(X(s), X(s)) for s in ((), (0,), (1,), (2, 3))],
    "convert": [case(X(s), dtype=np.dtype(d)) for s in ((), (0,), (2, 3))
                for d in ("bool", "i4", "f2", "f4", "f8")],
    "integer_pow": [case(X(s, 1, 2), n=n) for s in ((), (0,), (2, 3)) for n in (0, 1, 2, 3, 7)],
    "select": [case(B(*s), X(s), X(s)) for s in ((), (0,), (2, 3))] + [
        case(B(3), Number(1), X((3,))), case(B(3), X((3,)), Number(0))],
    # move
    "broadcast": [case(X(()), shape=(2, 3), axes=(0, 1)), case(X((3,)), shape=(2, 3), axes=(0,)),
                  case(X((2, 3)), shape=(2, 1, 3), axes=(1,)),
                  case(X((0,)), shape=(0, 2), axes=(1,)),
                  case(X((2,)), shape=(2, 0), axes=(1,)), case(X((2,)), shape=(2,), axes=())],
    "reshape": [case(X((2, 3)), shape=(3, 2)), case(X((6,)), shape=(2, 1, 3)),
                case(X((1,)), shape=()), case(X((0, 3)), shape=(3, 0)),
                case(X((4, 3)), shape=(2, 6)), case(X(()), shape=(1, 1))],
    "transpose": [case(X((2, 3)), perm=(1, 0)), case(X((2, 1, 3)), perm=(2, 0, 1)),
                  case(X(()), perm=()), case(X((0, 2)), perm=(1, 0))],
    "rev": [case(X((5,)), axes=(0,)), case(X((2, 3)), axes=(0, 1)), case(X((2, 3)), axes=()),
            case(X((0,)), axes=(0,))],
    "slice": [case(X((5,)), start=(1,), stop=(4,), stride=(1,)),
              case(X((7,)), start=(1,), stop=(7,), stride=(3,)),
              case(X((2, 3)), start=(0, 1), stop=(2, 1), stride=(1, 1)),
              case(X((5, 4)), start=(0, 1), stop=(5, 4), stride=(2, 2)),
              case(X(()), start=(), stop=(), stride=())],
    "pad": [case(X((3,)), X(()), low=(1,), high=(2,), interior=(0,)),
            case(X((2, 3)), Number(1), low=(0, 1), high=(1, 0), interior=(0, 0)),
            case(X((3, 2)), X(()), low=(1, 0), high=(0, 1), interior=(2, 1)),
            case(X((0,)), Number(0), low=(1,), high=(1,), interior=(3,)),
            case(X(()), Number(0), low=(), high=(), interior=())],
    "concatenate": [case(X((2,)), X((3,)), axis=0), case(X((2, 1)), X((2, 3)), X((2, 0)), axis=1),
                    case(X((2, 3)), axis=0), case(X((0,)), X((0,)), axis=0),
                    case(X((1, 2)), X((2, 2)), axis=0)],
    "full": [case(shape=s, value=v, dtype=np.dtype(d)) for s, v in (((), 1), ((0,), 1), ((2, 3), 0))
             for d in ("f4", "i8", "f2")],
    "iota": [case(shape=s, axis=a, dtype=np.dtype(d))
             for s, a in (((5,), 0), ((2, 3), 1), ((0,), 0)) for d in ("f4", "i4", "u1")],
    # reduce
    "reduce_sum": over(), "reduce_prod": over() + [case(Values((2, 0, 3, 0)), axes=(0,)),
                                                   case(Values((2, 0, 3)), axes=(0,))],
    "reduce_max": over(), "reduce_min": over(), "reduce_and": over(), "reduce_or": over(),
    "argmax": along() + [case(Values((1, 3, 3, 0)), axis=0)],
    "argmin": along() + [case(Values((3, 0, 0, 1)), axis=0)],
    "cumsum": running(), "cumprod": running(), "cummax": running()[:-1], "cummin": running()[:-1],
    "recurrence": [Case(2 * c.args, {**c.params, "late": late}) for c in running()
                   for late in (False, True)],
    # contract
    "dot_general": [product(*row) for row in PRODUCTS],
    # convolve
    "conv_general": [convolution(*row) for row in CONVOLUTIONS],
    # window
    "reduce_window_sum": over_windows(), "reduce_window_max": over_windows(),
    "reduce_window_min": over_windows(),
    "window_argmax": over_windows(case(Values((1, 3, 3, 0)), window=(3,), stride=(1,),
                                       dilation=(1,))),
    "window_argmin": over_windows(case(Values((3, 0, 0, 1)), window=(3,), stride=(1,),
                                       dilation=(1,))),
    "window_take": [case(X(s), position(p, kw["window"]), **kw) for s, p, kw in windows()],
    "window_put": [case(X(p), position(p, kw["window"]), shape=s, **kw) for s, p, kw in windows()],
    "window_spread": [case(X(p), shape=s, **kw) for s, p, kw in windows()],
    # index
    "gather": [case(X((4, 2)), I(3), axes=(0,)), case(X((4, 2)), I(3), axes=(0,), mode="fill"),
               case(X((2, 3)), I(), axes=(1,), mode="fill", fill=7),
               case(X((2, 3)), I(2, 2), I(2, 2), axes=(0, 1)),
               case(X((3, 2, 2)), I(2), I(2), axes=(0, 2)), case(X((3,)), I(0), axes=(0,)),
               case(X((0, 2)), I(2), axes=(0,), mode="fill"), case(X((3, 0)), I(2), axes=(0,))],
    "scatter_set": scattered(repeated((4,), (1, 1, 3, 1))),
    "scatter_add": scattered(repeated((2,), (1, 1, 1))),
    "scatter_mul": scattered(repeated((3,), (1, 1, 2), updates=(0, 3, 2))),
    "scatter_max": scattered(), "scatter_min": scattered(),
    "dynamic_slice": [case(X((5,)), I(), sizes=(3,)), case(X((4, 3)), I(), I(), sizes=(2, 3)),
                      case(X((3,)), I(), sizes=(0,)), case(X(()), sizes=()),
                      case(X((4,)), I(low=9, high=9), sizes=(2,))],
    "dynamic_update_slice": [case(X((5,)), X((3,)), I()), case(X((4, 3)), X((2, 1)), I(), I()),
                             case(X((3,)), X((0,)), I()), case(X(()), X(())),
                             case(X((3,)), X((3,)), I())],
    "update_slice": [case(X((5,)), X((3,)), I()), case(X((4, 3)), X((2, 1)), I(), I()),
                     case(X((3,)), X((0,)), I()), case(X(()), X(())), case(X((3,)), X((3,)), I())],
    # linalg
    "cholesky": [case(Matrices(s, True)) for s in SQUARES], "eigh": [case(X(s)) for s in SQUARES],
    "eigvalsh": [case(X(s)) for s in SQUARES],
    "svdvals": [case(X(s)) for s in (*SQUARES, (4, 2), (2, 3))],
    "qr": [case(X(s)) for s in (*SQUARES, (4, 2), (2, 3, 1))] + [case(X((2, 2)), full=True)],
    "svd": [case(X(s)) for s in (*SQUARES, (4, 2), (2, 3))] + [case(X((2, 2)), full=True)],
    "solve": [case(Matrices(s), X((*s[:-1], k))) for s in SQUARES for k in (1, 2)],
    "triangular_solve": [case(Matrices(s), X((*s[:-1], 2)), lower=lower, unit=unit)
                         for s in SQUARES for lower in (True, False) for unit in (True, False)],
    "pinv": [case(X(s), rtol=1e-6) for s in ((1, 1), (4, 2), (2, 3), (2, 2, 3))],
    "eig": [case(X(s)) for s in SQUARES],
    "slogdet": [case(Matrices(s)) for s in SQUARES],
    "lu": [case(Matrices(s)) for s in SQUARES],
    "pivots_to_permutation": [case(X((3,), 2, 3, "int32")), case(X((2, 1), 0, 1, "int32"))],
    # random
    "random_bits": [case(K(), shape=s, dtype=np.dtype(d)) for s, d in BITS] + [
        case(K(2), shape=(3,))],
    "random_split": [case(K(), shape=(3,)), case(K(), shape=(1,)), case(K(), shape=(2, 2)),
                     case(K(2), shape=(2,))],
    "random_fold_in": [case(K(), X((), 0, 99, "uint32")), case(K(3), X((3,), 0, 99, "uint32"))],
    # bits
    "bitcast": [
        case(X((3,)), dtype=np.dtype("int8")), case(X((0, 8)), dtype=np.dtype("uint8")),
        case(X((3, 2), 0, 9, "uint32"), dtype=np.dtype("int64")),
        case(X((2, 3), 0, 9, "int32"), dtype=np.dtype("float32")),
        case(X((), 0, 9, "int64"), dtype=np.dtype("uint16"))],
    "bitcast_f16": [case(X((3,), 0, 9, "float16"), dtype=np.dtype("uint16")),
                    case(X((3, 2), 0, 9, "uint8"), dtype=np.dtype("float16"))],

    # sort
    "sort": [case(X((5,)), axis=0), case(X((2, 3)), axis=1), case(X((0,)), axis=0)],
    "order": [case(X((5,)), axis=0), case(X((2, 3)), axis=1), case(X((0,)), axis=0),
              case(I(6, high=2), X((6,)), axis=0)],
    "top_k": [case(X((5,)), k=2), case(X((2, 3)), k=3), case(X((2, 3)), k=0), case(X((0, 2)), k=1)],
}
