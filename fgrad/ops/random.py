"""Random bits: the Threefry-2x32 hash of a key and a counter; and making keys from keys.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), 20 rounds.  Streams are bit for
bit those of JAX with `jax_threefry_partitionable=True`: element k of a result hashes the 64-bit
counter k, so every element can be computed alone.  A key is u32[2]; leading axes of a key are
separate keys.
"""

from __future__ import annotations

import operator
from functools import partial
from math import prod

import numpy as np

from .. import index, scalar
from ..core import Primitive
from ..errors import DtypeError, RandomKeyError
from ..types import I32, SHORT, U8, U16, U32, U64, ArrayType
from . import move
from .silence import quiet

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
WORD = 0xFFFFFFFF
FEW = 4                    # counters up to which Python's ints are faster than NumPy's arrays
BLOCK = 1 << 15            # counters hashed at a time by NumPy, so that they stay in the cache


def threefry(k0, k1, x0, x1, constant, add, xor, shl, shr):
    """The two hashed words; `constant` makes a u32 of an int, the others work on u32."""
    keys = k0, k1, xor(xor(k0, k1), constant(PARITY))
    x0, x1 = add(x0, k0), add(x1, k1)
    for block in range(5):
        for r in ROTATIONS[block % 2]:
            x0 = add(x0, x1)
            x1 = xor(rotated(x1, r, constant, add, shl, shr), x0)
        x0 = add(x0, keys[(block + 1) % 3])
        x1 = add(add(x1, keys[(block + 2) % 3]), constant(block + 1))
    return x0, x1


def rotated(x, r, constant, add, shl, shr):
    """x rotated left by r bits; the two parts share no bit, so they may be added."""
    return add(shl(x, constant(r)), shr(x, constant(32 - r)))


def threefry_of_ints(k0, k1, x0, x1):
    """The same of Python ints."""
    return threefry(k0, k1, x0, x1, int, lambda x, y: (x + y) & WORD, operator.xor,
                    lambda x, r: (x << r) & WORD, operator.rshift)


def hashed(key, count):
    """Threefry of NumPy keys u32[*b, 2] and counters u64[*s]: two words u32[*b, *s]."""
    if key.ndim > 1 or count.size > FEW:
        return hashed_arrays(key, count)
    k0, k1 = key.tolist()
    words = [threefry_of_ints(k0, k1, n >> 32, n & WORD) for n in count.reshape(-1).tolist()]
    words = np.array(words, U32).reshape(*count.shape, 2)
    return words[..., 0], words[..., 1]


@quiet
def hashed_arrays(key, count):
    """The same, by NumPy: some hundred operations on arrays."""
    high, low = (count >> U64.type(32)).astype(U32), count.astype(U32)
    lead = key.shape[:-1] + (1,) * count.ndim
    k0, k1 = [np.array(key[..., w]).reshape(lead) for w in (0, 1)]
    shape = np.broadcast_shapes(lead, count.shape)
    x0, x1 = [np.broadcast_to(x, shape) for x in (high, low)]
    return threefry(k0, k1, x0, x1, U32.type, np.add, np.bitwise_xor, np.left_shift, np.right_shift)


def hashed_node(k0, k1, x0, x1):
    """Threefry of nodes."""
    add, xor, shl, shr = [partial(scalar.apply, name) for name in ("add", "xor", "shl", "shr")]
    return threefry(k0, k1, x0, x1, lambda c: scalar.const(c, U32), add, xor, shl, shr)


def bits_at(key, count, dtype):
    """The random bits of NumPy counters."""
    x0, x1 = hashed(key, count)
    if dtype == U64:
        return (x0.astype(U64) << U64.type(32)) | x1.astype(U64)
    return (x0 ^ x1).astype(dtype)


def counter_nodes(i, shape):
    """High and low words of the row-major number of an index."""
    high, low = index.divide(index.flat(i, shape), 1 << 32)
    return scalar.index_value(high, U32), scalar.index_value(low, U32)


def key_words(key, i):
    """The two words of the key at a batch index, as nodes."""
    return key((*i, index.of(0))), key((*i, index.of(1)))


def check_key(name, key):
    """Raises RandomKeyError unless key is u32[*b, 2]."""
    if key.dtype != U32 or key.shape[-1:] != (2,):
        raise RandomKeyError(f"{name} needs a random key.", given=str(key), expected="u32[2]",
                             fix="make one with fgrad.random.key(seed)")


class RandomBits(Primitive):
    """Uniform random bits.   u32[*b, 2] → dtype[*b, *shape]; dtype u8, u16, u32 or u64"""
    differentiable = False
    dtypes = (U32,)

    def type(self, key, /, *, shape, dtype=U32):
        check_key(self.name, key)
        if dtype not in (U8, U16, U32, U64):
            raise DtypeError(f"random_bits cannot make {SHORT[dtype]}.",
                             expected="u8 u16 u32 or u64")
        return ArrayType(dtype, key.shape[:-1] + tuple(shape))

    def numpy(self, key, /, *, shape, dtype=U32):
        count = np.arange(prod(shape), dtype=U64)
        if key.ndim > 1 or len(count) <= BLOCK:
            return bits_at(key, count.reshape(shape), dtype)
        parts = [bits_at(key, count[k:k + BLOCK], dtype) for k in range(0, len(count), BLOCK)]
        return np.concatenate(parts).reshape(shape)

    def batch(self, dims, key, /, **params):
        return self(move.to_front(key, *dims), **params), 0

    def pull(self, key, /, *, shape, dtype=U32):
        lead = len(key.shape) - 1

        def bits(i):
            x0, x1 = hashed_node(*key_words(key, i[:lead]), *counter_nodes(i[lead:], shape))
            if dtype != U64:
                return scalar.cast(scalar.apply("xor", x0, x1), dtype)
            high = scalar.apply("shl", scalar.cast(x0, U64), scalar.const(32, U64))
            return scalar.apply("or", high, scalar.cast(x1, U64))
        return bits


class RandomSplit(Primitive):
    """Independent keys made from one.   u32[*b, 2] → u32[*b, *shape, 2]"""
    differentiable = False
    dtypes = (U32,)

    def type(self, key, /, *, shape):
        check_key(self.name, key)
        return ArrayType(U32, key.shape[:-1] + tuple(shape) + (2,))

    def numpy(self, key, /, *, shape):
        return np.stack(hashed(key, np.arange(prod(shape), dtype=U64).reshape(shape)), -1)

    def batch(self, dims, key, /, *, shape):
        return self(move.to_front(key, *dims), shape=shape), 0

    def pull(self, key, /, *, shape):
        lead = len(key.shape) - 1

        def word(i):
            words = hashed_node(*key_words(key, i[:lead]), *counter_nodes(i[lead:-1], shape))
            return chosen(i[-1], words)
        return word


class RandomFoldIn(Primitive):
    """A key made from a key and a number.   u32[*b, 2] u32[*b] → u32[*b, 2]"""
    differentiable = False
    dtypes = (U32,)

    def type(self, key, data, /):
        check_key(self.name, key)
        if data is not ArrayType(U32, key.shape[:-1]):
            raise RandomKeyError("random_fold_in needs one u32 number per key.",
                                 given=[f"key: {key}", f"data: {data}"])
        return key

    @quiet
    def numpy(self, key, data, /):
        if key.ndim == 1:
            return np.array(threefry_of_ints(*key.tolist(), 0, int(data)), U32)
        k0, k1 = np.array(key[..., 0]), np.array(key[..., 1])
        words = threefry(k0, k1, np.zeros_like(data), np.asarray(data), U32.type,
                         np.add, np.bitwise_xor, np.left_shift, np.right_shift)
        return np.stack(words, -1)

    def batch(self, dims, key, data, /):
        n = move.size_of((key, data), dims)
        return self(*[move.to_front(x, d, n) for x, d in zip((key, data), dims)]), 0

    def pull(self, key, data, /):
        def word(i):
            zero = scalar.const(0, U32)
            return chosen(i[-1], hashed_node(*key_words(key, i[:-1]), zero, data(i[:-1])))
        return word


def chosen(i, words):
    """words[i] for an Ix i that is 0 or 1."""
    if not i.terms:
        return words[i.const]
    first = scalar.apply("eq", scalar.index_value(i, I32), scalar.const(0, I32))
    return scalar.apply("select", first, *words)


random_bits = RandomBits("random_bits")
random_split = RandomSplit("random_split")
random_fold_in = RandomFoldIn("random_fold_in")
