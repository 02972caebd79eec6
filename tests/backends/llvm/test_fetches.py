"""Which loop fetches the rows of a large array, and what the kernels' text fetches."""

import re

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import lax, nn, passes
from fgrad.backends.llvm import emit, fetches, late_tiles, module, product
from fgrad.records import replace


def kernel_of(function, *shape):
    """The first kernel of a function of an array of this shape."""
    plan = passes.plan(fgrad.make_ir(function)(fnp.zeros(shape)), module.host_target())
    return plan.steps[0]


def fetchers(kernel):
    with kernel.space:
        return fetches.fetchers(kernel.body)


def functions_called(loop):
    return {n.op for s in loop.body if hasattr(s, "expr") for n in fetches.scalar.walk(s.expr)}


def centred(x):
    return x - fnp.mean(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("function, op", [
    (nn.softmax, "exp"), (lambda x: nn.logsumexp(x, axis=-1), "exp"),
    (lambda x: fnp.sum(fnp.tanh(centred(x)), axis=-1), "tanh")])
def test_rows_are_fetched_by_the_loop_that_computes_most(function, op):
    [(_, row)] = fetched = fetchers(kernel_of(function, 512, 1024))
    first, fetcher = fetched[_, row]
    assert first is not fetcher and op in functions_called(fetcher)
    assert op not in functions_called(first)


def test_a_loop_that_stores_fetches_only_what_no_other_reads():
    [(_, fetcher)] = fetchers(kernel_of(
        lambda x: fnp.exp(x / fnp.sum(x, axis=-1, keepdims=True)), 512, 1024)).values()
    assert fetcher.kind == "reduce"


@pytest.mark.parametrize("function, shape", [
    (fnp.exp, (512, 1024)),                           # one loop reads each row
    (nn.softmax, (16, 1024))])                        # the cache holds the array
def test_other_rows_have_no_fetcher(function, shape):
    assert not fetchers(kernel_of(function, *shape))


def distances(function, *shape):
    """How many bytes behind what it reads a kernel fetches, for each of its loops that does."""
    fn, _ = emit.function("k", kernel_of(function, *shape))
    text = "\n".join(fn.lines)
    behind = dict(re.findall(r"(%\S+) = getelementptr inbounds i8, ptr \S+, i64 (\d+)", text))
    loops = [re.findall(r"@llvm.prefetch.p0\(ptr (%\S+),", part)
             for part in re.split(r"^body\.\d+:", text, flags=re.M)]
    return [min(int(behind[p]) for p in fetched) for fetched in loops if fetched]


@pytest.mark.parametrize("columns, expected", [
    (512, [6144]), (1024, [6144]), (8192, [6144, 32768]), (1 << 17, [6144, 6144])])
def test_a_page_or_a_row_is_fetched_ahead(columns, expected):
    def of_powers(x):
        return nn.logsumexp(x, axis=-1)
    assert distances(of_powers, max(8, (1 << 19) // columns), columns) == expected


def test_how_large_an_array_must_be_is_asked_when_code_is_written(monkeypatch):
    """So that tests may lower it."""
    def of_powers(x):
        return nn.logsumexp(x, axis=-1)
    assert distances(of_powers, 16, 1024) == []
    monkeypatch.setattr(fetches, "LARGE", 64)
    assert distances(of_powers, 16, 1024) == [6144]


@pytest.mark.parametrize("columns, expected", [(1024, [True]), (8192, [True, False])])
def test_what_the_first_cache_loses_unread_is_fetched_into_the_second(columns, expected):
    rows = (1 << 19) // columns
    fn, _ = emit.function("k", kernel_of(lambda x: nn.logsumexp(x, axis=-1), rows, columns))
    loops = re.split(r"^body\.\d+:", "\n".join(fn.lines), flags=re.M)
    places = [set(re.findall(r"@llvm.prefetch.p0\(ptr \S+, i32 0, i32 (\d)", part))
              for part in loops]
    assert [found == {"3"} for found in places if found] == expected


@pytest.mark.parametrize("function, beside", [(lambda x: fnp.max(x, axis=1), 8), (nn.softmax, 4)])
def test_of_short_rows_that_run_at_once_all_of_the_next_are_fetched_in_order(function, beside):
    """Every vector of a row stands for one of the `beside` rows that follow."""
    lanes = module.host_target().vector_bytes // 4
    fn, _ = emit.function("k", kernel_of(function, 1 << 12, 8 * lanes))
    text = "\n".join(fn.lines)
    group = beside * 8 * lanes * 4
    ahead = -(-4096 // group) * group
    places = dict(re.findall(r"(%\S+) = getelementptr inbounds float, ptr (%\S+, i64 \S+)", text))
    loops = [re.findall(rf"getelementptr inbounds i8, ptr (%\S+), i64 {ahead}$", part, flags=re.M)
             for part in re.split(r"^body\.\d+:", text, flags=re.M)]
    assert any(loops)
    for first, *others in filter(None, loops):
        _, step = places[first].split(", i64 ")
        assert re.search(rf"{step} = mul nsw i64 %i.\d+, {beside}$", text, flags=re.M)
        offsets = [places[name].removeprefix(f"{first}, i64 ") for name in others[:beside - 1]]
        wide = int(offsets[0])                             # some loops have vectors of four
        assert wide in (lanes, 2 * lanes, 4 * lanes)
        assert offsets == [str(k * wide) for k in range(1, beside)]


def filtered(channels):
    """A filter of 3×3 for each channel, and its weights' gradient."""
    def convolve(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=channels,
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def gradient(x, w, ct):
        return fgrad.vjp(lambda w: convolve(x, w), w)[1](ct)
    image, weights = (4096 // channels, 20, 20, channels), (3, 3, 1, channels)
    return (convolve, image, weights), (gradient, image, weights, image)


def rows_fetched(function, *shapes):
    """How far behind what it reads each of a program's loops fetches rows."""
    plan = passes.plan(fgrad.make_ir(function)(*map(fnp.zeros, shapes)), module.host_target())
    found = []
    for kernel in plan.steps:
        with kernel.space:
            found += [list(fetches.rows_ahead(loop).values())
                      for loop in fetches.vector_loops(kernel.body)]
    return [rows for rows in found if rows]


def test_pixels_that_a_window_has_not_seen_are_fetched():
    """Four pixels at once: the next four of the last of the rows that a filter covers."""
    forward, gradient = filtered(128)
    assert [6144] * 4 in rows_fetched(*forward)
    assert [6144] * 8 in rows_fetched(*gradient)           # and of the cotangent


@pytest.mark.parametrize("program", [
    filtered(1024)[0],                                     # the processor sees streams of 4 KB
    (lambda x: fnp.sum(fnp.tanh(x), axis=0), (8192, 128)),           # each row is read once
    (lambda x: x[1:-1, 1:-1] + x[2:, 1:-1] + x[1:-1, 2:], (99, 99, 128)),      # and of little work
    (lambda x: fnp.tanh(x[1:] - x[:-1]), (9999, 128))])    # rows that lie behind each other
def test_no_rows_are_fetched_that_the_processor_fetches(program):
    assert not rows_fetched(*program)


def test_rows_of_a_large_array_are_fetched_beside_a_scratch_row():
    x = np.linspace(-1, 1, 512 * 1024, dtype="f4").reshape(512, 1024)
    powers = np.exp(x)
    np.testing.assert_allclose(fgrad.jit(nn.softmax)(x),
                               powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


def beside_tiles(target, *shape):
    """{(is it for a store, bytes behind)} of what the step of an optimizer behind the gradient of
    a weight of this shape fetches, beside tiles.
    """
    def step(w, m, x, g):
        m = 0.9 * m + x.T @ g
        return w - 0.1 * m, m
    rows, columns = shape
    arrays = fnp.zeros(shape), fnp.zeros(shape), fnp.zeros((64, rows)), fnp.zeros((64, columns))
    plan = passes.plan(fgrad.make_ir(step)(*arrays), target)
    [(kernel, statement)] = [(k, s) for k in plan.steps for s in getattr(k, "body", [])
                             if isinstance(s, product.Contract)]
    made, _ = product.emitted("k", kernel, statement, target)
    text = made.functions["k"]
    behind = dict(re.findall(r"(%\S+) = getelementptr inbounds i8, ptr \S+, i64 (\d+)", text))
    found = re.findall(r"@llvm.prefetch.p0\(ptr (%\S+), i32 (\d)", text)
    return {(store == "1", int(behind[place])) for place, store in found if place in behind}


def lines(first):
    """Places of the lines of a vector, the first of which is so many bytes behind."""
    return set(range(first, first + module.host_target().vector_bytes, 64))


@pytest.mark.parametrize("shape, slow, expected", [
    ((1024, 512), False, {(store, n) for store in (False, True) for n in lines(6144)}),
    ((1024, 4096), True, set()),                           # each row of tiles is in pieces
    ((1024, 256), True, {(False, n) for n in lines(1024)}),         # rows wait for the next
    ((32 << 10, 256), True, {(store, n) for store in (False, True) for n in lines(1024)})])
def test_beside_tiles_a_processor_with_a_slow_third_cache_fetches_little(
        monkeypatch, shape, slow, expected):
    monkeypatch.setattr(late_tiles, "SPARE", -99)          # also where registers are few
    target = replace(module.host_target(), slow_third=slow, threads=1)
    assert beside_tiles(target, *shape) == expected
