"""Generated OpenCL C against NumPy's rules: operations, dtypes, loop forms, and the text itself."""

import numpy as np
import pytest

from fgrad import index, ops, scalar
from fgrad.backends.opencl import backend, emit
from fgrad.backends.opencl.instructions import Instructions, number
from fgrad.backends.opencl.names import Names
from fgrad.core import PRIMITIVES, Array
from fgrad.passes.target import Target
from fgrad.types import (
    BF16, BOOL, DTYPES, F16, F32, F64, I8, I16, I32, I64, SCALARS, U8, computed)
from tests.backends.opencl.running import GPU, check, listed, planned
from tests.ops.examples import EXAMPLES, numbers


def in_turn(name, k):
    """A dtype for the k-th case of an operation: all of them have their turn."""
    own = PRIMITIVES["max"].dtypes if name == "select" else PRIMITIVES[name].dtypes
    known = [d for d in own if d in DTYPES] or own[:1]
    return known[(k + len(name)) % len(known)]


def drawn(names):
    """(operation, case, arguments) for every example of these operations."""
    for name in names:
        for k, case in enumerate(EXAMPLES[name]):
            args = case.draw(in_turn(name, k), seed=k)
            empty = name in ("argmax", "argmin") and args[0].shape[case.params["axis"]] == 0
            if not empty:
                yield PRIMITIVES[name], case, args


def together(examples):
    """(one function of all array arguments that applies every example, the arguments)."""
    arrays = [a for _, _, args in examples for a in args if a.__class__ not in SCALARS]

    def function(*flat):
        rest, out = iter(flat), []
        for op, case, args in examples:
            own = [a if a.__class__ in SCALARS else next(rest) for a in args]
            out += listed(op(*own, **case.params))
        return tuple(out)
    return function, arrays


GROUPS = [sorted(EXAMPLES)[k::8] for k in range(8)]


@pytest.mark.parametrize("form", ["own", "gpu"])
@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_every_operation_agrees_with_its_numpy_rule(device, names, form, monkeypatch):
    if form == "gpu":
        monkeypatch.setattr(backend, "target_of", lambda record: GPU)
    examples = list(drawn(names))
    if not device.record.fp64:
        examples = [e for e in examples if all(getattr(a, "dtype", None) != F64 for a in e[2])]
    function, arrays = together(examples)
    check(device, function, *arrays, length=4, slack=4)


# ---------------------------------------------------------------------------- instructions

SPECIAL = {"f": [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -2.5, 3e4],
           "i": [0, 1, -1, 2, -2, 7, -7, 100, -100], "u": [0, 1, 2, 7, 100, 200],
           "b": [False, True]}
COMPARISONS = ["max", "min", "eq", "ne", "lt", "le", "gt", "ge"]
ARITHMETIC = {"f": ["add", "sub", "mul", "div"], "b": ["and", "or", "xor"],
              "u": ["add", "sub", "mul", "div", "rem", "shl", "shr"],
              "i": ["add", "sub", "mul", "div", "rem", "and", "or", "xor"]}


def special(dtype):
    """Two arrays of 67 elements in which special values meet, extremes of integers among them."""
    values = list(SPECIAL[dtype.kind])
    if dtype.kind in "iu":
        values += [np.iinfo(dtype).min, np.iinfo(dtype).max]
    rng = np.random.default_rng(5)
    return [numbers(rng.choice(np.array(values, computed(dtype)), 67), dtype) for _ in range(2)]


def dtypes_of(device):
    return [d for d in DTYPES if d != F64 or device.record.fp64]


def test_arithmetic_of_special_values_agrees_in_every_dtype(device):
    arrays, rows = [], []
    for dtype in dtypes_of(device):
        names = [n for n in COMPARISONS + ARITHMETIC[dtype.kind] if dtype in PRIMITIVES[n].dtypes]
        rows.append((len(arrays), names))
        arrays += special(dtype)

    def function(*flat):
        return tuple(PRIMITIVES[n](flat[k], flat[k + 1]) for k, names in rows for n in names)
    check(device, function, *arrays)


def test_elementary_functions_keep_lanes_apart_beside_special_values(device):
    x = special(F32)[0]
    x[::3] = np.linspace(-4, 4, len(x[::3]))
    x[1::5] = 1e-6
    names = "sin cos tan exp expm1 tanh atan logistic erf sign abs is_finite".split()
    check(device, lambda x: tuple(PRIMITIVES[n](x) for n in names), x, slack=4)


def test_pow_and_remainder_of_doubles_keep_lanes_apart(device):
    if not device.record.fp64:
        pytest.skip("the device has no doubles")
    x = np.array([0.89, 1.40515572, 3.32, 2.57935092, 0.92, 2.07, 0, 0, np.inf])
    y = np.array([2.22, 1.14311231, 3.09, 0.98648487, 1.93, 2.35, 0, 0, np.nan])
    check(device, lambda x, y: (ops.pow(x, y), ops.rem(x, y)), x, y, slack=4)


def test_casts_between_all_dtypes(device):
    kinds = dtypes_of(device)
    arrays = [numbers(np.random.default_rng(k).integers(0, 100, 37), d)
              for k, d in enumerate(kinds)]
    check(device, lambda *xs: tuple(ops.convert(x, dtype=d) for x in xs for d in kinds), *arrays)


def test_a_float_outside_of_the_integers_saturates(device):
    x = np.array([1e20, -1e20, np.nan, 300.7, -300.7] * 7, "f4")
    plan, _ = planned(lambda x: tuple(ops.convert(x, dtype=d) for d in (I8, U8, I32)), [x],
                      backend.target_of(device.record))
    small, byte, word = [y.np[:5].tolist() for y in backend.Executable(plan, device)([Array(x)])]
    assert small == [127, -128, 0, 127, -128]
    assert byte == [255, 0, 0, 255, 0]
    assert word == [2**31 - 1, -2**31, 0, 300, -300]


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
def test_f16_and_bf16_are_computed_in_f32_and_rounded_once(device, dtype):
    x = numbers(np.random.default_rng(1).uniform(-3, 3, 67), dtype)
    f = lambda x: ops.add(ops.mul(x, x), ops.div(x, ops.exp(x)))
    plan, _ = planned(f, [x], backend.target_of(device.record))
    (got,) = backend.Executable(plan, device)([x if dtype is BF16 else Array(x)])
    want = f(Array(np.asarray(x).astype("f4"))).np
    assert np.mean(np.asarray(got) == np.asarray(numbers(want, dtype))) > 0.98


# ---------------------------------------------------------------------------- loops

@pytest.mark.parametrize("size", [0, 1, 5, 16, 67])
def test_rows_columns_and_totals_of_odd_sizes(device, size):
    x = np.random.default_rng(size).uniform(-1, 1, (7, size)).astype("f4")

    def function(x):
        m = ops.broadcast(ops.reduce_sum(x, axes=(1,)), shape=x.shape, axes=(1,))
        return (ops.exp(ops.sub(x, m)), ops.reduce_sum(x, axes=(0,)),
                ops.reduce_sum(x, axes=(0, 1)), ops.transpose(x, perm=(1, 0)),
                ops.cumsum(x, axis=1, reverse=False))
    check(device, function, x, length=7 * size + 1)


def test_guards_inside_of_vectors_read_nothing_outside(device):
    x = np.random.default_rng(2).uniform(-1, 1, (9, 41)).astype("f4")
    zero = np.zeros((), "f4")

    def function(x, z):
        wide = ops.pad(ops.exp(x), z, low=(1, 3), high=(2, 1), interior=(0, 1))
        both = ops.concatenate(x, ops.tanh(x), ops.rev(x, axes=(1,)), axis=1)
        return wide, both, ops.reduce_max(both, axes=(1,))
    check(device, function, x, zero, slack=2)


def test_large_sums_are_split_into_parts(device):
    x = np.random.default_rng(3).uniform(-1, 1, (4000, 130)).astype("f4")

    def function(x):
        return ops.reduce_sum(x, axes=(0,)), ops.reduce_sum(x, axes=(0, 1)), ops.exp(x)
    check(device, function, x, length=x.size)


def test_the_form_for_gpus_gives_the_same(device, monkeypatch):
    monkeypatch.setattr(backend, "target_of", lambda record: GPU)
    x = np.random.default_rng(4).uniform(-1, 1, (300, 37)).astype("f4")

    def function(x):
        total = ops.broadcast(ops.reduce_sum(x, axes=(1,)), shape=x.shape, axes=(1,))
        return (ops.sub(x, total), ops.reduce_sum(x, axes=(0,)), ops.reduce_sum(x, axes=(0, 1)),
                ops.dot_general(x, x, lhs="ij", rhs="ik", to="jk"), ops.convert(x, dtype=I16))
    check(device, function, x, length=x.size)


PRODUCTS = [("ij", "jk", "ik"), ("ji", "jk", "ik"), ("ij", "kj", "ik"), ("ji", "kj", "ik"),
            ("ij", "jk", "ki"), ("bij", "bjk", "bik"), ("bji", "bkj", "ibk"), ("ijb", "jk", "bik")]


def test_products_in_all_transpose_forms_with_prologue_and_epilogue(device):
    sizes = {"b": 3, "i": 33, "j": 40, "k": 18}
    rng = np.random.default_rng(6)
    arrays = [rng.uniform(-1, 1, [sizes[c] for c in labels]).astype("f4")
              for row in PRODUCTS for labels in row[:2]]
    arrays.append(rng.uniform(-1, 1, 18).astype("f4"))

    def function(*flat):
        out = []
        for k, (lhs, rhs, to) in enumerate(PRODUCTS):
            p = ops.dot_general(ops.tanh(flat[2 * k]), flat[2 * k + 1], lhs=lhs, rhs=rhs, to=to)
            if to == "ik":
                p = ops.max(ops.add(p, ops.broadcast(flat[-1], shape=p.shape, axes=(0,))), 0.0)
            out.append(p)
        return tuple(out)
    check(device, function, *arrays, length=40)


def test_products_of_integers_and_halves(device):
    rng = np.random.default_rng(7)
    a, b = rng.integers(-9, 9, (20, 30)).astype("i4"), rng.integers(-9, 9, (30, 17)).astype("i4")
    h, g = rng.uniform(-1, 1, (20, 30)).astype(F16), rng.uniform(-1, 1, (30, 17)).astype(F16)

    def function(a, b, h, g):
        return [ops.dot_general(x, y, lhs="ij", rhs="jk", to="ik") for x, y in ((a, b), (h, g))]
    check(device, function, a, b, h, g, length=30)


# ---------------------------------------------------------------------------- the text

def test_names_are_the_users_where_c_allows_them():
    names = Names()
    words = ("hidden", "hidden", "h_relu", "exp", "float4", "b", "N", "NAN", "_", "größe")
    assert [names(w) for w in words] == [
        "hidden", "hidden2", "hRelu", "exp2", "vfloat4", "b2", "N", "vNAN", "v", "gre"]


def test_names_with_numbers_that_c_keeps_for_itself():
    """A variable called half was given no name, for ever: half2, half3, … are types."""
    names = Names()
    assert [names(w) for w in ("half", "float", "W", "W", "W", "half")] == [
        "vhalf2", "vfloat2", "W", "vW2", "vW3", "vhalf3"]


def test_a_kernel_carries_names_and_lines():
    def model(weights):
        return ops.exp(ops.mul(weights, 2.0))
    plan, _ = planned(model, [np.zeros(40, "f4")], Target("cpu", vector_bytes=64), ["weights"])
    text = emit.written("model", plan.steps[0]).text
    assert "weights" in text
    assert "test_emit.py" in text
    assert "exp(" in text and "vload16(" in text


def test_numbers_are_spelled_exactly():
    assert number(0.1, F32) == "0.1f"
    assert number(1, F32, 4) == "(float4)(1.0f)"
    assert number(-np.inf, F32) == "(-(float)INFINITY)"
    assert number(-2**31, I32) == "(int)(-2147483647 - 1)"
    assert number(-2**63, I64) == "(long)(-9223372036854775807L - 1)"
    assert number(True, BOOL, 8) == "(char8)(-1)"


def test_a_maximum_keeps_nan_and_is_written_once():
    write = Instructions()
    assert write.apply("max", ["a", "b"], F32, 1) == "max_f32(a, b)"
    write.apply("max", ["c", "d"], F32, 1)
    assert list(write.used.values()) == [
        "float max_f32(const float x, const float y) { return ((x > y) | (x != x)) ? x : y; }"]


def test_indices_have_64_bits_only_where_a_buffer_is_that_large():
    with index.Space() as space:
        v = space.variable(2**32)
        assert scalar.index_value(index.of(v), I64).dtype == I64
    huge = np.broadcast_to(np.float32(0), (2**16, 2**16))
    plan, _ = planned(ops.exp, [huge], Target("cpu", vector_bytes=64))
    assert "for (long " in emit.written("large", plan.steps[0]).text
    plan, _ = planned(ops.exp, [np.zeros((3, 4), "f4")], Target("cpu", vector_bytes=64))
    assert "long" not in emit.written("small", plan.steps[0]).text
