"""NumPy's work on rows, cut among threads."""

import numpy as np
import pytest

from fgrad import config
from fgrad.ops import rows
from fgrad.numpy import fft


def test_what_either_of_two_raises_is_raised():
    def fail(error):
        raise error
    for work in ((lambda: 1, lambda: fail(MemoryError)), (lambda: fail(MemoryError), lambda: 1)):
        with pytest.raises(MemoryError):
            rows.both(*work)
    assert rows.both(lambda: 1, lambda: 2) == [1, 2]


@pytest.mark.parametrize("shape, axis", [((7, 3), 0), ((7, 3), 1), ((2, 1, 9), 1), ((1, 6), -1),
                                         ((5,), 0), ((0, 4), 1), ((4, 0), 0)])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_results_are_put_together_where_they_were_cut(shape, axis, threads):
    x, seen = np.arange(np.prod(shape)).reshape(shape), []

    def work(part):
        seen.append(part.shape[axis])
        return np.cumsum(part, axis)
    found = rows.in_rows(work, x, axis, 1, threads)
    np.testing.assert_array_equal(found, np.cumsum(x, axis))
    assert set(seen) == {x.shape[axis]}
    assert rows.in_rows(lambda part: None, x, axis, 1, threads) is None


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_transforms_of_many_rows_are_those_of_each(axis, monkeypatch):
    monkeypatch.setattr(config, "threads", lambda: 3)
    x = np.random.default_rng(0).normal(size=(48, 56, 64)).astype("float32")
    spectrum = np.fft.rfft(x, axis=axis)
    np.testing.assert_array_equal(np.asarray(fft.rfft(x, axis=axis)), spectrum)
    np.testing.assert_array_equal(np.asarray(fft.fft(spectrum, axis=axis)),
                                  np.fft.fft(spectrum, axis=axis))
    np.testing.assert_allclose(np.asarray(fft.irfft(spectrum, x.shape[axis], axis=axis)), x,
                               atol=1e-5)
