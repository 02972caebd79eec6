"""What a new user types in the first hour, and what fgrad does or says."""

import copy
import json
import pickle
import threading
import time
import warnings

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ArrayType, grad, jit, make_ir, nn, optim, random, tree, value_and_grad, vmap
from fgrad.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    DeviceError,
    GradientError,
    KeyReuseWarning,
    LeakError,
    MutationError,
    NumpyError,
    RandomKeyError,
    ShapeError,
    TreeError,
)

from tests.messages import message


def near(a, b, tol=1e-6):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol, atol=tol)


def loss(w, x):
    return fnp.sum(w * x)


# ---------------------------------------------------------------------------- derivatives

def test_parts_that_are_loaded_at_first_use_need_no_import_of_their_own():
    assert fgrad.viz.tiles(np.zeros((1, 2, 2))).shape == (4, 4)
    near(fgrad.scipy.special.expit(0.0), 0.5)


def test_the_hessian_of_a_logistic_loss_is_right_where_the_score_is_zero():
    score = fnp.array([0.0, 0.0, 1.0])
    curvature = np.diag(fgrad.hessian(lambda s: fnp.sum(nn.softplus(s)))(score))
    near(curvature, [0.25, 0.25, 0.19661193])
    near(grad(grad(lambda s: nn.sigmoid_binary_cross_entropy(s, 1.0)))(0.0), 0.25)


def test_the_derivative_of_a_square():
    found = grad(lambda x: x**2)(3.0)
    assert (str(found), found.dtype, found.shape) == ("6.0", np.float32, ())


def test_plain_numpy_is_differentiated_twice():
    near(grad(grad(np.tanh))(1.0), -2 * np.tanh(1) * (1 - np.tanh(1) ** 2))


def test_an_int_is_refused_with_what_to_write():
    def ask():
        return grad(lambda x: x * x)(3)
    assert message(GradientError, ask) == """\
grad needs float arguments, but `x` is the int 3.

    test_first_day.py:N    return grad(lambda x: x * x)(3)

  given      x: int 3
  expected   f16, bf16, f32 or f64
  fix        write 3.0
             allow_int=True, for a gradient of zeros"""


def test_a_result_that_is_no_scalar():
    def square(x):
        return x * x

    def ask():
        return grad(square)(fnp.ones(3))
    assert message(GradientError, ask) == """\
grad needs a scalar result, but `square` returned f32[3].

    test_first_day.py:N    return grad(square)(fnp.ones(3))

  expected   f32[]
  fix        end with .sum() or .mean()
             jacrev(square) for all derivatives
             vmap(grad(square)) for one gradient per example"""


def test_argnums_by_position_and_by_name():
    near(grad(loss, argnums="w")(1.0, 2.0), 2)
    near(grad(loss, argnames="x")(1.0, 2.0), 1)

    def ask():
        return grad(loss, argnums=2)(1.0, 2.0)
    assert message(ArgumentError, ask) == """\
grad with argnums=2: `loss` was given no such argument.

    test_first_day.py:N    return grad(loss, argnums=2)(1.0, 2.0)

  given      `loss` has 2 positional parameters: w, x
  expected   argnums from 0 to 1, or a name"""


def test_has_aux_of_a_function_that_returns_one_value():
    def ask():
        return value_and_grad(loss, has_aux=True)(1.0, 2.0)
    assert message(ArgumentError, ask) == """\
has_aux=True expects `loss` to return (loss, aux), but it returned f32[].

    test_first_day.py:N    return value_and_grad(loss, has_aux=True)(1.0, 2.0)

  expected   a tuple of two
  fix        return loss, aux
             or leave out has_aux"""


def test_an_mlp_learns_the_same_with_and_without_jit_and_jit_is_traced_once():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((64, 8)).astype("f4"), rng.standard_normal((64, 1)).astype("f4")
    start = [
        (rng.standard_normal(s).astype("f4") / 3, np.zeros(s[1], "f4"))
        for s in ((8, 16), (16, 16), (16, 1))
    ]

    def error(params):
        h = fnp.asarray(x)
        for w, b in params[:-1]:
            h = fnp.tanh(h @ w + b)
        w, b = params[-1]
        return fnp.mean((h @ w + b - y) ** 2)

    def step(params):
        value, grads = value_and_grad(error)(params)
        return tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    def train(step, n):
        params, values = start, []
        for _ in range(n):
            params, value = step(params)
            values.append(float(value))
        return values
    compiled = jit(step)
    train(compiled, 2)                           # the second makes its calls native
    begin = time.perf_counter()
    slow = train(step, 100)
    middle = time.perf_counter()
    fast = train(compiled, 100)
    end = time.perf_counter()
    near(slow, fast, 1e-5)
    assert slow[-1] < 0.7 * slow[0]
    assert compiled.cache_info().misses == 1
    assert middle - begin > 3 * (end - middle)


def test_trees_of_different_keys():
    def ask():
        return tree.map(lambda a, b: a + b, {"a": 1}, {"b": 1})
    assert message(TreeError, ask) == """\
trees differ at their root: keys only in the first ['a'], only in the second ['b'].

    test_first_day.py:N    return tree.map(lambda a, b: a + b, {"a": 1}, {"b": 1})

  fix        give trees of one structure; fgrad.tree.structure(t) shows it"""


# ---------------------------------------------------------------------------- jit

def test_if_on_a_traced_value():
    @jit
    def f(x):
        y = fnp.sum(x * 2)
        if y > 0:
            return y
        return -y
    assert message(ConcretizationError, f, fnp.ones(3)) == """\
`if` needs a value, but while `f` is compiled there are only types.

    test_first_day.py:N    if y > 0:

  given      bool[], which depends on `x` of `f`
             made at test_first_day.py:N: if y > 0:
  fix        choose with fgrad.numpy.where(condition, a, b)
             or remove jit: without it values are known"""


def test_an_int_may_be_a_shape():
    f = jit(lambda x, n: fnp.zeros(n) + x)
    near(f(1.0, 3), np.ones(3))
    near(f(1.0, 2), np.ones(2))


def test_strings_functions_and_configurations_are_arguments():
    f = jit(lambda x, how: nn.relu(x) if how == "relu" else how(x))
    near(f(fnp.array([-1.0, 2.0]), "relu"), [0, 2])
    near(f(fnp.ones(2), np.tanh), np.tanh([1, 1]))
    near(jit(lambda x, c: x * c[0])(2.0, [3]), 6)
    near(jit(lambda x, c: x if c["mode"] == "train" else -x)(2.0, {"mode": "train"}), 2)


def test_numbers_are_taken_out_of_a_value_under_grad_but_not_under_jit():
    def f(x):
        assert f"{x:.3f}" == "2.000" and x.item() == 2.0 and int(x) == 2
        return x * float(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        near(grad(f)(2.0), 2.0)
    assert any("no gradient flows through it (test_first_day.py:" in str(w.message) for w in caught)

    @jit
    def g(x):
        return x * float(fnp.sum(x))
    assert message(ConcretizationError, g, fnp.ones(2)) == """\
float() needs a value, but while `g` is compiled there are only types.

    test_first_day.py:N    return x * float(fnp.sum(x))

  given      f32[], which depends on `x` of `g`
             made at test_first_day.py:N: return x * float(fnp.sum(x))
  fix        compute with fgrad.numpy functions instead
             or remove jit: without it values are known"""


def test_a_ragged_last_batch_is_one_more_trace():
    step = jit(lambda p, x: fnp.sum(x) * p)
    rows = fnp.ones((70, 2))
    for i in range(0, 70, 32):
        step(1.0, rows[i:i + 32])
    assert step.cache_info().misses == 2
    assert "argument `x` changed shape f32[32,2] -> f32[6,2]" in step.explain()


# ---------------------------------------------------------------------------- assignments

def test_assigning_to_an_element():
    def assign():
        x = fnp.zeros(3)
        x[0] = 1
    assert message(MutationError, assign) == """\
fgrad arrays are immutable; write x = x.at[0].set(1)

    test_first_day.py:N    x[0] = 1"""


@pytest.mark.parametrize("transform", [grad, jit])
def test_assigning_a_traced_value_into_a_numpy_array(transform):
    def f(x):
        z = np.zeros(3)
        z[0] = x
        return fnp.sum(z)
    last = {grad: "or pass fgrad.stop_gradient(x)",
            jit: "or fgrad.pure_callback(function, result_type, x), to call NumPy when it runs"}
    assert message(NumpyError, transform(f), fnp.array(1.0)) == f"""\
NumPy cannot hold a value that is being traced.

    test_first_day.py:N    z[0] = x

  fix        build with fgrad.numpy.array([…]) or stack
             set elements with a.at[i].set(x)
             {last[transform]}"""


def test_the_way_to_assign():
    def f(x):
        z = fnp.zeros(3)
        z = z.at[0].set(x)
        return fnp.sum(z * z)
    near(grad(f)(1.5), 3.0)


# ---------------------------------------------------------------------------- vmap

def test_vmap_over_axes_of_different_sizes():
    def product(x, y):
        return x * y

    def ask():
        return vmap(product)(fnp.ones((3, 2)), fnp.ones(4))
    assert message(ShapeError, ask) == """\
vmap of `product` maps over axes of different sizes.

    test_first_day.py:N    return vmap(product)(fnp.ones((3, 2)), fnp.ones(4))

  given      x: f32[3,2]   axis 0 has size 3
             y: f32[4]     axis 0 has size 4
  expected   one size
  fix        in_axes=None for an argument that is not mapped"""

    def again():
        return vmap(product, in_axes=(0,))(fnp.ones(3), fnp.ones(3))
    assert message(ArgumentError, again) == """\
vmap of `product` has in_axes for 1 arguments, but was called with 2.

    test_first_day.py:N    return vmap(product, in_axes=(0,))(fnp.ones(3), fnp.ones(3))

  given      in_axes=(0,)
  expected   one entry per argument: (f32[3], f32[3])
  fix        one int for all arguments, or None for those that are not mapped"""


def test_one_gradient_per_example():
    error = lambda p, x, y: (fnp.dot(p, x) - y) ** 2
    p, xs, ys = fnp.ones(3), fnp.arange(12.0).reshape(4, 3), fnp.arange(4.0)
    near(
        vmap(grad(error), in_axes=(None, 0, 0))(p, xs, ys),
        np.stack([grad(error)(p, x, y) for x, y in zip(xs, ys)]),
    )


# ---------------------------------------------------------------------------- looking inside

def test_the_program_is_printed_with_types_and_lines():
    def error(p, x, y):
        return (fnp.dot(p, x) - y) ** 2
    text = str(make_ir(error)(np.ones(3), np.ones(3), 1.0)).splitlines()
    assert text[0] == "error(p: f64[3], x: f64[3], y: f64[]) -> f64[]"
    assert text[1].startswith("  a: f64[] = dot_general[i,i->] p x │ test_first_day.py:")
    lowered = jit(error).lower(fnp.ones(3), fnp.ones(3), fnp.array(1.0))
    assert str(lowered.ir).startswith("error(p: f32[3], x: f32[3], y: f32[]) -> f32[]")
    assert "define void" in lowered.llvm


# ---------------------------------------------------------------------------- random numbers

def test_using_a_key_twice_warns_once_with_both_lines():
    key = random.key(0)
    with pytest.warns(KeyReuseWarning) as caught:
        a = random.normal(key, (3,))
        for _ in range(2):
            b = random.normal(key, (3,))
    near(a, b)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert text.count("test_first_day.py:") == 3 and "use k1, k2 = random.split(key)" in text


def test_a_seed_is_no_key():
    def ask():
        return random.normal(0, (3,))
    assert message(RandomKeyError, ask) == """\
normal expects a key; use random.key(0).

    test_first_day.py:N    return random.normal(0, (3,))

  given      int 0"""


def test_a_generator_draws_as_numpy_does():
    rng = random.Generator(0)
    a, b = rng.normal((3,)), rng.normal((3,))
    assert a.shape == (3,) and not np.array_equal(a, b)


# ---------------------------------------------------------------------------- models

def test_a_layer_with_the_wrong_width_is_named():
    model = nn.Sequential(nn.Dense(4), nn.relu, nn.Dense(2))
    params, state = model.init(random.key(0), fnp.ones((5, 3)))
    assert model.apply(params, state, fnp.ones((5, 3)))[0].shape == (5, 2)

    def ask():
        return model.apply(params, state, fnp.ones((5, 7)))
    assert message(ShapeError, ask) == """\
in layer 'dense1': dense: the input has 7 features, the weight expects 3.

    test_first_day.py:N    return model.apply(params, state, fnp.ones((5, 7)))

  given      x: f32[5,7]
             w: f32[3,4]"""


def test_an_optimizer_step():
    p, g = {"w": fnp.ones(3)}, {"w": fnp.ones(3)}
    opt = optim.adam(1e-3)
    s = opt.init(p)
    u, s = opt.update(g, s, p)
    near(optim.apply_updates(p, u)["w"], np.full(3, 0.999))


# ---------------------------------------------------------------------------- dtypes and devices

def test_64_bits_without_a_flag():
    assert fnp.zeros(3, dtype="float64").dtype == np.float64
    assert fnp.array(np.ones(3)).dtype == np.float64
    assert fnp.array([1.0, 2.0]).dtype == np.float32
    with pytest.raises(OverflowError):
        fnp.ones(2, "uint8") + 256


def test_an_unknown_device():
    def ask():
        return jit(lambda x: x + 1, device="tpu")(1.0)
    assert message(DeviceError, ask) == """\
there is no device 'tpu'.

    test_first_day.py:N    return jit(lambda x: x + 1, device="tpu")(1.0)

  expected   cpu, gpu, opencl, reference
  fix        fgrad.devices() lists the devices of this machine"""


# ---------------------------------------------------------------------------- and also

def test_a_value_that_outlives_its_transformation():
    kept = []
    grad(lambda x: kept.append(x) or x * x)(1.0)

    def use():
        return kept[0] + 1
    assert message(LeakError, use) == """\
a value of grad was used outside of the grad call it belongs to.

    test_first_day.py:N    return kept[0] + 1

  given      f32[]
             kept in list `kept`
  fix        return it from the function instead of storing it"""


def test_a_chain_of_100000_operations_has_a_derivative():
    def chain(x):
        for _ in range(100_000):
            x = x * 1.0001
        return x
    near(grad(chain)(np.float64(1e-4)), 1.0001**100_000, 1e-9)


def test_matrices_that_do_not_fit():
    def product():
        x = fnp.ones((2, 3))
        return x @ fnp.ones((2, 3))
    assert message(ShapeError, product) == """\
inner sizes differ: (2,[3]) @ ([2],3).

    test_first_day.py:N    return x @ fnp.ones((2, 3))

  given      x: f32[2,3]
             fnp.ones((2, 3)): f32[2,3]
  expected   equal sizes in brackets
  fix        did you mean x @ fnp.ones((2, 3)).T or x.T @ fnp.ones((2, 3))?"""


def test_an_axis_that_is_not_there():
    def total():
        return fnp.sum(fnp.ones((2, 3)), axis=5)
    assert message(AxisError, total) == """\
sum: axis 5 is out of range for an array of 2 axes.

    test_first_day.py:N    return fnp.sum(fnp.ones((2, 3)), axis=5)

  expected   an axis from -2 to 1"""


def test_parameters_are_pickled_and_copied_and_not_written_as_json():
    params = {"w": fnp.arange(3.0), "b": [fnp.ones((2, 2)), None]}
    for found in (pickle.loads(pickle.dumps(params)), copy.deepcopy(params)):
        near(found["w"], params["w"])
        assert isinstance(found["b"][0], fgrad.Array)
    with pytest.raises(TypeError, match="Array is not JSON serializable"):
        json.dumps(params)
    assert json.loads(json.dumps(params["w"].tolist())) == [0.0, 1.0, 2.0]


def test_two_threads_call_one_function():
    f, wrong = jit(lambda x: fnp.exp(x) + 1), []

    def work(value):
        for _ in range(200):
            if not np.allclose(f(np.full(5, value, "f4")), np.exp(value) + 1):
                wrong.append(value)
    threads = [threading.Thread(target=work, args=(v,)) for v in (0.5, 1.5)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_a_function_defined_again_is_compiled_again():
    def define(k):
        @jit
        def f(x):
            return x * k
        return f
    assert [float(define(k)(1.0)) for k in (2.0, 3.0)] == [2.0, 3.0]


def test_types_in_place_of_arrays_show_a_program():
    assert fgrad.show(lambda x: x + 1, ArrayType("float32", (2,))).startswith(
        "lambda(x: f32[2]) -> f32[2]"
    )
