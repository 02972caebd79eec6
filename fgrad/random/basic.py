"""Random numbers by explicit keys: a key and a shape decide them, on every device, in every batch.

    key = random.key(0)
    k1, k2 = random.split(key)
    x = random.normal(k1, (3,))

Streams are bit for bit those of `jax.random` (Threefry-2x32, partitionable); normal and what
follows from it agree to rounding.  Using one key object twice gives equal numbers, so it is
noticed.  `Generator` does the splitting for those who prefer NumPy's way.  Relies on `fgrad.numpy`
and the operations of `ops/random.py`.
"""

from __future__ import annotations

import math
import operator
import threading

import numpy as np

from .. import numpy as fnp
from .. import ops, source, tree
from ..core import Value, as_value, current, frozen_array
from ..errors import (
    ArgumentError, DtypeError, KeyReuseWarning, LeakError, RandomKeyError, RangeError, ShapeError,
    notice)
from ..interpreters.stage import Stage
from ..numpy.axes import axis_of, broadcast_shapes, int_of, shape_of, text_of
from ..numpy.promotion import (
    as_float, as_value_or_number, broadcast_to, cast, in_dtype, is_number, same)
from ..numpy.special import erf, erf_inv
from ..types import (
    I32, I64, SHORT, U32, UNSIGNED_OF, as_dtype, default_float, default_int, finfo, part_of)


# ---------------------------------------------------------------------------- keys

class Key:
    """A random key, or an array of keys.  data: u32[*shape, 2].

    A pytree with one leaf.  `k1, k2 = keys` and `keys[i]` take an array of keys apart; `==` tells
    which are equal.
    """
    __slots__ = ("data", "made", "used")
    __hash__ = object.__hash__                   # as arrays, by identity

    def __init__(self, data):
        self.data = data
        self.made = source.here()
        self.used = None                         # (code, lasti) of the line that used it

    def __reduce__(self):
        return revived, (self.data,)

    @property
    def shape(self):
        """The shape of an array of keys; () for one key."""
        return self.data.shape[:-1]

    @property
    def ndim(self):
        """The number of axes of an array of keys."""
        return len(self.shape)

    @property
    def size(self):
        """How many keys there are."""
        return math.prod(self.shape)

    def reshape(self, *shape):
        """The same keys in another shape.

        >>> split(key(0), 6).reshape(2, -1).shape
        (2, 3)
        """
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            (shape,) = shape
        return Key(self.data.reshape(*shape, 2))

    def ravel(self):
        """The same keys along one axis."""
        return self.reshape(-1)

    def __eq__(self, other):
        if other.__class__ is not Key:
            return NotImplemented
        return fnp.all(self.data == other.data, axis=-1)

    def __ne__(self, other):
        if other.__class__ is not Key:
            return NotImplemented
        return fnp.any(self.data != other.data, axis=-1)

    def __len__(self):
        if not self.shape:
            raise RandomKeyError("one key has no len().",
                                 fix="k1, k2 = random.split(key) makes two of it")
        return self.shape[0]

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index):
        if not self.shape:
            raise RandomKeyError("one key cannot be indexed.",
                                 fix="keys = random.split(key, n) makes n of it")
        index = index if isinstance(index, tuple) else (index,)
        return Key(self.data[(*index, ..., slice(None))])

    def __repr__(self):
        return f"Key({self.data})"


def are_words(x):
    """Are these the words of a key, or their type?"""
    return getattr(x, "dtype", None) == U32 and x.shape[-1:] == (2,)


tree.register_node(Key, lambda k: ((k.data,), None), lambda _, children: revived(*children),
                   lambda meta, n: (".data",), fields=(("data",), ()),
                   mapped=lambda _, children: revived(*children) if are_words(*children)
                   else children[0])


def revived(data):
    """A Key around a leaf of a tree, whatever that is: transformations put other things there."""
    out = object.__new__(Key)
    out.data, out.made, out.used = data, None, None
    return out


def key(seed):
    """A key made of an int.

    Seeds of up to 32 bits give JAX's keys; longer ones use all of 64 bits.

    >>> key(42)
    Key([ 0 42])
    """
    if isinstance(seed, Value) and not hasattr(seed, "np") and seed.dtype.kind in "biu":
        return Key(fnp.stack(halves(seed)))
    try:
        seed = operator.index(seed)
    except TypeError:
        raise RandomKeyError(f"random.key needs an int, not {type(seed).__name__}.",
                             fix="random.key(0)") from None
    if not -2**63 <= seed < 2**64:
        raise RangeError("the seed of a key has 64 bits.", given=str(seed))
    high = (seed >> 32) & 0xFFFFFFFF if not -2**31 <= seed < 2**32 else 0
    return Key(frozen_array(np.array([high, seed & 0xFFFFFFFF], U32)))


def halves(seed):
    """The words of a key whose seed is being traced: the high one is 0 where 32 bits are enough."""
    seed = in_dtype(seed, seed.dtype)
    low = cast(seed, U32)
    if seed.dtype.itemsize < 8:
        return fnp.zeros_like(low), low
    short = seed < 2**32
    if seed.dtype.kind == "i":
        short = short & (seed >= -2**31)
    return ops.select(short, 0, cast(seed >> 32, U32)), low


PRNGKey = key


def key_data(key):
    """The words of a key.   → u32[*shape, 2]"""
    return checked(key, "key_data").data


def wrap_key_data(data):
    """A key made of its words, u32[*shape, 2]."""
    return checked(as_value(data), "wrap_key_data")


def clone(key):
    """The same key, for drawing the same numbers on purpose: that is not noticed as reuse."""
    return Key(checked(key, "clone").data)


def checked(key, name):
    """The Key, made from words if need be.  Raises RandomKeyError for what is no key."""
    if key.__class__ is Key:
        return key
    if not (isinstance(key, (Value, np.ndarray)) and are_words(key)):
        given = f"{type(key).__name__} {key!r}" if not isinstance(key, Value) else str(key.type)
        raise RandomKeyError(f"{name} expects a key; use random.key(0).", given=given)
    return revived(as_value(key))


def consumed(key, name):
    """The words of one key, which is used from now on; a second use is noticed."""
    key = checked(key, name)
    if key.shape:
        raise RandomKeyError(f"{name} needs one key, and this is an array of keys of shape "
                             f"{text_of(key.shape)}.",
                             fix="keys[0], or vmap over the keys")
    if key.used is not None:
        notice_reuse(key)
    key.used = source.here() or key.used
    return key.data


def notice_reuse(key):
    """Says where the key came from, and where it was used before."""
    now, before, made = map(source.place, (source.here(), key.used, key.made))
    origin = f"key from {made.short}" if made is not None else "a key"
    notice(("key reuse", made, now),
           f"{origin} was already used at {before.short}, so both results depend on the same bits; "
           "use k1, k2 = random.split(key), or random.clone(key) where that is wanted",
           KeyReuseWarning)


def split(key, num=2):
    """An array of independent keys made of one.   num: an int, or a shape

    With num = 0 there are none, as in JAX; ShapeError for a negative one.

    >>> k1, k2 = split(key(0))
    """
    return Key(ops.random_split(consumed(key, "split"), shape=shape_of(num, "split")))


def fold_in(key, data):
    """A key made of a key and an int, for example of a step number; the key itself stays usable.

    >>> import fgrad
    >>> keys = [fgrad.random.fold_in(fgrad.random.key(0), step) for step in range(2)]
    >>> fgrad.random.normal(keys[0]) == fgrad.random.normal(keys[1])
    Array(False, bool[])
    """
    words = checked(key, "fold_in").data
    if not isinstance(data, Value):
        data = frozen_array(np.array(operator.index(data) & 0xFFFFFFFF, U32))
    number = broadcast_to(cast(data.settled(), U32), words.shape[:-1])
    return Key(ops.random_fold_in(words, number))


# ------------------------------------------------------------ bits and uniform numbers

def bits(key, shape=(), dtype="uint32"):
    """Uniform random bits, as unsigned integers.   → u32[*shape]

    >>> import fgrad
    >>> fgrad.random.bits(fgrad.random.key(0), (2,)).dtype
    dtype('uint32')
    """
    return ops.random_bits(consumed(key, "bits"), shape=shape_of(shape, "bits"),
                           dtype=as_dtype(dtype))


def float_dtype(dtype, name):
    """The dtype, the default float for None.  Raises DtypeError for one that is no float."""
    dtype = default_float() if dtype is None else as_dtype(dtype)
    if dtype.kind != "f":
        raise DtypeError(f"{name} makes floats, not {SHORT[dtype]}.",
                         fix="randint makes integers, and bernoulli bools")
    return dtype


def unit(words, shape, dtype):
    """Multiples of 2⁻²³ (f32; 2⁻⁵² in f64) in [0, 1): the mantissa is random."""
    places = finfo(dtype).nmant
    size = 8 * dtype.itemsize if places > 8 else 8       # bf16 needs 7 bits, and draws a byte
    drawn = ops.random_bits(words, shape=shape, dtype=UNSIGNED_OF[size])
    mantissa = same(ops.shr, drawn, size - places)
    return same(ops.mul, ops.convert(mantissa, dtype=dtype), 2.0 ** -places)


def between(words, shape, dtype, low, high):
    """Uniform numbers in [low, high); both are NumPy scalars of the dtype, or values."""
    if isinstance(low, np.generic) and isinstance(high, np.generic):
        low, width = float(low), float(high - low)
    else:
        low, high = [broadcast_to(in_dtype(v, dtype), shape) for v in (low, high)]
        width = same(ops.sub, high, low)
    x = same(ops.add, same(ops.mul, unit(words, shape, dtype), width), low)
    return same(ops.max, x, low)


def uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0):
    """Uniform numbers in [minval, maxval).   → f[*shape]

    Raises RandomKeyError without a key, DtypeError for a dtype that is no float.

    >>> import fgrad
    >>> fgrad.random.uniform(fgrad.random.key(0), (2, 3), minval=-1.0).shape
    (2, 3)
    """
    dtype, shape = float_dtype(dtype, "uniform"), shape_of(shape, "uniform")
    low, high = [dtype.type(v) if isinstance(v, (int, float)) else v for v in (minval, maxval)]
    return between(consumed(key, "uniform"), shape, dtype, low, high)


def randint(key, shape, minval, maxval, dtype=None):
    """Uniform integers in [minval, maxval).   → i32[*shape]

    The remainder of twice as many bits as the dtype has, so the bias is negligible.

    >>> import fgrad
    >>> fgrad.random.randint(fgrad.random.key(0), (5,), 0, 10)
    Array([9, 0, 2, 3, 1], i32[5])
    """
    dtype = default_int() if dtype is None else as_dtype(dtype)
    if dtype.kind not in "iu":
        raise DtypeError(f"randint makes integers, not {SHORT[dtype]}.", fix="uniform makes floats")
    shape, words = shape_of(shape, "randint"), consumed(key, "randint")
    if dtype.itemsize < 4:
        limits = np.iinfo(dtype)
        low = within(minval, int(limits.min), int(limits.max))
        high = within(maxval, int(limits.min), int(limits.max) + 1)
        return cast(integers(words, shape, low, high, I32), dtype)
    return integers(words, shape, minval, maxval, dtype)


def within(bound, least, most):
    """A bound of integers as one that a dtype can hold; a Python int as such."""
    if isinstance(bound, (int, np.integer)):
        return min(max(int(bound), least), most)
    wide = in_dtype(bound, I64)
    return cast(ops.clamp(least, wide, most), I32)


def integers(words, shape, minval, maxval, dtype):
    """Uniform integers of 32 or 64 bits."""
    size = 8 * dtype.itemsize
    unsigned = UNSIGNED_OF[size]
    low, span, every = low_and_span(minval, maxval, shape, dtype, unsigned)
    pair = ops.random_split(words, shape=(2,))
    high_bits, low_bits = [ops.random_bits(pair[k], shape=shape, dtype=unsigned) for k in (0, 1)]
    if every is True:
        return same(ops.add, low, cast(low_bits, dtype))
    rem = lambda x: same(ops.rem, x, span)
    half = rem(ops.full(shape=shape, value=2 ** (size // 2), dtype=unsigned))
    multiplier = rem(same(ops.mul, half, half))
    offset = rem(same(ops.add, same(ops.mul, rem(high_bits), multiplier), rem(low_bits)))
    if every is not False:
        offset = ops.select(every, low_bits, offset)
    return same(ops.add, low, cast(offset, dtype))


def low_and_span(minval, maxval, shape, dtype, unsigned):
    """(the smallest value, how many there are, as unsigned, at least 1; are they all there are?)"""
    limits = np.iinfo(dtype)
    if isinstance(minval, (int, np.integer)) and isinstance(maxval, (int, np.integer)):
        low, high = max(int(minval), int(limits.min)), min(int(maxval), int(limits.max) + 1)
        span = max(high - low, 1)
        every = span == 2 ** (8 * dtype.itemsize)
        span = span if every else ops.full(shape=shape, value=span, dtype=unsigned)
        return ops.full(shape=shape, value=low, dtype=dtype), span, every
    ends = [as_value_or_number(v) for v in (minval, maxval)]
    beyond = not all((v.__class__ is int and limits.min <= v <= limits.max) if is_number(v)
                     else v.dtype.kind in "iu" and np.can_cast(v.dtype, dtype) for v in ends)
    wide = I64 if beyond and dtype.itemsize < 8 else dtype
    low, high = [broadcast_to(in_dtype(v, wide), shape) for v in ends]
    if wide is not dtype:
        low = ops.clamp(int(limits.min), low, int(limits.max))
        high = ops.clamp(int(limits.min), high, int(limits.max) + 1)
    span = ops.select(same(ops.le, high, low), 1, cast(same(ops.sub, high, low), unsigned))
    return cast(low, dtype), span, same(ops.eq, span, 0) if wide is not dtype else False


# ---------------------------------------------------------------------------- distributions

def standard_normal(words, shape, dtype):
    """√2 erf⁻¹(u) of uniform u in (-1, 1)."""
    low = dtype.type(finfo(dtype).epsneg - 1)              # the first number above -1
    u = between(words, shape, dtype, low, dtype.type(1))
    return same(ops.mul, erf_inv(u), math.sqrt(2))


def normal(key, shape=(), dtype=None):
    """Numbers of the normal distribution with mean 0 and variance 1.   → f[*shape]

    Of complex numbers each part has variance 1/2, and a key of its own, as in JAX.

    >>> normal(key(0), (2, 3)).shape
    (2, 3)
    """
    if dtype is not None and as_dtype(dtype).kind == "c":
        part = part_of(as_dtype(dtype))
        halves = [normal(half, shape, part) for half in split(key)]
        return ops.complex(*[same(ops.div, x, math.sqrt(2)) for x in halves])
    dtype = float_dtype(dtype, "normal")
    return standard_normal(consumed(key, "normal"), shape_of(shape, "normal"), dtype)


def truncated_normal(key, lower, upper, shape=None, dtype=None):
    """Normal numbers, given that they lie between lower and upper.   → f[*shape]

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> x = fgrad.random.truncated_normal(fgrad.random.key(0), -1.0, 1.0, (100,))
    >>> fnp.max(fnp.abs(x)) <= 1.0
    Array(True, bool[])
    """
    dtype = float_dtype(dtype, "truncated_normal")
    low, high = [in_dtype(v, dtype) for v in (lower, upper)]
    if shape is None:
        shape = broadcast_shapes(low.shape, high.shape)
    shape = shape_of(shape, "truncated_normal")
    low, high = broadcast_to(low, shape), broadcast_to(high, shape)
    ends = [erf(same(ops.div, v, math.sqrt(2))) for v in (low, high)]
    u = between(consumed(key, "truncated_normal"), shape, dtype, *ends)
    return ops.clamp(low, same(ops.mul, erf_inv(u), math.sqrt(2)), high)


def bernoulli(key, p=0.5, shape=None):
    """True with probability p.   → bool[*shape], the shape of p by default

    >>> import fgrad
    >>> fgrad.random.bernoulli(fgrad.random.key(0), 0.7, (4,))
    Array([False, False,  True,  True], bool[4])
    """
    p = as_float(p)
    shape = p.shape if shape is None else shape_of(shape, "bernoulli")
    u = between(consumed(key, "bernoulli"), shape, p.dtype, p.dtype.type(0), p.dtype.type(1))
    return same(ops.lt, u, broadcast_to(p, shape))


def rademacher(key, shape=(), dtype=None):
    """-1 or 1, each with probability a half.   → i32[*shape]

    >>> import fgrad
    >>> fgrad.random.rademacher(fgrad.random.key(0), (4,))
    Array([-1, -1,  1,  1], i32[4])
    """
    dtype = default_int() if dtype is None else as_dtype(dtype)
    heads = cast(bernoulli(key, 0.5, shape), dtype)
    return same(ops.sub, same(ops.mul, heads, 2), 1)


def exponential(key, shape=(), dtype=None):
    """Numbers of the exponential distribution with mean 1.   → f[*shape]

    >>> import fgrad
    >>> fgrad.random.exponential(fgrad.random.key(0), (2,)).shape
    (2,)
    """
    return ops.neg(ops.log1p(ops.neg(uniform(key, shape, float_dtype(dtype, "exponential")))))


def gumbel(key, shape=(), dtype=None):
    """Numbers of the Gumbel distribution: -log(-log(u)).   → f[*shape]

    >>> import fgrad
    >>> fgrad.random.gumbel(fgrad.random.key(0), (2,)).shape
    (2,)
    """
    dtype = float_dtype(dtype, "gumbel")
    u = between(consumed(key, "gumbel"), shape_of(shape, "gumbel"), dtype, finfo(dtype).tiny,
                dtype.type(1))
    return ops.neg(ops.log(ops.neg(ops.log(u))))


def laplace(key, shape=(), dtype=None):
    """Numbers of the Laplace distribution with scale 1.   → f[*shape]

    >>> import fgrad
    >>> fgrad.random.laplace(fgrad.random.key(0), (2,)).shape
    (2,)
    """
    dtype = float_dtype(dtype, "laplace")
    low = dtype.type(finfo(dtype).epsneg - 1)
    u = between(consumed(key, "laplace"), shape_of(shape, "laplace"), dtype, low, dtype.type(1))
    return same(ops.mul, ops.sign(u), ops.log1p(ops.neg(ops.abs(u))))


def categorical(key, logits, axis=-1, shape=None):
    """Positions along `axis`, each with probability softmax(logits).   f[*s] → i32[s without axis]

    shape: the shape of the result, whose last axes are those of the logits.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> fgrad.random.categorical(fgrad.random.key(0), fnp.log(fnp.array([0.4, 0.6])), shape=(5,))
    Array([1, 1, 0, 1, 0], i32[5])
    """
    x = as_float(logits)
    k = axis_of(axis, x.ndim, "categorical")
    batch = (*x.shape[:k], *x.shape[k + 1:])
    shape = batch if shape is None else shape_of(shape, "categorical")
    lead = len(shape) - len(batch)
    if lead < 0 or shape[lead:] != batch:
        raise ShapeError(f"categorical cannot draw {text_of(shape)} from logits of shape "
                         f"{text_of(x.shape)}.",
                         expected=f"a shape that ends with {text_of(batch)}")
    k += lead
    wide = (*shape[:k], x.shape[k - lead], *shape[k:])
    noise = gumbel(key, wide, x.dtype)
    return ops.argmax(same(ops.add, noise, broadcast_to(x, wide)), axis=k)


# ---------------------------------------------------------------------------- order

def shuffled(words, x, axis):
    """x in an order by random numbers; as many rounds as make equal numbers unlikely."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        pair = ops.random_split(words, shape=(2,))
        words = pair[0]
        numbers = ops.random_bits(pair[1], shape=x.shape, dtype=U32)
        x = ops.take_along(x, ops.order(numbers, axis=axis), axis)
    return x


def permutation(key, x, axis=0, independent=False):
    """0, …, x - 1 in random order, or the array in random order along an axis.

    independent: every row along the axis in an order of its own.

    >>> import fgrad
    >>> fgrad.random.permutation(fgrad.random.key(0), 5)
    Array([0, 1, 4, 3, 2], i32[5])
    """
    words = consumed(key, "permutation")
    x = count_or_array(x)
    k = axis_of(axis, x.ndim, "permutation")
    if independent or x.ndim == 1:
        return shuffled(words, x, k)
    order = shuffled(words, fnp.arange(x.shape[k]), 0)
    return fnp.take(x, order, k)


def count_or_array(x):
    """The array; an int n is arange(n)."""
    x = as_value(x) if not isinstance(x, Value) else x
    if x.shape:
        return x
    return fnp.arange(int_of(x, lambda: ArgumentError(
        "an array, or how many numbers from 0 on, is needed.", given=repr(x)[:60],
        expected="an array or an int")))


def choice(key, a, shape=(), replace=True, p=None, axis=0):
    """Random elements of an array along an axis, or of arange(a).   → n[*shape]

    replace: may an element come more than once?  p: the probability of each.  Raises RangeError
    when more different elements are asked for than there are.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> fgrad.random.choice(fgrad.random.key(0), fnp.array([10, 20, 30]), (2,), replace=False)
    Array([10, 20], i32[2])
    """
    shape, x = shape_of(shape, "choice"), count_or_array(a)
    k = axis_of(axis, x.ndim, "choice")
    n, draws = x.shape[k], math.prod(shape)
    if draws and not n or draws > n and not replace:
        raise RangeError(f"choice cannot draw {draws} "
                         f"{'different ' if not replace else ''}elements of {n}.")
    if p is not None:
        places = by_probability(key, p, n, shape, draws, replace)
    elif replace:
        places = randint(key, shape, 0, n)
    else:
        picked = permutation(key, x, axis=k)[(slice(None),) * k + (slice(draws),)]
        return ops.reshape(picked, shape=(*x.shape[:k], *shape, *x.shape[k + 1:]))
    return fnp.take(x, places, k)


def by_probability(key, p, n, shape, draws, replace):
    """Places by probability: the inverse distribution, or the largest Gumbel numbers."""
    p = as_float(p)
    if p.shape != (n,):
        raise ShapeError("choice needs one probability for each element.",
                         given=f"p of shape {text_of(p.shape)}",
                         expected=f"shape {text_of((n,))}")
    if replace:
        total = fnp.cumsum(p)
        u = uniform(key, shape, p.dtype)
        return fnp.searchsorted(total, total[-1] * (1 - u))
    order = fnp.argsort(-(gumbel(key, (n,), p.dtype) + fnp.log(p)))
    return fnp.reshape(order[:draws], shape)


# ---------------------------------------------------------------------------- NumPy's way

COUNTING = threading.Lock()    # a Generator counts on: no two threads draw with one count


class Generator:
    """A stream of random numbers that counts by itself: NumPy's way, for code that runs now.

    A pytree: in a jitted function take it as an argument and return it, so that the next call goes
    on. Raises LeakError when a jitted function merely closes over it: its numbers would be frozen.

    >>> rng = Generator(0)
    >>> rng.normal((3,)).shape, rng.integers(0, 10, (2,)).shape
    ((3,), (2,))
    """

    def __init__(self, seed=0):
        self.data = seed.data if seed.__class__ is Key else key(seed).data
        self.count = as_value(np.uint32(0))
        self.home = current()

    def __repr__(self):
        return f"Generator({self.data}, count={self.count})"

    def key(self):
        """The next key."""
        self.check_home()
        with COUNTING:
            count, self.count = self.count, same(ops.add, self.count, 1)
        return fold_in(revived(self.data), count)

    def check_home(self):
        """Raises LeakError inside of a jitted function that the generator is no argument of."""
        interpreter = current()
        while interpreter is not None and not interpreter.__class__ is Stage:
            interpreter = interpreter.below
        if interpreter is not None and not self.home.holds(interpreter):
            raise LeakError("a Generator was used in a compiled function that does not take it: "
                            "every call would draw the same numbers.",
                            fix="pass it as an argument and return it: x, rng = f(x, rng)")

    def split(self, num=2):
        """An array of keys."""
        return split(self.key(), num)

    def random(self, shape=(), dtype=None):
        """Uniform numbers in [0, 1)."""
        return uniform(self.key(), shape, dtype)

    def uniform(self, shape=(), low=0.0, high=1.0, dtype=None):
        """Uniform numbers in [low, high)."""
        return uniform(self.key(), shape, dtype, low, high)

    def normal(self, shape=(), dtype=None):
        """Normal numbers with mean 0 and variance 1."""
        return normal(self.key(), shape, dtype)

    def integers(self, low, high=None, shape=(), dtype=None):
        """Uniform integers in [low, high), or in [0, low)."""
        low, high = (0, low) if high is None else (low, high)
        return randint(self.key(), shape, low, high, dtype)

    def bernoulli(self, p=0.5, shape=None):
        """True with probability p."""
        return bernoulli(self.key(), p, shape)

    def permutation(self, x, axis=0):
        """0, …, x - 1, or the array, in random order."""
        return permutation(self.key(), x, axis)

    def choice(self, a, shape=(), replace=True, p=None, axis=0):
        """Random elements of an array, or of arange(a)."""
        return choice(self.key(), a, shape, replace, p, axis)


def revive_generator(_, children):
    """A Generator around leaves of a tree."""
    out = object.__new__(Generator)
    out.data, out.count = children
    out.home = current()
    return out


tree.register_node(Generator, lambda g: ((g.data, g.count), None), revive_generator,
                   lambda meta, n: (".data", ".count"))
