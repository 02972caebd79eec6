"""Creation, shapes, joins, matrices and padding agree with NumPy."""

import os
import subprocess
import sys

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import grad, jit, show, vmap
from fgrad.errors import ArgumentError, ShapeError

X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
V = np.array([1.0, 2.0, 3.0], np.float32)
M = np.arange(6.0, dtype=np.float32).reshape(2, 3)

SAME = {                   # the same call for both modules
    "reshape": lambda n: n.reshape(X, (4, -1)),
    "reshape_scalar": lambda n: n.reshape(np.float32(3), (1, 1)),
    "reshape_int": lambda n: n.reshape(X, -1),
    "reshape_empty": lambda n: n.reshape(np.zeros((0, 3), np.float32), (3, 0)),
    "ravel": lambda n: n.ravel(X),
    "transpose": lambda n: n.transpose(X),
    "transpose_axes": lambda n: n.transpose(X, (1, -1, 0)),
    "swapaxes": lambda n: n.swapaxes(X, 0, -1),
    "moveaxis": lambda n: n.moveaxis(X, 0, -1),
    "moveaxis_many": lambda n: n.moveaxis(X, (0, 1), (-1, 0)),
    "rollaxis": lambda n: n.rollaxis(X, 2),
    "rollaxis_start": lambda n: n.rollaxis(X, 0, 2),
    "expand_dims": lambda n: n.expand_dims(X, (0, -1)),
    "squeeze": lambda n: n.squeeze(X[:1, :, :1]),
    "squeeze_axis": lambda n: n.squeeze(X[:1, :, :1], 0),
    "broadcast_to": lambda n: n.broadcast_to(M[:, None], (2, 5, 3)),
    "concatenate": lambda n: n.concatenate([X, X[:, :1]], 1),
    "concatenate_flat": lambda n: n.concatenate([X, M], None),
    "concatenate_dtypes": lambda n: n.concatenate([V, np.float32([4])]),
    "stack": lambda n: n.stack([M, M + 1], -1),
    "stack_array": lambda n: n.stack(X),
    "vstack": lambda n: n.vstack([V, M]),
    "hstack": lambda n: n.hstack([V, V]),
    "hstack_matrices": lambda n: n.hstack([M, M]),
    "dstack": lambda n: n.dstack([M, M]),
    "column_stack": lambda n: n.column_stack([V, V]),
    "append": lambda n: n.append(V, V),
    "tile": lambda n: n.tile(M, (2, 1, 3)),
    "tile_int": lambda n: n.tile(M, 2),
    "repeat": lambda n: n.repeat(M, 3, 1),
    "repeat_flat": lambda n: n.repeat(M, 2),
    "repeat_each": lambda n: n.repeat(M, [1, 0, 2], 1),
    "flip": lambda n: n.flip(X),
    "flip_axis": lambda n: n.flip(X, (0, -1)),
    "rot90": lambda n: n.rot90(X),
    "rot90_back": lambda n: n.rot90(X, -1, (1, 2)),
    "rot90_half": lambda n: n.rot90(M, 2),
    "roll": lambda n: n.roll(X, 5),
    "roll_axis": lambda n: n.roll(X, -1, 1),
    "roll_axes": lambda n: n.roll(X, (1, 2), (0, 2)),
    "roll_flat_twice": lambda n: n.roll(X, (1, 2)),
    "roll_one_axis_twice": lambda n: n.roll(X, (1, 1), 1),
    "roll_by_arrays": lambda n: n.roll(X, n.array([1, -2]), (0, 2)),
    "roll_axes_by_one": lambda n: n.roll(X, np.int8(2), (0, 2)),
    "roll_nowhere": lambda n: n.roll(X, 3, ()),
    "roll_scalar": lambda n: n.roll(np.float32(3), 2),
    "roll_empty": lambda n: n.roll(np.zeros((0, 2), np.float32), 1),
    "atleast_2d": lambda n: n.atleast_2d(V),
    "atleast_3d": lambda n: n.atleast_3d(V),
    "pad": lambda n: n.pad(M, ((1, 2), (0, 1)), constant_values=7),
    "pad_pair": lambda n: n.pad(M, (1, 0)),
    "pad_two_constants": lambda n: n.pad(M, 2, constant_values=(5, 6)),
    "pad_constants_of_axes": lambda n: n.pad(M, ((1, 2), (0, 1)), constant_values=((5, 6), (7, 8))),
    "pad_edge": lambda n: n.pad(M, 2, "edge"),
    "pad_reflect": lambda n: n.pad(V, 5, "reflect"),
    "pad_symmetric": lambda n: n.pad(V, 5, "symmetric"),
    "pad_wrap": lambda n: n.pad(V, 5, "wrap"),
    "pad_wrap_often": lambda n: n.pad(V, (31, 9), "wrap"),
    "pad_reflect_often": lambda n: n.pad(V, ((2, 40),), "reflect"),
    "pad_reflect_one": lambda n: n.pad(V[:1], 3, "reflect"),
    "pad_symmetric_two": lambda n: n.pad(X, ((1, 2), (0, 0), (3, 0)), "symmetric"),
    "pad_edge_of_ints": lambda n: n.pad(n.arange(6).reshape(2, 3), ((0, 2), (3, 1)), "edge"),
    "eye": lambda n: n.eye(3, 4, 1, dtype="float32"),
    "tri": lambda n: n.tri(3, 4, -1, dtype="float32"),
    "tril": lambda n: n.tril(X, 1),
    "triu": lambda n: n.triu(X),
    "diag": lambda n: n.diag(V),
    "diag_above": lambda n: n.diag(V, 2),
    "diag_below": lambda n: n.diag(V, -1),
    "diag_of_matrix": lambda n: n.diag(M, 1),
    "diag_outside": lambda n: n.diag(M, 5),
    "diagonal": lambda n: n.diagonal(X, -1, 1, 2),
    "diagonal_axes": lambda n: n.diagonal(X, 0, 2, 0),
    "trace": lambda n: n.trace(X, 1, 1, 2),
    "linspace": lambda n: n.linspace(0, 1, 7, dtype="float32"),
    "linspace_open": lambda n: n.linspace(V, V + 5, 4, endpoint=False, axis=1),
    "linspace_one": lambda n: n.linspace(3.0, 9.0, 1, dtype="float32"),
    "linspace_none": lambda n: n.linspace(3.0, 9.0, 0, dtype="float32"),
    "logspace": lambda n: n.logspace(0, 2, 4, dtype="float32"),
    "full": lambda n: n.full((2, 3), V),
    "full_like": lambda n: n.full_like(M, 3),
    "interp": lambda n: n.interp(np.float32([-1, 0.5, 1.5, 9]), np.float32([0, 1, 2]), V),
    "interp_ends": lambda n: n.interp(np.float32([-1, 9]), np.float32([0, 1, 2]), V, left=-5,
                                      right=5),
    "cross": lambda n: n.cross(V, V[::-1] * [1, 2, 1]),
    "kron": lambda n: n.kron(M, M + 1),
    "outer": lambda n: n.outer(V, M),
    "inner": lambda n: n.inner(M, V),
    "vdot": lambda n: n.vdot(M, M),
    "dot": lambda n: n.dot(M, V),
    "dot_many": lambda n: n.dot(X, np.ones((5, 4, 2), np.float32)),
    "tensordot": lambda n: n.tensordot(X, X, ([0, 2], [0, 2])),
    "tensordot_int": lambda n: n.tensordot(X, X.transpose(1, 2, 0), 2),
    "norm": lambda n: n.linalg.norm(X),
    "norm_axis": lambda n: n.linalg.norm(X, axis=1),
    "norm_one": lambda n: n.linalg.norm(X, 1, axis=-1, keepdims=True),
    "norm_inf": lambda n: n.linalg.norm(V, np.inf),
    "norm_three": lambda n: n.linalg.norm(V, 3),
    "norm_matrix": lambda n: n.linalg.norm(X, np.inf, (0, 2)),
    "matrix_power": lambda n: n.linalg.matrix_power(M[:, :2], 5)}


@pytest.mark.parametrize("name", SAME)
def test_values_and_shapes_agree_with_numpy(name):
    ours, theirs = SAME[name](fnp), SAME[name](np)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=3e-6, atol=1e-6)


EINSUMS = [("ij,jk->ik", (2, 3), (3, 4)), ("ij,kj", (2, 3), (4, 3)), ("ii->i", (3, 3)),
           ("ii", (3, 3)), ("ij->", (2, 3)),
           ("ij->ji", (2, 3)), ("i,j,k->kij", (2,), (3,), (4,)),
           ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
           ("...ij,...jk->...ik", (2, 3, 4), (4, 5)), ("...ij,...jk", (6, 1, 2, 3), (5, 3, 4)),
           ("ij,i->j", (2, 3), (2,)),
           ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("i,i", (3,), (3,)),
           ("ij,ij->ij", (2, 3), (2, 3)), ("iji->j", (3, 2, 3)),
           ("ij,kl->il", (2, 3), (4, 5)), ("ij,jk->ik", (2, 1), (3, 4)),
           ("b...,b->b...", (2, 3, 4), (2,)), ("i,->i", (3,), ()),
           ("ij,jk->ik", (0, 3), (3, 2)), ("ij,jk->ik", (2, 0), (0, 2)),
           ("ij,jk,kl,lm->im", (2, 3), (3, 4), (4, 5), (5, 2)),
           ("i,i,i->", (3,), (3,), (3,)), ("ij,jk,kl->il", (2, 1), (3, 4), (4, 1)),
           ("...ij,...jk,kl->...il", (7, 2, 3), (3, 4), (4, 5)),
           ("ii,i,jj->j", (3, 3), (3,), (2, 2)), (",ij,->ji", (), (2, 3), ()),
           ("ij,jk,kl->il", (2, 0), (0, 4), (4, 5))]


@pytest.mark.parametrize("optimize", ["greedy", "optimal", False])
@pytest.mark.parametrize("labels, shapes", [(e[0], e[1:]) for e in EINSUMS], ids=str)
def test_einsum_agrees_with_numpy(labels, shapes, optimize):
    xs = [np.random.default_rng(k).normal(size=s) for k, s in enumerate(shapes)]
    ours, theirs = fnp.einsum(labels, *xs, optimize=optimize), np.einsum(labels, *xs)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("other", ["uint8", "int8", "uint64", "float16", "bool"])
def test_bools_in_products_take_the_dtype_beside_them(other):
    """They were ints first: a bool @ u64 was f32."""
    want = np.dtype(other)
    x, y = fnp.ones((2, 2), "bool"), fnp.ones((2, 2), other)
    for f in (fnp.matmul, lambda x, y: fnp.einsum("ij,ij->i", x, y), fnp.outer, fnp.tensordot):
        assert f(x, y).dtype == f(y, x).dtype == want
    assert (x @ y).tolist() == [[True, True]] * 2 if other == "bool" else [[2, 2]] * 2


def test_einsum_takes_ints_behind_its_operands():
    x, y, z = [np.random.default_rng(0).normal(size=s) for s in ((2, 3), (3, 4), (5, 2, 3))]
    for given in ((x, [0, 1], y, [1, 2], [0, 2]), (x, [5, 1], y, [1, 2]), (x[0], [0]),
                  (z, [..., 0, 1], y, [1, 2], [..., 0, 2])):
        np.testing.assert_allclose(fnp.einsum(*given), np.einsum(*given), rtol=1e-12)


def test_einsum_asks_for_diagonals_in_one_order_whatever_the_hashes_are():
    script = """import fgrad, fgrad.numpy as fnp
print(fgrad.show(lambda x: fnp.einsum("abcdabcd->", x), fnp.ones((2, 3, 4, 5) * 2)))"""
    texts = {subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                            check=True, env=os.environ | {"PYTHONHASHSEED": seed}).stdout
             for seed in "123"}
    assert len(texts) == 1


def test_einsum_multiplies_a_chain_from_the_end_that_costs_less():
    x, y = fnp.ones((50, 60)), fnp.ones(60)
    text = show(lambda x, y: fnp.einsum("ji,jk,k->i", x, x, y), x, y)
    assert "f32[60,60]" not in text


@pytest.mark.parametrize("a, b", [((3,), (3,)), ((2, 3), (3,)), ((2,), (2, 3)), ((2, 3), (3, 4)),
                                  ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
                                  ((1, 2, 3), (5, 3, 4)),
                                  ((6, 1, 2, 3), (5, 3, 4)), ((5, 2, 3), (3,)),
                                  ((3,), (5, 3, 4)), ((0, 3), (3, 2)), ((2, 0), (0, 2)),
                                  ((2, 3), (5, 3, 4))], ids=str)
def test_matmul_agrees_with_numpy(a, b):
    x, y = np.random.default_rng(0).normal(size=a), np.random.default_rng(1).normal(size=b)
    np.testing.assert_allclose(np.asarray(fnp.matmul(x, y)), x @ y, rtol=1e-12, atol=1e-12)
    assert (fnp.array(x) @ y).shape == (x @ fnp.array(y)).shape == (x @ y).shape


def test_splits_agree_with_numpy():
    for name, args in [("split", (X, 3, 1)), ("split", (X, [1, 3], 2)), ("array_split", (X, 3, 2)),
                       ("vsplit", (X, 2)),
                       ("hsplit", (X, 3)), ("hsplit", (V, 3)), ("split", (V, [2, 5])),
                       ("array_split", (V, 5))]:
        for ours, theirs in zip(getattr(fnp, name)(*args), getattr(np, name)(*args), strict=True):
            np.testing.assert_array_equal(np.asarray(ours), theirs)
    assert [x.tolist() for x in fnp.unstack(M)] == M.tolist()


RANGES = [(5,), (0,), (2, 7), (7, 2, -2), (1, 10, 4), (0.0, 1.0, 0.25), (3, 1), (2.5,)]


@pytest.mark.parametrize("args", RANGES, ids=str)
def test_ranges_agree_with_numpy(args):
    ours = fnp.arange(*args)
    np.testing.assert_allclose(np.asarray(ours), np.arange(*args))
    assert ours.dtype == (np.float32 if any(isinstance(a, float) for a in args) else np.int32)


def test_grids_agree_with_numpy():
    for indexing in ("xy", "ij"):
        for ours, theirs in zip(fnp.meshgrid(V, [1, 2], indexing=indexing),
                                np.meshgrid(V, [1, 2], indexing=indexing)):
            np.testing.assert_array_equal(np.asarray(ours), theirs)
    np.testing.assert_array_equal(np.asarray(fnp.indices((2, 3))), np.indices((2, 3)))


def test_python_numbers_are_32_bits_and_dtypes_are_kept():
    def made(x, **options):
        return str(fnp.array(x, **options).dtype)
    assert [made(1.5), made(1), made(True), made([1, 2]), made([1, 2.5]), made([])] == [
        "float32", "int32", "bool", "int32", "float32", "float32"]
    assert [made(np.ones(2)), made(np.float64(1)), made(np.arange(2)), made([np.float64(1), 2]),
            made([np.arange(2), [1, 2]])] == [
        "float64", "float64", "int64", "float64", "int64"]
    assert [made([1, 2], dtype="float64"), made(1, dtype=np.uint8), made([1.7], dtype=int),
            made(1, dtype=float)] == [
        "float64", "uint8", "int32", "float32"]
    assert [made([np.float32(1), 2.0]), made(np.ones(2, ">f4")), made(range(3)),
            made((1, (2)))] == [
        "float32", "float32", "int32", "int32"]
    assert str(fnp.zeros(3, "float64").dtype) == "float64" and str(fnp.zeros(3).dtype) == "float32"


def test_arrays_of_numpy_are_copied_and_asarray_shares():
    theirs = np.zeros(3, np.float32)
    ours, shared = fnp.array(theirs), fnp.asarray(theirs)
    theirs[0] = 1
    assert ours.tolist() == [0, 0, 0] and shared.tolist() == [1, 0, 0]


def test_lists_of_values_are_stacked():
    x = fnp.array([fnp.array(1.0), 2.0, np.float32(3)])
    assert x.tolist() == [1, 2, 3] and x.dtype == np.float32
    y = fnp.array([[fnp.array([1, 2]), [3, 4]], [[5, 6], fnp.array([7, 8])]])
    assert y.tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]] and y.dtype == np.int32
    assert fnp.array([x, x]).shape == (2, 3)
    assert fnp.array([fnp.array(1), 2.5]).dtype == np.float32


def test_whole_arrays_compare():
    x = np.array([1.0, np.nan, np.inf], np.float32)
    assert not fnp.allclose(x, x) and fnp.allclose(x, x, equal_nan=True)
    assert fnp.array_equal([1, 2], [1, 2]) and not fnp.array_equal([1, 2], [1, 2, 3])
    np.testing.assert_array_equal(np.asarray(fnp.isclose([1.0, 2.0], [1.0 + 1e-6, 2.1])),
                                  [True, False])
    assert fnp.select([np.array([True, False]), np.array([True, True])], [1, 2]).tolist() == [1, 2]
    for side in ("left", "right"):
        np.testing.assert_array_equal(np.asarray(fnp.searchsorted([1, 2, 2, 5], [0, 2, 9], side)),
                                      np.searchsorted([1, 2, 2, 5], [0, 2, 9], side))


# ---------------------------------------------------------------------------- roll

SHIFTS = [0, 1, 2, 3, -1, -2, -3, 7, -8, 1000003]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0, 2), (1,), (2, 1, 4), ()])
def test_arrays_roll_by_shifts_known_at_run_time(shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for axis in (None, *range(-len(shape), len(shape))):
        want = [np.roll(x, k, axis) for k in SHIFTS]
        rolled = jit(lambda x, k: fnp.roll(x, k, axis))
        for k, w in zip(SHIFTS, want):
            np.testing.assert_array_equal(np.asarray(rolled(x, fnp.array(k))), w)
        many = vmap(lambda k: fnp.roll(fnp.array(x), k, axis))(fnp.array(SHIFTS))
        np.testing.assert_array_equal(np.asarray(many), want)


def test_shifts_of_many_axes_may_be_mixed():
    def f(k):
        return fnp.roll(X, (1, k, k * 2), (2, 0, -2)), fnp.roll(X, (k, 2)), fnp.roll(X, k, (0, 2))

    def theirs(k):
        return np.roll(X, (1, k, k * 2), (2, 0, -2)), np.roll(X, (k, 2)), np.roll(X, k, (0, 2))
    for k in SHIFTS:
        for got, want in zip(jit(f)(fnp.array(k)), theirs(k)):
            np.testing.assert_array_equal(np.asarray(got), want)
    both = jit(lambda k: fnp.roll(X, k, (0, 1)))(fnp.array([5, -1]))
    np.testing.assert_array_equal(np.asarray(both), np.roll(X, (5, -1), (0, 1)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_short_and_wide_shifts_roll_long_arrays(dtype):
    x = np.arange(300, dtype=np.int32)
    for k in (0, 100, 127):
        rolled = jit(fnp.roll)(x, fnp.array(k, dtype))
        np.testing.assert_array_equal(np.asarray(rolled), np.roll(x, k))


def test_gradients_roll_back():
    x = np.float32([1, 2, 3, 4])
    w = np.float32([1, 10, 100, 1000])
    back = grad(lambda x, k: fnp.sum(fnp.roll(x, k) * w))
    for k in SHIFTS:
        for g in (back, jit(back)):
            np.testing.assert_array_equal(np.asarray(g(x, k)), np.roll(w, -k))
    each = vmap(back, (None, 0))(x, fnp.array(SHIFTS))
    np.testing.assert_array_equal(np.asarray(each), [np.roll(w, -k) for k in SHIFTS])


@pytest.mark.parametrize("shift, axis", [(1.5, 0), ("one", 0), (None, None), ([[1]], 0)])
def test_what_is_no_int_is_no_shift(shift, axis):
    with pytest.raises(ArgumentError, match="roll needs ints"):
        fnp.roll(X, shift, axis)


def test_shifts_fit_the_axes():
    with pytest.raises(ArgumentError, match="roll needs ints"):
        jit(lambda k: fnp.roll(X, k))(1.5)
    with pytest.raises(ArgumentError, match="roll needs ints"):
        jit(lambda k: fnp.roll(X, (k, 1), (0, 1)))(fnp.array([1]))
    with pytest.raises(ShapeError, match="2 shifts for 3 axes"):
        fnp.roll(X, (1, 2), (0, 1, 2))


@pytest.mark.parametrize("times", [[2, 0, 3], [0, 0, 1], [4, 4, 4], [1, 0, 0], 2])
@pytest.mark.parametrize("size", [0, 1, 5, 6])
def test_repeats_known_at_run_time_fill_a_given_size(times, size):
    """As jax.numpy: what is too much is cut off, and the last element fills the rest."""
    x = np.arange(6.0, dtype="float32").reshape(2, 3)
    want = np.repeat(x, times, axis=1)
    filled = np.repeat(x[:, -1:], max(0, size - want.shape[1]), axis=1)
    want = np.concatenate([want, filled], axis=1)[:, :size]

    def repeated(x, times):
        return fnp.repeat(x, times, axis=1, total_repeat_length=size)
    for f in (repeated, jit(repeated)):
        np.testing.assert_array_equal(f(x, np.array(times)), want)


def test_elements_are_read_and_filled_in_by_column_where_that_is_asked_for():
    x = np.arange(24).reshape(2, 3, 4)
    y = fnp.array(x)
    for order in "CF":
        for ours, theirs in ((y.ravel(order), x.ravel(order)), (y.flatten(order), x.flatten(order)),
                             (fnp.ravel(x, order=order), x.ravel(order)),
                             (y.reshape(4, -1, order=order), x.reshape(4, -1, order=order)),
                             (fnp.reshape(x, (6, 4), order), x.reshape((6, 4), order=order))):
            np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ArgumentError, match="row-major and column-major"):
        y.ravel("A")
