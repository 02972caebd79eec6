"""Operands in pieces: images whose rows no vector holds whole, batches that share a matrix."""

import ctypes
import itertools
import mmap

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import index, lax, scalar
from fgrad.backends.llvm.pieces import count_of, pieces
from fgrad.loop import Buffer
from fgrad.types import F32, ArrayType
from tests.tolerance import assert_close


def draw(*shape, dtype="float32"):
    values = np.random.default_rng([7, *shape]).standard_normal(shape)
    return (4 * values).round().astype(dtype)


def by_taps(x, w, pad):
    """The convolution of x[n,c,h,w] with w[o,c,a,b], tap by tap."""
    a, b = w.shape[2:]
    if pad == "SAME":
        x = np.pad(x, ((0, 0), (0, 0), ((a - 1) // 2, a // 2), ((b - 1) // 2, b // 2)))
    h, v = x.shape[2] - a + 1, x.shape[3] - b + 1
    return sum(np.einsum("nchw,oc->nohw", x[:, :, i:i + h, j:j + v], w[:, :, i, j])
               for i, j in itertools.product(range(a), range(b)))


def protected(x, at_end):
    """A copy of x next to a page that nobody may read: behind it, or in front of it."""
    page = mmap.PAGESIZE
    whole = -(-x.nbytes // page) * page
    memory = mmap.mmap(-1, whole + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    forbidden = start + whole if at_end else start
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(forbidden), page, 0) == 0
    out = np.frombuffer(memory, x.dtype, x.size, whole - x.nbytes if at_end else page)
    out = out.reshape(x.shape)
    out[...] = x
    return out


@pytest.mark.parametrize("pad", ["SAME", "VALID"])
@pytest.mark.parametrize("width", [3, 5, 7, 9, 10, 14, 17, 26, 28, 31, 33])
def test_images_of_few_channels_are_convolved_row_by_row(width, pad):
    for channels, taps, dtype in ((1, 3, "float32"), (2, 2, "float32"), (1, 3, "float64"),
                                  (1, 3, "int32")):
        x, w = draw(5, channels, 6, width, dtype=dtype), draw(6, channels, taps, taps, dtype=dtype)
        f = fgrad.jit(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), pad))
        np.testing.assert_array_equal(f(x, w), by_taps(x, w, pad))


@pytest.mark.parametrize("pad", ["SAME", "VALID"])
@pytest.mark.parametrize("width", [5, 10, 28])
def test_their_gradients_are_those_of_a_loop(width, pad):
    x, w = draw(3, 1, 6, width), draw(5, 1, 3, 3)

    def loss(conv):
        return lambda x, w: fnp.sum(conv(x, w) ** 2)
    made = fgrad.jit(fgrad.grad(loss(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), pad)),
                                (0, 1)))

    def slowly(x, w):
        if pad == "SAME":
            x = fnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        h, v = x.shape[2] - 2, x.shape[3] - 2
        return sum(x[:, :, i:i + h, j:j + v] * w[:, 0, i, j][None, :, None, None]
                   for i, j in itertools.product(range(3), range(3)))
    for got, want in zip(made(x, w), fgrad.grad(loss(slowly), (0, 1))(x, w)):
        assert_close(got, want)


@pytest.mark.parametrize("channels", [3, 5, 24])
def test_gradients_of_a_transposed_convolution_are_those_at_once(channels):
    """Its dots are cut short by masks, not by counts: LLVM refused the module."""
    x, w = draw(4, 8, 8, channels), draw(4, 4, channels, 3)

    def loss(x, w):
        return fnp.sum(lax.conv_transpose(x, w, (2, 2), "SAME",
                                          dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2)
    slopes = fgrad.grad(loss, (0, 1))
    with fgrad.device("reference"):
        want = slopes(x, w)
    for got, each in zip(fgrad.jit(slopes)(x, w), want):
        assert_close(got, each)


@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("width", [7, 10, 28])
def test_nothing_outside_of_an_image_is_read(width, at_end):
    x, w = draw(64, 1, 8, width), draw(16, 1, 3, 3)
    for pad in ("SAME", "VALID"):
        f = fgrad.jit(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), pad))
        np.testing.assert_array_equal(f(protected(x, at_end), w), by_taps(x, w, pad))


@pytest.mark.parametrize("columns", [*range(1, 18), 31, 32, 33, 50])
@pytest.mark.parametrize("subscripts", ["ik,bkj->bij", "ik,bjk->bij", "ik,kbj->bij",
                                        "ik,bckj->bcij", "ik,ckbj->bicj"])
def test_batches_may_share_a_matrix(subscripts, columns):
    sizes = dict(i=6, k=20, b=7, c=3, j=columns)
    for dtype in ("float32", "float64"):
        w, x = [draw(*map(sizes.get, part), dtype=dtype)
                for part in subscripts.partition("->")[0].split(",")]
        want = np.einsum(subscripts, w, x)
        np.testing.assert_array_equal(
            fgrad.jit(lambda w, x: fnp.einsum(subscripts, w, x))(w, x), want)
        np.testing.assert_array_equal(
            fgrad.jit(lambda w, x: 2 * fnp.einsum(subscripts, w, x) + 1)(w, x), 2 * want + 1)


def test_pieces_are_told_by_the_periods_of_an_index_and_of_its_border():
    with index.Space() as space:
        i, k = space.variable(5 * 6 * 28), space.variable(3)
        row, column = index.divide(index.of(i), 28)
        at = index.combine([(row, 30), (column, 1), (index.of(k), 1)])
        load = scalar.load(Buffer("x", ArrayType(F32, (5 * 6 * 30,)), "input"), at)
        border = scalar.guard(
            ((index.plus(column, -1), 0, 26), (row, 0, 29)), load, scalar.const(0.0, F32))
        found = pieces(border, i, np.dtype("float32"), 16)
        assert (found.load, found.period, found.slopes) == (load, 28, (1, 0))
        assert pieces(load, i, np.dtype("float32"), 16).period == 28
        assert pieces(load, i, np.dtype("float64"), 16) is None        # it is cast
        assert pieces(load, i, np.dtype("float32"), 4) is None         # whole vectors
        assert pieces(load, k, np.dtype("float32"), 16) is None        # more than MOST
        twice = scalar.load(load.data[0], index.combine([(column, 2)]))
        assert pieces(twice, i, np.dtype("float32"), 16) is None
    assert [count_of(n, 16) for n in (28, 16, 15, 10, 7, 5)] == [2, 2, 2, 3, 4, 4]
