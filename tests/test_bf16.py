"""bf16: words in memory, f32 in between; like any other dtype of floats to the user."""

import copy
import pickle

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim, random
from fgrad.backends import reference
from fgrad.bf16 import BF16, rounded, values_of, words_of
from fgrad.core import WordArray
from fgrad.errors import ArgumentError, DeviceError, DtypeError
from fgrad.ir_text import parse
from fgrad.types import F16, F32, ArrayType, as_dtype, promote
from tests.tolerance import assert_close

DEVICES = ["cpu", "opencl", "reference"]


def array(*values):
    return fnp.asarray(list(values), "bfloat16")


def drawn(*shape, seed=0):
    return fnp.asarray(np.random.default_rng(seed).normal(size=shape), "bfloat16")


def on(device, function):
    """The function compiled for a device, or a skip where there is none."""
    if device == "opencl":
        try:
            fgrad.jit(lambda: fnp.zeros(1), device=device)()
        except DeviceError as error:
            pytest.skip(str(error))
    return fgrad.jit(function, device=device)


def assert_bf16(got, want, length=1):
    """Both are bf16, and near each other."""
    assert got.dtype is BF16 and want.dtype is BF16
    assert_close(got, want, length, dtype=BF16)


# ---------------------------------------------------------------------------- words

def test_every_word_comes_back():
    words = np.arange(2**16, dtype=np.uint16)
    back, nan = words_of(values_of(words)), np.isnan(values_of(words))
    assert np.array_equal(back[~nan], words[~nan])
    assert np.isnan(values_of(back[nan])).all()


def test_numbers_are_rounded_to_the_nearest_and_ties_to_even():
    x = np.random.default_rng(0).normal(size=1000).astype(F32)
    down = (x.view(np.uint32) & 0xFFFF0000).view(F32)
    up = ((x.view(np.uint32) & 0xFFFF0000) + 0x10000).view(F32)
    got = rounded(x)
    assert np.array_equal(np.abs(got - x), np.minimum(np.abs(x - down), np.abs(up - x)))
    ties = np.array([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8], F32)
    assert rounded(ties).tolist() == [1.0, 1 + 2**-6, -1.0]
    assert rounded(np.array([3.4e38, -np.inf, np.nan], F32)).tolist()[:2] == [np.inf, -np.inf]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3)])
def test_shapes_are_kept(shape):
    x = fnp.zeros(shape, fgrad.bfloat16)
    assert isinstance(x, WordArray) and x.type is ArrayType("bf16", shape)
    assert np.asarray(x).shape == shape and (x + 1).shape == shape and x.nbytes == 2 * x.size


# ---------------------------------------------------------------------------- as a dtype

def test_it_has_its_names_and_equals_them():
    assert as_dtype("bf16") is as_dtype("bfloat16") is as_dtype(BF16) is fgrad.bfloat16
    assert fnp.bfloat16 == "bfloat16" and fnp.bfloat16 != "float16" and fnp.bfloat16 != np.float32
    assert BF16 != F16 and F16 != BF16 and pickle.loads(pickle.dumps(BF16)) is BF16


def test_another_packages_bfloat16_is_known_by_its_name():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    theirs = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    assert as_dtype(ml_dtypes.bfloat16) is BF16
    assert fnp.asarray(theirs).tolist() == (theirs + fnp.zeros(2, BF16)).tolist() == [1.5, -2.0]
    assert fgrad.jit(lambda x: x + 1)(theirs).type is ArrayType(BF16, (2,))


def test_promotion():
    assert promote(BF16, F16) is promote(F16, BF16) is F32
    assert promote(BF16, F32) is F32 and promote(as_dtype("int32"), BF16) is BF16
    assert fnp.promote_types("bfloat16", "float64") == np.float64
    x = array(1.0, 2.0)
    assert [(x + y).dtype for y in (1, 2.5, True, np.int64(3))] == [BF16] * 4
    assert (x + fnp.ones(2)).dtype == F32 and fnp.true_divide(x, 3).dtype is BF16


def test_its_limits():
    info = fnp.finfo(fgrad.bfloat16)
    assert (info.eps, info.bits, info.nmant) == (2**-7, 16, 7)
    assert rounded(info.max) == info.max and np.isinf(rounded(float(info.max) * 1.003))
    assert fnp.issubdtype(BF16, np.floating) and not fnp.issubdtype(BF16, np.integer)
    assert fnp.isdtype(BF16, "real floating") and fnp.can_cast(BF16, "float32")
    assert not fnp.can_cast("float32", BF16) and fnp.can_cast("float32", BF16, "same_kind")


def test_it_prints_the_fewest_digits():
    x = array(0.1, 2.0, -3.5, np.inf, 1e30)
    assert repr(x) == "Array([0.1, 2., -3.5, inf, 1e+30], bf16[5])"
    assert str(x[:2]) == "[0.1 2.]" and f"{x[1]:.2f}" == "2.00"
    assert str(fnp.asarray(0.1, BF16)) == "0.1" and x[0].item() == 0.10009765625


def test_numpy_sees_f32():
    x = drawn(3, 2)
    assert np.asarray(x).dtype == F32 and np.asarray(x, "f8").dtype == np.float64
    assert not np.asarray(x).flags.writeable and np.tanh(x).dtype is BF16
    assert pickle.loads(pickle.dumps(x)).tolist() == copy.deepcopy(x).tolist() == x.tolist()


def test_dlpack_is_refused_in_words():
    with pytest.raises(DtypeError, match="bf16 cannot be given away through DLPack"):
        np.from_dlpack(drawn(2))


# ---------------------------------------------------------------------------- computing

def test_sums_and_products_accumulate_in_f32():
    x = fnp.ones(4096, BF16)                     # in bf16 the sum would stay at 256
    assert fnp.sum(x).item() == fnp.cumsum(x)[-1].item() == (x @ x).item() == 4096
    assert fgrad.jit(fnp.sum)(x).item() == fgrad.jit(lambda x: x @ x)(x).item() == 4096
    assert fgrad.jit(fnp.cumsum)(x)[-1].item() == 4096


def layer(w, b, x):
    h = fnp.tanh(x @ w + b)
    return h / fnp.sum(fnp.abs(h), axis=1, keepdims=True)


@pytest.mark.parametrize("device", DEVICES)
def test_compiled_is_as_without(device):
    args = drawn(5, 7), drawn(7, seed=1), drawn(9, 5, seed=2)
    assert_bf16(on(device, layer)(*args), layer(*args), length=7)


@pytest.mark.parametrize("device", DEVICES)
def test_moving_elements_keeps_their_bits(device):
    words = np.arange(0, 2**16, 257, dtype=np.uint16)[:252]
    x = WordArray(words)
    y = on(device, lambda x: (x.reshape(12, 21).T, fnp.concatenate([x[5:], x[:5]])))(x)
    assert np.array_equal(y[0].words, words.reshape(12, 21).T)
    assert np.array_equal(y[1].words, np.roll(words, -5))


@pytest.mark.parametrize("device", DEVICES)
def test_a_conversion_rounds_and_what_is_compared_is_rounded(device):
    x = fnp.asarray([1.0, 1.001, 1.01])
    f = on(device, lambda x: (x.astype(BF16).astype(F32), x.astype(BF16) * 1.001 == 1.0))
    assert f(x)[0].tolist() == rounded(np.asarray(x)).tolist()
    assert f(x)[1].tolist() == [True, True, False]


@pytest.mark.parametrize("device", DEVICES)
def test_what_numpy_runs_takes_and_gives_words(device):
    x = drawn(6)
    assert on(device, lambda x: fnp.sort(x) * 2)(x).tolist() == (fnp.sort(x) * 2).tolist()


@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_loops_carry_words(device):
    def f(x):
        carry, ys = fgrad.lax.scan(lambda c, v: (c + v, c * v), fnp.zeros((), BF16), x)
        return fgrad.lax.while_loop(lambda c: c < 10, lambda c: c * 2 + 1, carry), ys
    x = fnp.abs(drawn(4))
    for got, want in zip(on(device, f)(x), f(x)):
        assert_bf16(got, want)


@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_updates_add_up(device):
    f = on(device, lambda x, i: x.at[i].add(1.5))
    assert f(fnp.zeros(3, BF16), fnp.array([0, 2, 2])).tolist() == [1.5, 0.0, 3.0]


def test_derivatives_have_its_dtype():
    x, w = drawn(4), drawn(4, seed=1)
    f = lambda x: fnp.sum(fnp.exp(x) * w)
    assert_bf16(fgrad.grad(f)(x), fnp.exp(x) * w)
    assert_bf16(fgrad.jit(fgrad.grad(f))(x), fnp.exp(x) * w)
    assert_bf16(fgrad.jvp(fnp.sin, (x,), (w,))[1], fnp.cos(x) * w)
    assert_bf16(fgrad.vmap(fgrad.grad(lambda x, w: x * w))(x, w), w)
    assert fgrad.grad(lambda x: fnp.max(x * x))(array(1.0, 3.01)).tolist()[0] == 0.0
    assert fgrad.jacrev(lambda x: x * x)(x).shape == fgrad.hessian(f)(x).shape == (4, 4)


def test_a_program_is_printed_and_parsed():
    program = fgrad.make_ir(lambda x: fnp.tanh(x.astype("float32")).astype(BF16) * 0.5)(drawn(3))
    assert "x: bf16[3]" in str(program) and "convert[dtype=bf16]" in str(program)
    assert str(parse(str(program))) == str(parse(str(parse(str(program)))))


def test_donated_memory_is_words_too():
    f = fgrad.jit(lambda x: x + 1, donate_argnums=0)
    x = drawn(5)
    want = (x + 1).tolist()
    assert f(x).tolist() == want
    with pytest.raises(fgrad.DonationError):
        x.tolist()


# ---------------------------------------------------------------------------- on top

def test_random_numbers_are_in_their_range_and_repeat():
    key = random.key(3)
    u = np.asarray(random.uniform(key, (1000,), BF16))
    assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 0.05
    z = random.normal(random.key(4), (1000,), BF16)
    assert z.dtype is BF16 and np.isfinite(np.asarray(z)).all() and abs(fnp.std(z).item() - 1) < 0.1
    compiled = fgrad.jit(lambda k: random.uniform(k, (1000,), BF16))
    assert np.array_equal(np.asarray(compiled(random.key(3))), u)


def test_random_numbers_are_jaxs():
    # jax 0.10: random.uniform(random.key(0), (4,), jnp.bfloat16), and normal
    assert random.uniform(random.key(0), (4,), BF16).tolist() == [
        0.6484375, 0.5703125, 0.15625, 0.203125]
    assert random.normal(random.key(0), (4,), BF16).tolist() == [
        0.38671875, 0.1826171875, -1.0, -0.82421875]


def test_a_model_in_bf16_learns():
    model = nn.Sequential(nn.Dense(8), nn.relu, nn.Dense(1))
    x = drawn(64, 3)
    y = fnp.sum(x, axis=1, keepdims=True)
    params, state = model.init(random.key(0), x)
    params = fgrad.tree.map(lambda p: p.astype(BF16), params)
    tx = optim.adam(3e-2)
    moments = tx.init(params)

    @fgrad.jit
    def step(params, moments):
        def loss(p):
            return fnp.mean((model.apply(p, state, x)[0] - y) ** 2)
        value, grads = fgrad.value_and_grad(loss)(params)
        updates, moments = tx.update(grads, moments, params)
        return optim.apply_updates(params, updates), moments, value
    values = []
    for _ in range(60):
        params, moments, value = step(params, moments)
        values.append(value.item())
    assert {p.dtype for p in fgrad.tree.leaves(params)} == {BF16}
    assert values[-1] < 0.1 * values[0]


def test_safetensors_keep_it(tmp_path):
    tree = {"w": drawn(3, 2), "b": fnp.zeros(0, BF16), "f": np.ones(2)}
    fgrad.io.save(tmp_path / "a.safetensors", tree)
    out = fgrad.io.load(tmp_path / "a.safetensors")
    like = fgrad.io.load(tmp_path / "a.safetensors", like=tree)
    for found in (out, like):
        assert np.array_equal(found["w"].words, tree["w"].words) and found["b"].dtype is BF16
    with pytest.raises(ArgumentError, match="NumPy has no bfloat16"):
        fgrad.io.save_npz(tmp_path / "a.npz", tree)


# ---------------------------------------------------------------------------- beside all the rest

def test_watched_functions_name_the_line_that_made_a_nan():
    def loss(x):
        _, ys = fgrad.lax.scan(lambda c, v: (c + v, c * v), fnp.zeros((), BF16), x)
        return fnp.sum(fnp.log(x) * ys)
    watched = fgrad.debug.nans(fgrad.grad(loss))
    assert watched(array(1.0, 2.0)).dtype is BF16
    with pytest.raises(fgrad.NanError, match="log"):
        watched(array(0.0, 1.0))


def test_both_oracles_run_loops_that_carry_words():
    f = lambda x: fgrad.lax.scan(lambda c, v: (c * v, c + v), fnp.ones((), BF16), x)
    program = fgrad.make_ir(f)(drawn(3))
    want = reference.run_program(program, [drawn(3).words])
    assert [x.tolist() for x in want] == [fgrad.tree.leaves(f(drawn(3)))[k].words.tolist()
                                          for k in (0, 1)]


def test_what_numpy_computes_outside_of_operations_keeps_the_dtype():
    x, y = array(3.0, 0.1, 3.0), array(0.1, 7.0)
    for got, want in ((fnp.unique(x), [0.1, 3.0]), (fnp.intersect1d(x, y), [0.1]),
                      (fnp.setdiff1d(x, y), [3.0]), (fnp.union1d(x, y), [0.1, 3.0, 7.0]),
                      (fnp.arange(0.1, 3.1, 2.9, dtype=BF16), [0.1, 3.0])):
        assert got.dtype is BF16 and got.tolist() == array(*want).tolist()


def test_products_of_bf16_are_added_up_in_the_dtype_that_is_preferred():
    x = fnp.full((2, 512), 1.01, dtype="bfloat16")
    want = np.float32(x[0, 0].astype("float32")) ** 2 * 512
    for product in (lambda x, **how: fnp.matmul(x, x.T, **how),
                    lambda x, **how: fnp.dot(x, x.T, **how),
                    lambda x, **how: fnp.einsum("ij,kj->ik", x, x, **how),
                    lambda x, **how: fnp.tensordot(x, x, [[1], [1]], **how)):
        for f in (product, fgrad.jit(product, static_argnames="preferred_element_type")):
            assert f(x).dtype == "bfloat16"
            out = f(x, preferred_element_type="float32")
            assert out.dtype == "float32" and np.allclose(out, want, rtol=1e-6)
