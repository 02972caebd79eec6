"""Indexing and updates agree with NumPy, over every kind of index."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import grad, jit, lax

X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
INDICES = [
    0, -1, (0, 1), (0, 1, 2), slice(None), slice(1, None), (slice(None), slice(None, None, -1)),
    (slice(None), slice(None), slice(3, 0, -2)), (slice(None), slice(1, 1)), (..., 0), (0, ...),
    (Ellipsis,), None,
    (None, 0, None), (slice(None), None, 1), (..., None), np.array([0, 1, 1]), [0, -1],
    (slice(None), [0, 2]),
    ([0, 1], [1, 2]), ([0, 1], slice(None), [1, 2]), (0, slice(None), [1, 2]),
    (slice(None), 0, [1, 2]),
    (slice(None), [[0, 1], [2, 0]], [[0], [1]]), ([1], slice(1, 3)), (None, [0, 1], 0),
    (slice(None), [0, 1], None),
    X > 11, X[:, :, 0] > 3, (slice(None), np.array([True, False, True])),
    (0, np.array([True, False, True])),
    (np.array([True, False]), [1, 2, 0]), np.zeros(0, int), [], (slice(None), np.array(1)),
    (np.int64(1), slice(0, 2)),
    (slice(5, 9), 0), (slice(-2, None), slice(-9, 9)),
    (slice(None), slice(None), np.array([0, 3], np.uint8)), (),
    (slice(None), [0, 1], slice(None, None, -1))]
UPDATES = {"set": lambda x, i, v: x.__setitem__(i, v),
           "add": lambda x, i, v: np.add.at(x, i, v),
           "multiply": lambda x, i, v: np.multiply.at(x, i, v),
           "min": lambda x, i, v: np.minimum.at(x, i, v),
           "max": lambda x, i, v: np.maximum.at(x, i, v)}


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reading_agrees_with_numpy(index):
    ours, theirs = fnp.array(X)[index], X[index]
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.parametrize("how", UPDATES)
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_writing_agrees_with_numpy(index, how):
    values = np.random.default_rng(0).normal(size=X[index].shape).astype(np.float32) * 20
    values = values[:1] if values.ndim and len(values) else values
    expected = X.copy()
    UPDATES[how](expected, index, values)
    x = fnp.array(X)
    np.testing.assert_allclose(np.asarray(getattr(x.at[index], how)(values)), expected, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(x), X)


def test_other_updates():
    x = fnp.arange(4.0)
    assert x.at[1:3].divide(2.0).tolist() == [0, 0.5, 1, 3]
    assert x.at[1:3].mul(2.0).tolist() == x.at[1:3].multiply(2.0).tolist() == [0, 2, 4, 3]
    assert x.at[1].subtract(5).tolist() == [0, -4, 2, 3]
    assert x.at[2:].power(2).tolist() == [0, 1, 4, 9]
    assert x.at[::2].apply(lambda v: v + 10).tolist() == [10, 1, 12, 3]
    assert x.at[1:].get().tolist() == [1, 2, 3]
    assert x.at[[0, 0]].add(1.0).tolist() == [2, 1, 2, 3]
    assert fnp.arange(3).at[0].set(7).dtype == np.int32
    assert fnp.array([True, True]).at[0].set(False).tolist() == [False, True]
    assert fnp.zeros(3, "int32").at[1].max(4).at[0].min(-4).tolist() == [-4, 4, 0]


def test_take_agrees_with_numpy():
    i = np.array([[0, 2], [1, 0]])
    np.testing.assert_array_equal(np.asarray(fnp.take(X, i, 1)), np.take(X, i, 1))
    np.testing.assert_array_equal(np.asarray(fnp.take(X, i)), np.take(X, i))
    order = np.argsort(-X, axis=1)
    np.testing.assert_array_equal(np.asarray(fnp.take_along_axis(X, order, 1)),
                                  np.take_along_axis(X, order, 1))
    np.testing.assert_array_equal(np.asarray(fnp.compress([True, False, True], X, 1)),
                                  np.compress([True, False, True], X, 1))


def test_indices_of_8_bits_reach_the_end_of_long_axes():
    x = fnp.arange(300)
    assert x[np.array([-1, 5], np.int8)].tolist() == [299, 5]
    assert x[np.array([255], np.uint8)].tolist() == [255]
    assert jit(lambda i: x[i])(np.array([-1], np.int8)).tolist() == [299]


def test_iteration_and_membership():
    x = fnp.array([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    a, b = fnp.array([1.0, 2.0])
    assert (a.item(), b.item()) == (1.0, 2.0)
    assert 3 in x and 5 not in x


@pytest.mark.parametrize("index, error", [(3, IndexError), ((0, 0, 0, 0), IndexError),
                                          ([0, 9], IndexError),
                                          (1.0, IndexError), ("a", IndexError),
                                          (np.ones(3, bool), IndexError),
                                          ((..., ...), TypeError),
                                          (slice(None, None, 0), TypeError)], ids=str)
def test_wrong_indices_are_refused(index, error):
    for read in (lambda x: x[index], lambda x: x.at[index].set(0.0)):
        with pytest.raises(error):
            read(fnp.array(X))


# ---------------------------------------------------------------------------- indices out of range

FAR = [-9, -4, -3, -1, 0, 2, 3, 8]                           # of 3 places
PLACES = {"clip": lambda i: min(max(i + 3 if i < 0 else i, 0), 2), "wrap": lambda i: i % 3,
          "fill": lambda i: (i + 3 if i < 0 else i) if -3 <= i < 3 else None}
PLACES |= {"drop": PLACES["fill"], "promise_in_bounds": PLACES["clip"]}


def at_place(row, i, mode):
    """The element that an index reads by the table of places; -1 where it reads none."""
    place = PLACES[mode](i)
    return -1.0 if place is None else row[place]


def written_by(row, indices, mode):
    """The row after 10, 20, … were added at the indices, one after the other."""
    row = list(row)
    for number, i in enumerate(indices, 1):
        place = PLACES[mode](i)
        if place is not None:
            row[place] += 10.0 * number
    return row


@pytest.mark.parametrize("mode", PLACES)
def test_a_mode_says_what_an_index_out_of_range_reads(mode):
    x = fnp.arange(6.0).reshape(2, 3)
    index = fnp.array(FAR)
    want = [[at_place(row, i, mode) for i in FAR] for row in x.tolist()]
    taken = fnp.take(x, index, 1, mode=mode, fill_value=-1)
    below = [[row[0] if mode == "clip" and i < 0 else y for i, y in zip(FAR, line)]
             for row, line in zip(x.tolist(), want)]                 # as NumPy clips them
    assert taken.tolist() == below
    assert jit(lambda x, i: fnp.take(x, i, 1, mode=mode, fill_value=-1))(x, index).tolist() == below
    ways = [lambda x, i: x.at[:, i].get(mode=mode, fill_value=-1),
            lambda x, i: fnp.take_along_axis(x, fnp.stack([i, i]), 1, mode=mode, fill_value=-1)]
    for read in ways:
        assert read(x, index).tolist() == want
        assert jit(read)(x, index).tolist() == want
        assert jit(lambda x: read(x, index))(x).tolist() == want
    for number, i in enumerate(FAR):
        assert x.at[:, i].get(mode=mode, fill_value=-1).tolist() == [row[number] for row in want]
        assert x.at[1, i].get(mode=mode, fill_value=-1).item() == want[1][number]


@pytest.mark.parametrize("mode", PLACES)
def test_a_mode_says_what_an_index_out_of_range_writes(mode):
    x = fnp.arange(3.0)
    values = 10.0 * fnp.arange(1.0, len(FAR) + 1)
    want = written_by(x.tolist(), FAR, mode)
    assert x.at[fnp.array(FAR)].add(values, mode=mode).tolist() == want
    add = jit(lambda x, i: x.at[i].add(values, mode=mode))
    assert add(x, fnp.array(FAR)).tolist() == want
    for i in FAR:
        assert x.at[i].add(10.0, mode=mode).tolist() == written_by(x.tolist(), [i], mode)
        assert x.at[i].subtract(-10.0, mode=mode).tolist() == written_by(x.tolist(), [i], mode)
        assert x.at[i].apply(lambda e: e + 10, mode=mode).tolist() == written_by(
            x.tolist(), [i], mode)
        assert fnp.ones((2, 3)).at[:, i].multiply(11.0, mode=mode).tolist() == [
            written_by([1.0, 1.0, 1.0], [i], mode)] * 2


@pytest.mark.parametrize("mode", PLACES)
def test_gradients_of_indices_out_of_range(mode):
    index, weights = fnp.array(FAR), fnp.arange(1.0, len(FAR) + 1)
    found = grad(lambda x: (x.at[index].get(mode=mode) * weights).sum())(fnp.zeros(3))
    assert found.tolist() == [n / 10 for n in written_by([0.0] * 3, FAR, mode)]
    places = [PLACES[mode](i) for i in FAR]
    cost = jit(lambda v: (fnp.zeros(3).at[index].add(v, mode=mode) * fnp.array([1.0, 2, 4])).sum())
    assert grad(cost)(weights).tolist() == [0 if p is None else 2.0 ** p for p in places]


def test_modes_that_do_not_exist_and_axes_without_places():
    x = fnp.arange(3.0)
    for wrong in (lambda: x.at[0].get(mode="near"), lambda: x.at[0].set(1.0, mode="near"),
                  lambda: fnp.take(x, 0, mode="raise!"),
                  lambda: fnp.take_along_axis(x, fnp.array([0]), mode="near")):
        with pytest.raises(TypeError, match="an index has no mode"):
            wrong()
    empty = fnp.zeros((0, 2))
    assert empty.at[5].get(mode="fill", fill_value=7).tolist() == [7.0, 7.0]
    assert empty.at[5].set(1.0, mode="drop").shape == (0, 2)
    for mode in ("clip", "wrap"):
        with pytest.raises(IndexError, match="the axis is empty"):
            empty.at[5].get(mode=mode)
    for index in (3, [0, 3]):
        with pytest.raises(IndexError, match="index 3 is out of range"):
            fnp.take(x, index)


@pytest.mark.parametrize("dtype, outside", [
    ("float32", np.nan), ("bfloat16", np.nan), ("complex64", np.nan), ("int8", -128),
    ("uint16", 65535), ("bool", True)])
def test_out_of_range_reads_what_is_no_number_unless_another_value_is_given(dtype, outside):
    x = fnp.ones(3, dtype=dtype)
    for read in (lambda i: fnp.take(x, i, mode="fill"), lambda i: x.at[i].get(mode="fill"),
                 lambda i: fnp.take_along_axis(x, i, 0, mode="fill"),
                 jit(lambda i: x.at[i].get(mode="fill"))):
        np.testing.assert_array_equal(np.asarray(read(fnp.array([9, 0])).astype("complex64")),
                                      np.array([outside, 1], "complex64"))


def test_all_values_of_equal_indices_divide_and_raise():
    i, d = fnp.array([1, 1, 7]), fnp.array([2.0, 3.0, 5.0])
    for wrap in (lambda f: f, jit):
        assert wrap(lambda x: x.at[i].divide(d, "drop"))(fnp.full(3, 6.0)).tolist() == [6, 1, 6]
        assert wrap(lambda x: x.at[i].power(d, "drop"))(fnp.full(3, 2.0)).tolist() == [2, 64, 2]
    slope = grad(lambda d: fnp.full(3, 6.0).at[i].divide(d, mode="drop").sum())(d)
    assert slope.tolist() == [-0.5, pytest.approx(-1 / 3), 0]


def test_promises_about_indices_are_taken_and_change_nothing():
    x, i = fnp.zeros(3), fnp.array([0, 2])
    promises = dict(indices_are_sorted=True, unique_indices=True)
    assert x.at[i].set(1.0, **promises).tolist() == [1, 0, 1]
    assert x.at[i].add(1.0, **promises).at[i].get(**promises).tolist() == [1, 1]
    for name in ("subtract", "multiply", "divide", "power", "min", "max"):
        getattr(x.at[i], name)(1.0, **promises)


def test_modes_of_lax_are_modes_of_arrays():
    x, i = fnp.arange(3.0) + 1, fnp.array([-1, 9])
    clip, fill = lax.GatherScatterMode.CLIP, lax.GatherScatterMode.FILL_OR_DROP
    assert fnp.take(x, i, mode=clip).tolist() == fnp.take(x, i, mode="clip").tolist() == [1, 3]
    assert x.at[i].get(mode=clip).tolist() == [3, 3]
    assert x.at[i].set(0.0, mode=fill).tolist() == [1, 2, 0]
