"""dot_general against np.einsum, for labels of every kind; its message for sizes that differ."""

import numpy as np
import pytest

from fgrad import ops
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
