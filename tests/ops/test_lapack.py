"""LAPACK in the precision of its arrays: what numpy.linalg gives, and NaN where that raises."""

import numpy as np
import pytest

from fgrad import config
from fgrad.ops import blas_threads, lapack

PUBLIC = {                     # name behind numpy.linalg, a loop of it, the public function
    "cholesky": ("cholesky_lo", "f->f", np.linalg.cholesky),
    "eigh": ("eigh_lo", "f->ff", np.linalg.eigh),
    "eigvalsh": ("eigvalsh_lo", "f->f", np.linalg.eigvalsh),
    "slogdet": ("slogdet", "f->ff", np.linalg.slogdet),
    "solve": ("solve", "ff->f", np.linalg.solve),
    "svd_full": ("svd_f", "f->fff", np.linalg.svd),
}
DTYPES = {"float32": 1e-5, "float64": 1e-13, "complex64": 1e-5, "complex128": 1e-13}


def matrices(shape, dtype):
    """Positive definite ones, from a fixed seed."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype[0] == "c" else 0)
    return (x @ np.swapaxes(x, -1, -2).conj() + np.eye(shape[-1])).astype(dtype)


def arguments(name, x):
    return (x, x[..., :1]) if name == "solve" else (x,)


def both(name):
    """The routine as it is, and as it would be if there were no ufunc."""
    return getattr(lapack, name), lapack.routine("absent", *PUBLIC[name][1:])


def in_tuple(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 4, 4), (2, 0, 3, 3)])
def test_results_are_those_of_numpy(name, dtype, shape):
    args = arguments(name, matrices(shape, dtype))
    want = in_tuple(PUBLIC[name][2](*[a.astype("c16" if dtype[0] == "c" else "f8") for a in args]))
    for function in both(name):
        for got, w in zip(in_tuple(function(*args)), want, strict=True):
            single = dtype in ("float32", "complex64")
            assert got.dtype == w.astype(w.dtype.kind + str(w.itemsize >> single)).dtype
            if name not in ("eigh", "svd_full") or w.dtype.kind == "f" and w.ndim < len(shape):
                bound = DTYPES[dtype]
                np.testing.assert_allclose(got, w, rtol=20 * bound, atol=20 * bound)


@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_make_the_matrix(dtype):
    x = matrices((3, 6, 6), dtype)[..., :4]
    for full in (False, True):
        u, s, vt = lapack.svd(x, full)
        assert u.shape == (3, 6, 6 if full else 4) and vt.shape == (3, 4, 4)
        np.testing.assert_allclose(u[..., :4] * s[:, None] @ vt, x, atol=300 * DTYPES[dtype])
    for each in (x, np.swapaxes(x, -1, -2)):
        np.testing.assert_allclose(lapack.svdvals(each), s, atol=100 * DTYPES[dtype])
    np.testing.assert_allclose(lapack.pinv(x, 1e-6), np.linalg.pinv(x), atol=100 * DTYPES[dtype])


@pytest.mark.parametrize("name, bad", [
    ("cholesky", -np.eye(3)), ("solve", np.zeros((3, 3))), ("svd_full", np.full((3, 3), np.nan))])
def test_a_matrix_without_an_answer_is_nan_and_leaves_others_alone(name, bad):
    stack = np.stack([np.eye(3), bad, 2 * np.eye(3)]).astype("float32")
    for function in both(name):
        for got in in_tuple(function(*arguments(name, stack))):
            assert np.isnan(got[1]).all() and not np.isnan(got[[0, 2]]).any()
        alone = in_tuple(function(*arguments(name, stack[1])))
        assert all(np.isnan(x).all() for x in alone)


def test_a_ufunc_without_the_loop_is_not_used():
    doubled = lapack.routine("cholesky_lo", "e->e", lambda x: 2 * np.linalg.cholesky(x))
    np.testing.assert_array_equal(doubled(4 * np.eye(2)), 4 * np.eye(2))


ROUTINES = {"eig": lapack.eig, "eigh": lapack.eigh, "eigvalsh": lapack.eigvalsh,
            "qr": lambda x: lapack.qr(x, False), "svd": lambda x: lapack.svd(x, False),
            "svd, full": lambda x: lapack.svd(x, True), "svdvals": lapack.svdvals}


def symmetric(x):
    return x + x.swapaxes(-1, -2).conj()


@pytest.mark.parametrize("name", ROUTINES)
@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_a_stack_shared_out_to_threads_gives_what_each_matrix_does(name, dtype, monkeypatch):
    monkeypatch.setattr(config, "threads", lambda: 3)
    x = np.random.default_rng(0).normal(size=(2, 41, 24, 24)).astype(dtype)
    x = symmetric(x) if "eigh" in name or "eigv" in name else x
    found, one = ROUTINES[name](x), [ROUTINES[name](m) for m in x.reshape(-1, 24, 24)]
    for part, *each in zip(in_tuple(found), *map(in_tuple, one)):
        np.testing.assert_allclose(part, np.reshape(each, part.shape), rtol=1e-3, atol=1e-3)


def test_blas_has_as_many_threads_afterwards_as_before():
    if blas_threads.library() is None:
        pytest.skip("NumPy's BLAS is not OpenBLAS")
    get, put = blas_threads.library()
    before = get()
    put(2)
    try:
        with blas_threads.one_thread, pytest.raises(ZeroDivisionError):
            with blas_threads.one_thread:
                assert get() == 1
                1 / 0
        assert get() == 2
        assert lapack.shared(lambda x: get(), np.ones((300, 300))) == 2
        lapack.shared(lambda x: (np.testing.assert_equal(get(), 1), x)[1], np.ones((3, 90, 90)))
        assert get() == 2
    finally:
        put(before)
