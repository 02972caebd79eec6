"""Reductions of rows by segment: as a loop over the segments, transformed, compiled, refused."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.errors import ArgumentError, DtypeError, RangeError, ShapeError
from tests.messages import message

WAYS = {"sum": (fgrad.segment_sum, np.sum, 0), "prod": (fgrad.segment_prod, np.prod, 1),
        "max": (fgrad.segment_max, np.max, -np.inf), "min": (fgrad.segment_min, np.min, np.inf)}
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", [(), (3,), (2, 3)])
@pytest.mark.parametrize("count", [0, 1, 17])
@pytest.mark.parametrize("compiled", [False, True])
def test_each_segment_is_the_reduction_of_its_rows(way, rows, count, compiled):
    reduce, plain, empty = WAYS[way]
    x = RNG.uniform(0.5, 1.5, (count, *rows)).astype("f4")
    ids = RNG.integers(-1, 6, count)             # -1 and 5 are outside, and do not count
    run = fgrad.jit(reduce, static_argnums=2) if compiled else reduce
    want = [plain(x[ids == k], axis=0) if (ids == k).any() else np.full(rows, empty)
            for k in range(5)]
    np.testing.assert_allclose(run(x, ids, 5), np.array(want, "f4"), rtol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_it_can_be_differentiated_and_batched(way):
    reduce = WAYS[way][0]
    x = fnp.asarray(RNG.uniform(0.5, 1.5, (7, 2)).astype("f4"))
    ids = fnp.asarray([0, 2, 2, 9, 0, -1, 1])
    fgrad.check_grads(lambda x: reduce(x, ids, 3), (x,), order=1)
    xs = fnp.stack([x, 2 * x])
    assert fgrad.vmap(lambda x: reduce(x, ids, 3))(xs).tolist() == [
        reduce(x, ids, 3).tolist(), reduce(2 * x, ids, 3).tolist()]


def test_integers_begin_with_the_limits_of_their_dtype():
    ids = fnp.array([1])
    assert fgrad.segment_max(fnp.array([5]), ids, 2).tolist() == [-2 ** 31, 5]
    assert fgrad.segment_min(fnp.array([5], "int8"), ids, 2).tolist() == [127, 5]


def test_there_are_as_many_segments_as_known_ids_need():
    assert fgrad.segment_sum(fnp.ones(3), fnp.array([4, 0, 0])).tolist() == [2, 0, 0, 0, 1]
    assert fgrad.grad(lambda x: fgrad.segment_sum(x, fnp.array([1, 1]))[1])(fnp.ones(2)).shape == (
        2,)


def test_what_does_not_fit_is_refused():
    x = fnp.ones((3, 2))
    assert "takes ids that are integers, not f32" in message(
        DtypeError, lambda: fgrad.segment_sum(x, fnp.ones(3), 2))
    assert "takes one id for each row" in message(
        ShapeError, lambda: fgrad.segment_max(x, fnp.zeros(2, "int32"), 2))
    assert "0 or more" in message(
        RangeError, lambda: fgrad.segment_sum(x, fnp.zeros(3, "int32"), -1))
    assert "num_segments=n" in message(
        ArgumentError, lambda: fgrad.jit(fgrad.segment_sum)(x, fnp.zeros(3, "int32")))


def test_ids_of_few_bits_can_have_more_segments_than_they_count():
    ids = fnp.array([0, 255, 255], "uint8")
    got = fgrad.segment_sum(fnp.ones(3), ids, 300)
    assert got.shape == (300,) and got[255] == 2 and got.sum() == 3


def test_they_are_where_jax_has_them():
    assert fgrad.ops.segment_sum is fgrad.segment_sum
    rows, ids = fnp.array([1.0, 3.0, 2.0]), fnp.array([0, 0, 1])
    assert fgrad.ops.segment_max(rows, ids).tolist() == [3, 2]
    assert "segment_min" in dir(fgrad.ops)
