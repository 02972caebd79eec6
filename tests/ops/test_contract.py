"""dot_general against np.einsum, for labels of every kind; its message for sizes that differ."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import jit, ops
from fgrad.core import Array
from fgrad.errors import DtypeError, ShapeError
from tests.tolerance import assert_close

LABELS = ["ij,jk->ik", "ij,kj->ik", "ji,jk->ik", "ij,jk->ki", "bij,bjk->bik", "bij,jk->bik",
          "ij,bjk->bik", "ijk,kl->ijl", "abij,abjk->abik", "iab,abk->ki", "ij,ij->", "i,j->ij",
          "ij,k->kij", "ij,jk->", "i,i->i"]


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "f2"])
def test_dot_general_agrees_with_einsum(labels, dtype):
    operands, to = labels.split("->")
    lhs, rhs = operands.split(",")
    rng = np.random.default_rng(3)
    sizes = dict(zip("abijkl", (2, 3, 5, 7, 4, 1)))
    a, b = [rng.integers(-3, 4, [sizes[c] for c in s]).astype(dtype) for s in (lhs, rhs)]
    got = ops.dot_general(Array(a), Array(b), lhs=lhs, rhs=rhs, to=to)
    want = np.asarray(np.einsum(labels, a.astype("f8"), b.astype("f8"))).astype(dtype)
    assert_close(got.np, want, length=60)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                                   "float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("forms", ["nn", "nt", "tn", "tt"])
def test_compiled_products_of_every_dtype_agree_with_numpy(dtype, forms):
    """Of 8 and 16 bits, with a transposed right operand, columns came out in another order."""
    first, second = [(lambda x: x.T) if form == "t" else (lambda x: x) for form in forms]
    for m, k, n in (60, 4, 7), (33, 17, 65), (16, 16, 16), (3, 5, 40), (1, 9, 20):
        rng = np.random.default_rng(m)
        a, b = rng.integers(0, 4, (m, k)), rng.integers(0, 4, (k, n))
        given = [fnp.asarray(np.ascontiguousarray(x), dtype) for x in (first(a), second(b))]
        out = jit(lambda a, b: first(a) @ second(b))(*given)
        assert out.dtype == given[0].dtype
        np.testing.assert_array_equal(np.asarray(out.astype("complex64")).real, a @ b)


def test_products_of_f16_accumulate_in_f32():
    x = np.full(4099, 1.0, np.float16)
    out = ops.dot_general(Array(x), Array(x), lhs="i", rhs="i", to="")
    assert out.dtype == np.float16 and out.np == np.float16(4099)


def test_sizes_that_differ_are_named_with_their_label():
    x, w = Array(np.ones((8, 3), np.float32)), Array(np.ones((4, 2), np.float32))
    with pytest.raises(ShapeError) as error:
        ops.dot_general(x, w, lhs="ij", rhs="jk", to="ik")
    text = str(error.value)
    assert text.startswith("dot_general cannot contract axes of size 3 and 4.")
    assert "a: f32[8,3]" in text and "b: f32[4,2]" in text
    assert "equal sizes for label j in [ij,jk->ik]" in text
    assert "b of shape (3, 2)" in text


def test_operands_of_two_dtypes_are_refused():
    with pytest.raises(DtypeError, match="not f32 and f64"):
        ops.dot_general(Array(np.ones(2, np.float32)), Array(np.ones(2)), lhs="i", rhs="i", to="")
