"""LAPACK's own routines give what NumPy's functions give, and are left alone where they differ."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from fgrad.ops import fortran, lapack

SIZES = [1, 2, 31, 64, 65, 130]
BOUND = {"float32": 2e-4, "float64": 1e-11}
BLAS = np.__config__.CONFIG["Build Dependencies"]["blas"]["name"]
needed = pytest.mark.skipif((sys.platform, BLAS) != ("linux", "scipy-openblas"),
                            reason="NumPy has another LAPACK")


@needed
def test_the_lapack_of_numpys_wheels_is_found():
    assert fortran.found()


@pytest.fixture(params=[False, pytest.param(True, marks=needed)], ids=["numpy", "fortran"])
def direct(request, monkeypatch):
    """All real matrices go to LAPACK itself, or none."""
    monkeypatch.setattr(fortran, "found", lambda: request.param)
    for name in ("CHOLESKY", "QR", "LU"):
        monkeypatch.setattr(fortran, name, 1)


def drawn(shape, dtype):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def close(got, want, dtype):
    assert got.dtype == dtype and got.shape == want.shape
    scale = max(1, np.abs(want).max(initial=0))
    np.testing.assert_allclose(got, want, atol=BOUND[dtype] * scale)


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("shape", [*[(n, n) for n in SIZES], (3, 70, 70), (0, 5, 5), (2, 2, 4, 4)])
def test_factors_make_the_matrix_and_solve_with_it(direct, dtype, shape):
    n = shape[-1]
    a = np.linalg.qr(drawn(shape, dtype))[0] * np.linspace(1, 3, n, dtype=dtype)
    factors, pivots = lapack.lu(a)
    assert pivots.dtype == np.int32 and (pivots >= np.arange(n)).all() and (pivots < n).all()
    lower, upper = np.tril(factors, -1) + np.eye(n, dtype=dtype), np.triu(factors)
    assert (np.abs(lower) <= 1).all()
    close(lower @ upper, exchanged(a, pivots), dtype)
    for b in (drawn((*shape[:-1], 1), dtype), drawn((*shape[:-1], 5), dtype)):
        y = lapack.solve(a, b)
        close(y, np.linalg.solve(a.astype("f8"), b).astype(dtype), dtype)
    sign, log = lapack.slogdet(a)
    want_sign, want_log = np.linalg.slogdet(a.astype("f8"))
    np.testing.assert_array_equal(sign, want_sign)
    np.testing.assert_allclose(log, want_log, rtol=BOUND[dtype], atol=BOUND[dtype])
    positive = a @ np.swapaxes(a, -1, -2) + np.eye(n, dtype=dtype)
    lower = lapack.cholesky(positive)
    assert (np.triu(lower, 1) == 0).all()
    close(lower @ np.swapaxes(lower, -1, -2), positive, dtype)


def exchanged(a, pivots):
    """The rows of matrices exchanged as `lu` says."""
    out = a.copy()
    for place in np.ndindex(a.shape[:-2]):
        for k, p in enumerate(pivots[place]):
            out[place][[k, p]] = out[place][[p, k]]
    return out


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("shape", [
    (1, 1), (5, 3), (3, 5), (100, 64), (64, 100), (2, 9, 4), (0, 3, 2)])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("kept", [fortran.KEPT, 4])
def test_qr_is_numpys(direct, monkeypatch, dtype, shape, full, kept):
    monkeypatch.setattr(fortran, "KEPT", kept)
    m, n = shape[-2:]
    if m < n and not full:
        return
    x = drawn(shape, dtype)
    q, r = lapack.qr(x, full)
    close(q @ r, x, dtype)
    close(np.swapaxes(q, -1, -2) @ q, np.broadcast_to(np.eye(m if full else n, dtype=dtype),
                                                      (*shape[:-2], *q.shape[-1:] * 2)), dtype)
    assert (np.tril(r, -1) == 0).all()
    k = min(m, n)
    want_q, want_r = np.linalg.qr(x, "complete" if full else "reduced")
    close(q[..., :k], want_q[..., :k], dtype)
    close(r, want_r, dtype)


def test_a_matrix_without_an_answer(direct):
    n = 70
    singular, nan = np.ones((n, n), "float32"), np.full((n, n), np.nan, "float32")
    stack = np.stack([np.eye(n, dtype="float32"), singular, nan])
    solved = lapack.solve(stack, np.ones((3, n, 1), "float32"))
    assert (solved[0] == 1).all() and np.isnan(solved[1:]).all()
    assert np.isnan(lapack.cholesky(np.stack([stack[0], -stack[0]]))[1]).all()
    sign, log = lapack.slogdet(stack)
    assert sign[1] == 0 and log[1] == -np.inf and np.isnan(log[2])
    factors, _ = lapack.lu(singular)
    assert (factors[0] == 1).all() and (factors[1:, 0] == 1).all() and (factors[1:, 1:] == 0).all()


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (70, 3), (33, 512), (0, 3)])
def test_turned_is_transposed(shape):
    for dtype in BOUND:
        x = drawn(shape, dtype)
        for each in (x, x[::-1], x.T):
            got = fortran.turned(each)
            np.testing.assert_array_equal(got, each.T)
            assert got.flags.c_contiguous


@pytest.mark.parametrize("library", [
    None, object(), SimpleNamespace(scipy_dgetrf_64_=None, scipy_sgetrf_64_=None)])
def test_another_lapack_is_left_alone(monkeypatch, library):
    monkeypatch.setattr(fortran, "loaded", lambda: library)
    monkeypatch.setattr(fortran, "routine", fortran.routine.__wrapped__)
    assert fortran.routine("potrf", "d") is None and fortran.found.__wrapped__() is False


def test_a_routine_with_other_integers_is_not_used(monkeypatch):
    monkeypatch.setattr(fortran, "lu", lambda x: (x, np.array([2**32 + 1, 0])))
    assert fortran.found.__wrapped__() is False


@needed
@pytest.mark.parametrize("shape, direct", [((1000, 8), True), ((8, 1000), True), ((60, 60), False)])
def test_a_matrix_of_few_columns_and_many_elements_is_taken_apart_by_lapack(
        monkeypatch, shape, direct):
    """It was the fewer of its rows and columns that counted: f32 was computed in f64."""
    taken, own = [], fortran.qr
    monkeypatch.setattr(fortran, "qr", lambda *given: taken.append(1) or own(*given))
    x = drawn(shape, "float32")
    for full in (False, True):
        q, r = lapack.qr(x, full)
        close(q @ r, x, "float32")
        assert (np.tril(r, -1) == 0).all()
    assert bool(taken) == direct
