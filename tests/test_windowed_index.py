"""gather and scatter of windows against loops over windows."""

import numpy as np
import pytest

import fgrad
from fgrad import lax

X = np.random.default_rng(1).standard_normal((4, 6))
# numbers, sizes, starts: windows inside of, and across, the border
CASES = [
    (((1, 2), (), (0, 1)), (2, 3), [[0, 0], [2, 3], [2, 9], [-1, 2]]),
    (((1,), (0,), (0,)), (1, 6), [[1], [7], [3]]),
    (((0,), (1,), (1,)), (4, 1), [[1], [-2], [5]]),
    (((), (0, 1), (1, 0)), (1, 1), [[1, 2], [5, 3], [9, 0]]),
]


def windows(numbers, sizes, starts, clip):
    """Per start the window's slices, or None where it is left out; and the axes of the results."""
    for start in starts:
        first = [0, 0]
        for k, d in enumerate(numbers[2]):
            first[d] = start[k]
        most = [n - s for n, s in zip(X.shape, sizes)]
        moved = [min(max(f, 0), m) for f, m in zip(first, most)]
        whole = clip or moved == first
        yield tuple(slice(f, f + s) for f, s in zip(moved, sizes)) if whole else None


def as_result(numbers, parts):
    """The windows, collapsed, stacked along the axis that is no offset."""
    parts = [p.reshape([n for d, n in enumerate(p.shape) if d not in numbers[1]]) for p in parts]
    at = next(a for a in range(len(numbers[0]) + 1) if a not in numbers[0])
    return np.stack(parts, at)


@pytest.mark.parametrize("numbers, sizes, starts", CASES)
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_gather_reads_each_window(numbers, sizes, starts, mode):
    numbers_ = lax.GatherDimensionNumbers(*numbers)
    f = lambda x: lax.gather(x, np.array(starts), numbers_, sizes, mode=mode)
    want = as_result(numbers, [np.full(sizes, np.nan) if w is None else X[w]
                               for w in windows(numbers, sizes, starts, mode == "clip")])
    for g in (f, fgrad.jit(f)):
        np.testing.assert_array_equal(g(X), want)
    if mode == "clip":
        fgrad.check_grads(f, (X,), order=2)


@pytest.mark.parametrize("numbers, sizes, starts", CASES)
@pytest.mark.parametrize("mode", ["clip", None])
@pytest.mark.parametrize("how, ufunc", [("add", np.add), ("mul", np.multiply),
                                        ("min", np.minimum), ("max", np.maximum), (None, None)])
def test_scatter_combines_each_window(numbers, sizes, starts, mode, how, ufunc):
    numbers_ = lax.ScatterDimensionNumbers(*numbers)
    parts = [np.random.default_rng(k).standard_normal(sizes) for k in range(len(starts))]
    updates, want = as_result(numbers, parts), X.copy()
    for w, part in zip(windows(numbers, sizes, starts, mode == "clip"), parts):
        if w is not None:
            want[w] = part if ufunc is None else ufunc(want[w], part)
    scatter = getattr(lax, f"scatter_{how}" if how else "scatter")
    f = lambda x, u: scatter(x, np.array(starts), u, numbers_, mode=mode)
    for g in (f, fgrad.jit(f)):
        np.testing.assert_allclose(g(X, updates), want, rtol=1e-12)
    fgrad.check_grads(f, (X, updates), order=1)


def test_batching_dimensions_pair_the_batch_with_the_operands():
    x, i = np.arange(24.0).reshape(2, 3, 4), np.array([[[0], [2]], [[1], [1]]])
    numbers = lax.GatherDimensionNumbers((2,), (1,), (1,), (0,), (0,))
    np.testing.assert_array_equal(lax.gather(x, i, numbers, (1, 1, 4)),
                                  x[np.arange(2)[:, None], i[..., 0]])


def test_sizes_and_modes_that_do_not_fit_are_refused():
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    for starts, sizes, mode in ((np.zeros((2, 3), int), (1, 6), None),
                                (np.zeros((2, 1), int), (1,), None),
                                (np.zeros((2, 1), int), (1, 6), "wrap")):
        with pytest.raises(fgrad.errors.FgradError):
            lax.gather(X, starts, numbers, sizes, mode=mode)


def test_complex_windows_outside_are_nan():
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    got = lax.gather(X.astype("complex64"), np.array([[0], [5]]), numbers, (1, X.shape[1]),
                     mode="fill")
    np.testing.assert_array_equal(got[0], X[0].astype("complex64"))
    assert np.isnan(np.asarray(got[1])).all()
