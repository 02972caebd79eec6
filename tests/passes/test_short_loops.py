"""Short loops are written out, where the loop around them can have the vectors then."""

import re

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import grad, jit, lax, passes, vmap
from fgrad.interpreters.call import inline
from fgrad.interpreters.stage import stage
from fgrad.passes.target import Target
from fgrad.types import ArrayType
from tests.passes.checking import assert_plan_agrees

VECTORS = Target(vector_bytes=64)


def softmax(x):
    e = fnp.exp(x - fnp.max(x, axis=1, keepdims=True))
    return e / fnp.sum(e, axis=1, keepdims=True)


def turned(q, v):
    w, x, y, z = q
    rows = [[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]
    return fnp.array(rows) @ v


def colours(x):
    """Three planes computed differently, put together, and the mean and largest of each."""
    y = fnp.stack([x[0] * x[1], x[1] - x[2], fnp.minimum(x[0], x[2])], axis=-1) * fnp.arange(3)
    return y, y.mean((0, 1)), y.max((0, 1))


def by_a_table(x):
    """Numbers that stand in a table at what is computed for each plane."""
    table = x[0, 0] * x[1, 1, 0]
    at = fnp.stack([fnp.floor(x[0] * 9), fnp.floor(x[1] * x[2] * 9)], axis=-1).astype("int32")
    y = table[fnp.clip(at, 0, len(table) - 1)]
    return y, y.sum((0, 1))


WRITTEN_OUT = {
    "lengths": (lambda x: fnp.sqrt(fnp.sum(x * x, axis=1)), (40, 3)),
    "unit vectors": (lambda x: x / fnp.linalg.norm(x, axis=1, keepdims=True), (40, 3)),
    "a softmax of few": (softmax, (40, 4)),
    "a stack": (lambda x: fnp.stack([x, x * x], axis=1), (40,)),
    "a stack of five": (lambda x: fnp.stack([x * k for k in range(5)], axis=1), (40,)),
    "a stack of six": (lambda x: fnp.stack([x * k for k in range(6)], axis=1), (40,)),
    "chosen by a number": (lambda x: fnp.where(fnp.arange(2) == 0, (x * fnp.arange(3)[:, None] + 1)
                                               .T[..., None] ** 3, x[:, None, None]), (40,)),
    "a stack of eight": (lambda x: fnp.stack([x * k for k in range(8)], axis=1), (70,)),
    "fours in turns": (lambda x: fnp.stack([x * k for k in range(4)], axis=1), (40, 4)),
    "products of vectors": (lambda x: fnp.cross(x, x * x), (40, 3)),
    "rotations": (lambda x: vmap(turned)(x[:, :4], x[:, 1:]), (40, 4)),
    "distances": (lambda x: fnp.sum((x[:, None] - x) ** 2, axis=2), (20, 3)),
    "means of squares": (lambda x: x.reshape(7, 2, 20, 2).mean((1, 3)), (14, 40)),
    "a running sum": (lambda x: fnp.cumsum(x[:, :, None] * x[:, None], axis=2), (12, 3)),
    "turned rows": (lambda x: x[::-1] - x, (40, 3)),
    "multiples": (lambda x: fnp.sum(fnp.floor(x[:, None] * fnp.arange(8)), axis=1), (40,)),
    "largest and where": (lambda x: (x.max(1), x.argmax(1)), (40, 4)),
    "largest of both parts": (lambda x: fnp.concatenate([x, x * x], 1).max(2), (5, 40, 2)),
}
SUMMED = {
    "planes and their means": (colours, (3, 12, 40)),
    "planes by a table": (by_a_table, (3, 12, 40)),
    "few in a plane": (colours, (3, 2, 9)),
}
KEPT = {
    "rows of five": (lambda x: fnp.sum(x * x, axis=1), (40, 5)),
    "rows of eight": (lambda x: fnp.tanh(x + x[0]), (42, 8)),
    "few rows": (lambda x: fnp.sum(x * x, axis=1), (3, 3)),
    "columns far from each other": (lambda x: fnp.sum(x[:, :3] ** 2, axis=1), (40, 30)),
    "one of three columns": (
        lambda x: fnp.pad(x, ((1, 1), (0, 0))) * fnp.arange(3, dtype="float32"), (40, 3)),
    "places known at run time": (lambda x: x[fnp.argmax(x, axis=1)][:, :2], (40, 4)),
}


def loops(function, *shapes, dtype="float32"):
    """The kernels of a function, as text, after its Plan has been compared with NumPy's rules."""
    types = [ArrayType(dtype, shape) for shape in shapes]
    return str(assert_plan_agrees(inline(stage(function, types).program), VECTORS))


@pytest.mark.parametrize("what", WRITTEN_OUT)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_loops_of_few_are_written_out(what, dtype):
    function, shape = WRITTEN_OUT[what]
    text = loops(function, shape, dtype=dtype)
    if what != "a running sum":
        assert not re.search(r"in 0\.\.[23468]\b", text), text


@pytest.mark.parametrize("what", SUMMED)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_what_is_added_up_of_all_planes_has_accumulators(what, dtype):
    """The loop over the planes had the vectors, of which it filled two or three lanes."""
    function, shape = SUMMED[what]
    text = loops(function, shape, dtype=dtype)
    (loop,) = re.findall(r"reduce \w+ in 0..\d+ \(\d+ lanes.*?\n\n", text + "\n\n", re.S)
    assert len(re.findall(r"total\d* (?:\+|max)= ", loop)) in (2, 6)


@pytest.mark.parametrize("what", KEPT)
def test_others_are_not(what):
    function, shape = KEPT[what]
    text = loops(function, shape)
    assert re.search(r"in 0\.\.(2|3|5|42)\b", text), text


@pytest.mark.parametrize("what", {**WRITTEN_OUT, **SUMMED, **KEPT})
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8"])
def test_compiled_code_gives_what_numpy_gives(what, dtype):
    function, shape = {**WRITTEN_OUT, **SUMMED, **KEPT}[what]
    x = fnp.asarray(np.random.default_rng(1).integers(1, 5, shape)).astype(dtype)
    got, want = jit(function, device="cpu")(x), function(x)
    for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
        assert a.dtype == b.dtype
        a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
        np.testing.assert_allclose(a, b, rtol=4e-3 if dtype == "float16" else 2e-6)


@pytest.mark.parametrize("what", {**WRITTEN_OUT, **SUMMED})
def test_gradients_agree(what):
    function, shape = {**WRITTEN_OUT, **SUMMED}[what]

    def loss(x):
        out = function(x)
        return fnp.sum(fnp.sin(out[0] if isinstance(out, tuple) else out))
    x = fnp.asarray(np.random.default_rng(2).uniform(0.5, 1.5, shape))
    np.testing.assert_allclose(jit(grad(loss), device="cpu")(x), grad(loss)(x), rtol=1e-9,
                               atol=1e-12)


def test_nothing_changes_on_a_gpu():
    program = stage(WRITTEN_OUT["lengths"][0], [ArrayType("float32", (40, 3))]).program
    assert "0..3" in str(passes.plan(inline(program), Target(kind="gpu", parts=8)))


def test_a_row_that_is_written_out_is_no_array():
    assert "local" in loops(softmax, (40, 9)) and "local" not in loops(softmax, (40, 4))


def test_sums_of_one_value_are_none():
    """A running sum over an axis of one had no vectors: it took five times as long."""
    text = loops(lambda x: fnp.cumsum(x, axis=1) + lax.cummax(x, axis=1), (40, 1, 100))
    assert "acc" not in text and "lanes" in text, text


def test_what_has_no_name_gets_one():
    """The second and third copies of what the user did not name were None2 and None3."""
    def f(q, g):
        return (fnp.eye(4) - q) @ (g * g)
    program = inline(stage(f, [ArrayType(np.dtype("f4"), (4, 4))] * 2).program)
    assert "None" not in str(assert_plan_agrees(program, VECTORS))


def test_a_row_that_is_filled_for_a_loop_behind_is_not_written_out():
    """The loop that searched it was kept, and what stored it was not."""
    rng = np.random.default_rng(0)
    x, best = rng.standard_normal((4, 70, 8)).astype("f"), rng.standard_normal(4).astype("f")
    c, k = rng.integers(0, 8, (4, 70)).astype("i4"), np.array([5, 6, 7, 8], "i4")

    def place(x, c, best, k):
        now = fnp.take_along_axis(x, c[:, None], 1)
        far, columns = x - now, fnp.arange(8)
        good = (now > 0) & (columns < k) & (columns != c[:, None]) & (now.sum() / 2 + far < best)
        return fnp.argmin(fnp.where(good, far, 1e4).ravel())
    f = vmap(place)
    np.testing.assert_array_equal(jit(f, device="cpu")(x, c, best, k),
                                  f(*map(fnp.asarray, (x, c, best, k))))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
@pytest.mark.parametrize("over, columns", [(fnp.sum, 3), (fnp.max, 3), (fnp.sum, 2), (fnp.sum, 4)])
@pytest.mark.parametrize("n", [600, 617])
def test_columns_of_a_few_are_added_to_in_whole_vectors(over, columns, n, dtype):
    """Light of some lamps at many places: each place had lanes of its own, three of them in use."""
    def lit(x, lamps, colours):
        way = lamps[:, None] - x
        square = fnp.sum(way * way, -1) + 1
        near = fnp.maximum(fnp.sum(way * x, -1), 0) * square
        return over((x * near[..., None] + square[..., None]) * colours[:, None], 0)
    args = [(np.random.default_rng(k).normal(size=shape) * 3).astype(dtype)
            for k, shape in enumerate([(n, columns), (6, columns), (6, columns)])]
    program = inline(stage(lit, [ArrayType(x.dtype, x.shape) for x in args]).program)
    plan = str(assert_plan_agrees(program, VECTORS))
    if dtype.startswith("float") and dtype != "float16":
        assert re.search(rf"\w\[\w,{columns - 1}\] (\+|max)= ", plan), plan
    got, want = jit(lit)(*args), lit(*[x.astype("f8") if dtype[0] == "f" else x for x in args])
    scale = np.abs(np.asarray(want)).max()
    rounding = {"float16": 3e-2, "float32": 1e-5}.get(dtype, 1e-12)
    np.testing.assert_allclose(np.asarray(got, "f8"), want, atol=rounding * scale)
