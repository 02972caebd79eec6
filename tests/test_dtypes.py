"""The promises about dtypes: strict promotion, default dtypes, one notice where f64 meets f32."""

import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim, random
from fgrad.errors import NOTICED, DtypeError, FgradWarning
from fgrad.types import F32, ArrayType
from tests.messages import message

I, F, D = fnp.array([1, 2]), fnp.array([1.0, 2.0]), np.array([1.0, 2.0])


# ---------------------------------------------------------------------------- strict promotion

MIXED = {
    "add": lambda: F + I, "div of integers": lambda: I / I.astype("int64"), "matmul": lambda: F @ D,
    "where": lambda: fnp.where(F > 0, F, D), "hypot": lambda: fnp.hypot(F, I),
    "concatenate": lambda: fnp.concatenate([F, D]), "mask": lambda: F * (F > 1),
    "stack": lambda: fnp.array([F, D]), "power": lambda: F ** I,
    "maximum": lambda: fnp.maximum(F, I),
    "solve": lambda: fnp.linalg.solve(fnp.eye(2), D), "np": lambda: np.add(F, I),
    "jit": lambda: fgrad.jit(lambda x, y: x - y)(F, D),
    "grad": lambda: fgrad.grad(lambda x: fnp.sum(x * D))(F)}


@pytest.mark.parametrize("name", MIXED)
def test_arrays_of_two_dtypes_do_not_mix_where_promotion_is_strict(name):
    MIXED[name]()
    with fgrad.strict_promotion(), pytest.raises(DtypeError, match="promotion is strict"):
        MIXED[name]()
    MIXED[name]()


def test_the_message_of_strict_promotion():
    with fgrad.strict_promotion():
        assert message(DtypeError, lambda: F + I) == """\
an array of f32 meets one of i32, and promotion is strict.

    test_dtypes.py:N    assert message(DtypeError, lambda: F + I) == \"\"\"\\

  expected   arrays of one dtype; Python numbers fit beside any
  fix        x.astype("f32"), so that i32 becomes f32
             with fgrad.strict_promotion(False): …, where they may mix"""
        x, y = fnp.zeros(2, "float16"), fnp.zeros(2, "bfloat16")
        assert "bf16, and" in message(DtypeError, lambda: x * y)
        assert "both become f32" in message(DtypeError, lambda: x * y)


def test_numbers_one_dtype_and_conversions_are_as_ever():
    with fgrad.strict_promotion():
        assert (F + 1).dtype == (2 * F ** 2).dtype == (F + I.astype(F.dtype)).dtype == F.dtype
        assert (I + 1).dtype == I.dtype and fnp.sin(I).dtype == F.dtype
        assert fgrad.jit(lambda x, n: x * n)(F, 3).dtype == F.dtype
        assert fnp.where(F > 1, F, 0.0).dtype == F.dtype
        assert fnp.result_type(F, D) == D.dtype


def test_what_was_compiled_before_is_checked_again():
    f = fgrad.jit(lambda x, y: x + y)
    for _ in range(3):
        f(F, I)
    with fgrad.strict_promotion():
        for _ in range(2):
            with pytest.raises(DtypeError):
                f(F, I)
        with fgrad.strict_promotion(False):
            assert f(F, I).tolist() == [2.0, 4.0]
    assert f(F, I).tolist() == [2.0, 4.0]
    assert "strict_promotion was switched" in f.explain()


def test_other_threads_are_not_strict():
    found = []
    with fgrad.strict_promotion():
        thread = threading.Thread(target=lambda: found.append((F + I).tolist()))
        thread.start()
        thread.join()
    assert found == [[2.0, 4.0]]


def test_a_network_is_strict_already():
    model = nn.Sequential(nn.Dense(4), nn.LayerNorm(), nn.relu, nn.Dropout(0.5), nn.Dense(2))
    x, labels = fnp.ones((3, 5)), np.array([0, 1, 1])              # i64
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(1e-3))
    with fgrad.strict_promotion():
        params, state = model.init(random.key(0), x)

        def loss(p):
            out, _ = model.apply(p, state, x, train=True, key=random.key(1))
            return fnp.mean(nn.softmax_cross_entropy_with_integer_labels(out, labels))
        for dtype in ("float32", "bfloat16", "float64"):
            params, x = fgrad.tree.map(lambda a: a.astype(dtype), (params, x))
            grads = fgrad.jit(fgrad.grad(loss))(params)
            updates, _ = optimizer.update(grads, optimizer.init(params), params)
            params = optim.apply_updates(params, updates)
            assert {p.dtype for p in fgrad.tree.leaves(params)} == {x.dtype}
        assert nn.accuracy(x, labels).shape == ()


def test_the_environment_makes_a_process_strict():
    program = ("import fgrad, fgrad.numpy as fnp\n"
               "x, i = fnp.ones(2), fnp.arange(2)\n"
               "with fgrad.strict_promotion(False): print((x + i).dtype)\n"
               "try: x + i\n"
               "except fgrad.DtypeError as error: print(error.sentence)")
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                         check=True, env={**os.environ, "FGRAD_STRICT": "1"})
    assert out.stdout.splitlines() == [
        "float32", "an array of f32 meets one of i32, and promotion is strict."]


# ---------------------------------------------------------------------------- default dtypes

MADE = {
    "float": lambda: fnp.array(1.5), "list": lambda: fnp.array([1.5]),
    "zeros": lambda: fnp.zeros(2), "astype": lambda: fnp.array([1]).astype(float),
    "ones": lambda: fnp.ones(2), "empty": lambda: fnp.empty(2), "full": lambda: fnp.full(2, 0.5),
    "eye": lambda: fnp.eye(2), "identity": lambda: fnp.identity(2), "tri": lambda: fnp.tri(2),
    "linspace": lambda: fnp.linspace(0, 1, 3), "arange": lambda: fnp.arange(0.0, 1.0, 0.5),
    "logspace": lambda: fnp.logspace(0, 1, 3), "geomspace": lambda: fnp.geomspace(1, 10, 3),
    "uniform": lambda: random.uniform(random.key(0), (2,)),
    "normal": lambda: random.normal(random.key(0), (2,)),
    "gamma": lambda: random.gamma(random.key(0), 1.0, (2,)),
    "beta": lambda: random.beta(random.key(0), 1.0, 2.0, (2,)),
    "dirichlet": lambda: random.dirichlet(random.key(0), fnp.ones(2)),
    "truncated_normal": lambda: random.truncated_normal(random.key(0), -1.0, 1.0, (2,)),
    "generator": lambda: random.Generator(0).normal((2,)),
    "division": lambda: fnp.array([1, 2]) / 2, "mean": lambda: fnp.mean(fnp.array([1, 2])),
    "sin": lambda: fnp.sin(fnp.array([1])), "one_hot": lambda: nn.one_hot(fnp.array([1]), 3),
    "fori": lambda: fgrad.lax.fori_loop(
        0, 3, lambda k, c: c + 0.5, 0.0),
    "jit": lambda: fgrad.jit(lambda x: x * 1.5)(2.0),
    "grad": lambda: fgrad.grad(lambda x: x * x)(2.0),
    "params": lambda: nn.Dense(2).init(random.key(0), fnp.ones((1, 2)))[0]["w"]}
COUNTED = {
    "int": lambda: fnp.array(1), "arange": lambda: fnp.arange(3), "list": lambda: fnp.array([1, 2]),
    "randint": lambda: random.randint(random.key(0), (2,), 0, 3),
    "range": lambda: fnp.array(range(3)),
    "full": lambda: fnp.full(2, 3), "sum of bools": lambda: fnp.sum(fnp.array([True])),
    "jit": lambda: fgrad.jit(lambda n: n * 2)(2)}


@pytest.mark.parametrize("name", MADE)
def test_floats_made_without_a_dtype_have_the_default_one(name):
    assert MADE[name]().dtype == "float32"
    with fgrad.default_dtype("float64"):
        assert MADE[name]().dtype == "float64"
    assert MADE[name]().dtype == "float32"


@pytest.mark.parametrize("name", COUNTED)
def test_ints_made_without_a_dtype_have_the_default_one(name):
    assert COUNTED[name]().dtype == "int32"
    with fgrad.default_dtype("float64"):
        assert COUNTED[name]().dtype == "int64"


# ---------------------------------------------------------------------------- f64 meets f32

def told(function, *args):
    """The notices of a call."""
    NOTICED.discard("f32 meets f64")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*args)
    return [str(w.message) for w in caught if issubclass(w.category, FgradWarning)]


def loss(w, x):
    return fnp.mean((x @ w) ** 2)


@pytest.mark.parametrize("step", [fgrad.grad(loss), fgrad.jit(fgrad.grad(loss)),
                                  fgrad.grad(lambda w, x: fnp.sum(w * x))])
def test_f32_parameters_with_an_f64_batch_give_one_notice(step):
    w, x = fnp.ones(3), np.ones((5, 3))
    (notice,) = told(lambda: [step(w, x) for _ in range(3)])
    assert notice.startswith(
        "f32 values that are differentiated meet an array of f64: from here on all is computed in "
        "f64, which is slower; x.astype(\"float32\") of the data keeps f32 (test_dtypes.py:")


def test_no_notice_is_given_where_nothing_is_differentiated_or_all_is_of_one_dtype():
    w, x = fnp.ones(3), np.ones((5, 3))
    assert told(loss, w, x) == told(fgrad.grad(loss), w, fnp.ones((5, 3))) == []
    assert told(fgrad.grad(loss), w.astype("float64"), x) == []
    assert told(fgrad.grad(lambda w: fnp.sum(w.astype("float64") * x[0])), w) == []


S = np.sqrt(3)                               # what NumPy computes with numbers: a float64
BESIDE_NUMPY = {
    "x / S": lambda x, s: x / s, "S * x": lambda x, s: s * x, "x % S": lambda x, s: x % s,
    "x ** S": lambda x, s: x ** s, "S // x": lambda x, s: s // x, "x < S": lambda x, s: x < s,
    "np.multiply": lambda x, s: np.multiply(s, x), "maximum": fnp.maximum,
    "where": lambda x, s: fnp.where(x > 0, x, s), "clip": lambda x, s: fnp.clip(x, 0, s),
    "arctan2": fnp.arctan2, "hypot": fnp.hypot, "dot": fnp.dot,
    "stack": lambda x, s: fnp.stack([fnp.sum(x), s]), "array": lambda x, s: fnp.array([x[0], s]),
    "numbers first": lambda x, s: (2 * s + 1) * x, "negative": lambda x, s: -s * x,
    "alone": lambda x, s: fnp.sin(s), "returned": lambda x, s: s,
    "scan": lambda x, s: fgrad.lax.scan(lambda c, y: (c / s + y, c), x, x[:, None])[0] if (
        x.dtype.kind == "f") else x}


@pytest.mark.parametrize("f", BESIDE_NUMPY.values(), ids=BESIDE_NUMPY)
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i32", "bool"])
def test_a_float64_of_numpy_is_a_number_that_has_64_bits_by_itself(f, dtype):
    """softmax(q @ k.T / np.sqrt(d)) was computed in f64, and a carry c / np.sqrt(d) refused."""
    x = fnp.array([1.0, 2.0]).astype(dtype)
    alone = f in (BESIDE_NUMPY["alone"], BESIDE_NUMPY["returned"])
    floats = x.dtype.kind == "f" and not alone
    out = np.asarray(f(x, S))
    want = np.asarray(f(x, float(S))) if floats else np.asarray(f(x.astype("f64"), S))
    if f is not BESIDE_NUMPY["scan"] or floats:
        assert out.dtype == want.dtype
        np.testing.assert_array_equal(out, want)
    jitted = fgrad.jit(f)
    for made in (jitted(x, S), jitted(x, S), fgrad.jit(lambda x: f(x, S))(x),
                 fgrad.jit(lambda x, s: fgrad.jit(f)(x, s))(x, S)):
        made = np.asarray(made)
        assert made.dtype == out.dtype
        np.testing.assert_allclose(made, out, rtol=1e-3 if dtype == "f16" else 1e-6)


def test_a_float64_of_numpy_and_an_array_of_f64_are_two_arguments():
    """Both hold f64[]; one is a number, which takes the dtype of the array beside it."""
    x, given = fnp.ones(2), [S, fnp.array(S), np.array(S), np.float32(S), float(S)]
    f = fgrad.jit(lambda x, s: x * s)
    for _ in range(3):                           # traced, compiled, called natively
        assert [f(x, s).dtype.name for s in given] == [
            "float32", "float64", "float64", "float32", "float32"]
    assert f.cache_info().size == 4
    with fgrad.strict_promotion():
        assert (x * S).dtype == "float32"
    assert fgrad.numpy.result_type(S, "float16") == "float16"
    assert fgrad.jit(lambda a, x: (a * S) * x)(2.0, x).dtype == "float32"
    assert fgrad.jit(lambda a: a * S)(2.0).dtype == "float64"
    assert fgrad.grad(lambda s: s * s)(S).dtype == "float64"
    assert fgrad.grad(lambda x: fnp.sum(x * S))(x).dtype == "float32"


def test_a_type_has_a_shape_of_python_ints_however_it_is_written():
    made = [ArrayType(F32, shape) for shape in ((np.int64(7), 3), [7, np.int8(3)], (7, 3))]
    assert made[0] is made[1] is made[2] and str(made[0]) == "f32[7,3]"
    assert str(ArrayType(F32, (True, 7))) == "f32[1,7]"
    for shape in (7, (2.5,)):
        with pytest.raises(fgrad.ShapeError, match="tuple of whole numbers"):
            ArrayType(F32, shape)


M, B = np.array([[True, False, True], [True, True, False]]), np.array([True, False, True])
PRODUCTS = {
    "matmul": lambda f: f.matmul(M, M.T), "stacked": lambda f: f.matmul(M[None], M.T),
    "vector": lambda f: f.matmul(M, B), "dot": lambda f: f.dot(M, B),
    "inner": lambda f: f.inner(B, B),
    "scaled": lambda f: f.dot(M, True), "vdot": lambda f: f.vdot(B, B),
    "outer": lambda f: f.outer(B, B), "kron": lambda f: f.kron(M, B),
    "tensordot": lambda f: f.tensordot(M, M), "nothing": lambda f: f.dot(B[:0], B[:0]),
    "einsum": lambda f: f.einsum("ij,kj,k->i", M, M, M[:, 0]),
    "alone": lambda f: f.einsum("ij->i", M), "trace": lambda f: f.trace(M),
    "power": lambda f: f.linalg.matrix_power(M[:, :2], 2)}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("run", [lambda f: f(), lambda f: fgrad.jit(f)()])
def test_products_of_bools_are_bools(name, run):
    found, wanted = run(lambda: PRODUCTS[name](fnp)), PRODUCTS[name](np)
    assert found.dtype == (np.int32 if name == "trace" else np.bool_)
    assert found.tolist() == wanted.tolist()


def test_many_products_of_bools_do_not_count_back_to_false():
    x = np.ones(2048, bool)
    assert fnp.einsum("i,j,k->", x, x, x[:1024])         # of int32 it would be 2³², which is 0


@pytest.mark.parametrize("function", [
    fgrad.lax.cummax, fgrad.lax.cumsum, fgrad.lax.cumprod, fnp.negative])
def test_what_is_not_defined_for_bools_is_neither_with_jit(function):
    for run in (function, fgrad.jit(function)):
        with pytest.raises(DtypeError, match="is not defined for bool"):
            run(fnp.array(B))


@pytest.mark.parametrize("run", [lambda f: f, fgrad.jit])
def test_bools_are_ints_in_squares_and_remainders_and_add_up_by_or(run):
    x = fnp.array(B)
    for function in (fnp.square, lambda x: x % True, lambda x: fnp.fmod(x, True), lambda x: x // x):
        assert run(function)(x).dtype == np.int32
    assert run(fnp.square)(x).tolist() == [1, 0, 1]
    at = lambda x: x.at[fnp.array([1, 1, 0])]
    assert run(lambda x: at(x).add(x))(x).tolist() == [True, True, True]
    assert run(lambda x: at(x).multiply(x))(x).tolist() == [True, False, True]
