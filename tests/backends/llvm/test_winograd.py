"""Windows by Winograd's algorithms against plain sums: axes, windows, gradients, specials."""

import functools

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import passes
from fgrad.backends import base
from fgrad.backends.llvm import contract, module, winograd
from fgrad.backends.llvm.contract import plan
from fgrad.backends.llvm.contract_plan import Product
from fgrad.backends.llvm.host import HOST
from fgrad.backends.llvm.operands import Strided
from fgrad.backends.llvm.tiles import Machine
from fgrad.backends.llvm.winograd import LONGEST, SIDE, Windows, algorithm
from fgrad.backends.llvm.winograd_emit import WindowWriter
from fgrad.convolution import conv_general_dilated
from fgrad.loop import Kernel
from fgrad.records import replace
from tests.backends.llvm.test_contract import other_machine, whole
from tests.tolerance import assert_close

LAYOUT = {1: ("NHC", "HIO", "NHC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


@pytest.fixture
def always(monkeypatch):
    """Wherever there are windows, they are brought to points."""
    monkeypatch.setattr(winograd, "part_cycles", lambda p: 0)
    contract.plan.cache_clear()
    yield
    contract.plan.cache_clear()


def draw(*shape, dtype="float32", seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def convolved(padding, x, w):
    axes = np.ndim(x) - 2
    return conv_general_dilated(x, w, (1,) * axes, padding, dimension_numbers=LAYOUT[axes])


def of_images(padding, x, w, ct):
    return fgrad.vjp(lambda x: convolved(padding, x, w), x)[1](ct)[0]


def of_kernel(padding, x, w, ct):
    """The gradient of the kernel, and that of a bias."""
    (gradient,) = fgrad.vjp(lambda w: convolved(padding, x, w), w)[1](ct)
    return gradient, fnp.sum(ct, axis=tuple(range(np.ndim(x) - 1)))


def planned(function, *args):
    """The Plan of a function on the CPU, past all caches."""
    types = [fgrad.ArrayType(a.dtype.name, a.shape) for a in args]
    return passes.plan(fgrad.make_ir(function)(*types), module.host_target())


def ways(function, *args):
    """Per product of a function, whether its windows are brought to points."""
    return ["Winograd" in module.described(step) for step in planned(function, *args).steps
            if isinstance(step, Kernel) and module.described(step)]


def compiled(function, *args):
    """What a function gives, compiled past all caches; its windows are brought to points."""
    assert any(ways(function, *args)) or HOST.vector_bytes < 32
    executable = base.find("cpu").compile(planned(function, *args), "cpu")
    return [np.asarray(x) for x in executable([fnp.array(a) for a in args])]


@pytest.mark.parametrize("stride", range(1, 4))
@pytest.mark.parametrize("taps", range(2, LONGEST + 1))
def test_sums_of_windows_are_fewer_products_of_sums(taps, stride):
    b, g, a = (np.array(m, float) for m in algorithm(taps, stride))
    window, images = draw(taps, dtype="float64"), draw(taps + stride, dtype="float64")
    want = [images[k:k + taps] @ window for k in (0, stride)]
    assert np.allclose(a @ ((g @ window) * (b @ images)), want)
    assert len(b) < SIDE * taps or taps <= stride


SHAPES = [                                       # images, size, channels, columns, window, axes
    (2, 8, 16, 32, 3, 2), (3, 7, 32, 24, 3, 2), (1, 9, 17, 33, 2, 2), (2, 5, 8, 9, 4, 2),
    (1, 11, 24, 70, 5, 2), (1, 9, 8, 16, 7, 2), (4, 6, 40, 8, 6, 2), (1, 3, 64, 130, 3, 2),
    (5, 13, 16, 20, 3, 1), (1, 30, 33, 16, 5, 1), (2, 4, 16, 8, 3, 3), (1, 5, 8, 24, 2, 3)]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("count, size, channels, columns, taps, axes", SHAPES)
def test_convolutions_and_their_gradients_are_plain_sums(always, padding, count, size, channels,
                                                         columns, taps, axes):
    x = draw(count, *[size + (padding == "VALID") * (taps - 1)] * axes, channels)
    w, ct = draw(*[taps] * axes, channels, columns), draw(count, *[size] * axes, columns)
    wide = [fnp.array(a.astype("float64")) for a in (x, w, ct)]

    def check(function, *args, length):
        want = function(padding, *[wide[n] for n in args])
        found = compiled(functools.partial(function, padding), *[(x, w, ct)[n] for n in args])
        for a, b in zip(found, want if isinstance(want, tuple) else (want,)):
            assert_close(a, np.asarray(b).astype("float32"), length=length)
    check(convolved, 0, 1, length=w[..., 0].size)
    check(of_images, 0, 1, 2, length=taps ** axes * columns)
    check(of_kernel, 0, 1, 2, length=ct[..., 0].size)


def test_numbers_of_64_bits_too(always):
    x, w = draw(2, 7, 6, 16, dtype="float64"), draw(3, 3, 16, 24, dtype="float64")
    (found,) = compiled(functools.partial(convolved, "SAME"), x, w)
    assert_close(found, np.asarray(convolved("SAME", x, w)), length=144)


@pytest.mark.parametrize("size", [6, 7])
def test_what_follows_a_sum_and_sums_over_all_places(always, size):
    def function(x, w, bias):
        y = convolved("SAME", x, w)
        z = fnp.tanh(y + bias)
        return z, fnp.sum(z, axis=(0, 1, 2)), fnp.sum(z * y, axis=(0, 1, 2))
    args = draw(3, size, size, 16), draw(3, 3, 16, 40), draw(40)
    want = function(*[fnp.array(a.astype("float64")) for a in args])
    for found, wide in zip(compiled(function, *args), want):
        assert_close(found, np.asarray(wide).astype("float32"), length=144)


@pytest.mark.parametrize("columns", [16, 40])
def test_sums_over_the_gradient_of_a_kernel(always, columns):
    def function(x, w, ct):
        g, _ = of_kernel("SAME", x, w, ct)
        return g * w, fnp.sum(g * w, axis=(0, 1, 2)), fnp.sum(g, axis=(0, 1, 2))
    args = draw(3, 8, 8, 16), draw(3, 3, 16, columns), draw(3, 8, 8, columns)
    want = function(*[fnp.array(a.astype("float64")) for a in args])
    for found, wide in zip(compiled(function, *args), want):
        assert_close(found, np.asarray(wide).astype("float32"), length=3 * 64 * 144)


def special(x, *values):
    """x with these values in some places."""
    x = x.copy()
    x.reshape(-1)[np.random.default_rng(1).permutation(x.size)[:len(values)]] = values
    return x


@pytest.mark.parametrize("where", ["x", "w", "ct", "all"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_infinities_and_nans_are_where_plain_sums_have_them(always, padding, where):
    size = 5 if padding == "SAME" else 7
    given = {"x": draw(2, size, size, 16), "w": draw(3, 3, 16, 24), "ct": draw(2, 5, 5, 24)}
    for name in given:
        if where in (name, "all"):
            given[name] = special(given[name], np.inf, -np.inf, np.nan)
    x, w, ct = given.values()
    with np.errstate(invalid="ignore"):
        for function, *args in ((convolved, x, w), (of_images, x, w, ct), (of_kernel, x, w, ct)):
            want = function(padding, *[fnp.array(a.astype("float64")) for a in args])
            found = compiled(functools.partial(function, padding), *args)
            for a, b in zip(found, want if isinstance(want, tuple) else (want,)):
                assert_close(a, np.asarray(b).astype("float32"), length=450)


def test_large_numbers_overflow_only_where_plain_sums_do(always):
    x, w = np.full((1, 8, 8, 8), 3e38, "float32"), np.full((3, 3, 8, 8), 1e-3, "float32")
    (found,) = compiled(functools.partial(convolved, "SAME"), x, w)
    want = np.asarray(convolved("SAME", *[fnp.array(a.astype("float64")) for a in (x, w)]))
    assert np.isfinite(found).all()
    assert_close(found / 1e38, (want / 1e38).astype("float32"), length=72)


def test_a_sum_is_the_same_on_any_number_of_threads(always):
    x, w = draw(4, 10, 10, 16), draw(3, 3, 16, 32)
    function = functools.partial(convolved, "SAME")
    first, *others = [one(function, threads, x, w) for threads in (1, 2, 3)]
    for other in others:
        np.testing.assert_array_equal(first, other)


def one(function, threads, *args):
    """What a function gives when it is compiled for so many threads."""
    steps = planned(function, *args)
    with pytest.MonkeyPatch.context() as patch:
        target = module.host_target()
        patch.setattr(module, "host_target", lambda: replace(target, threads=threads))
        executable = base.find("cpu").compile(steps, "cpu")
    return np.asarray(executable([fnp.array(a) for a in args])[0])


def chosen(outer, size, channels, columns, taps=3, turned=False, bytes=64, threads=1):
    """Whether the cheapest plan of a convolution brings its windows to points."""
    windows = Windows(outer, (size, size), (taps, taps), channels, turned, (1, 1), (1, 1))
    rows, steps = outer * size * size, taps * taps * channels
    rows, steps = (steps, rows) if turned else (rows, steps)
    made = plan(rows, columns, steps, "float", Strided(steps, 1), Strided(columns, 1),
                machine=Machine(bytes, 32), out=Strided(columns, 1), threads=threads,
                windows=windows)
    return made.windows is not None


def test_windows_are_brought_to_points_where_that_is_faster():
    assert chosen(32, 28, 64, 64) and chosen(32, 28, 64, 64, turned=True)
    assert chosen(16, 14, 32, 64, 5, threads=2) and chosen(64, 8, 128, 128, threads=2)
    assert not chosen(1, 7, 512, 512) and not chosen(1, 7, 512, 512, turned=True)
    assert not chosen(32, 28, 4, 64) and not chosen(32, 28, 64, 4)


STEPS = [(1, 2, 3), (1, 3, 3), (2, 1, 3), (2, 1, 5), (3, 1, 4), (2, 1, 7)]    # stride, gaps, window


@pytest.mark.parametrize("size", [8, 9, 11])
@pytest.mark.parametrize("stride, dilation, taps", STEPS)
def test_windows_with_strides_and_gaps(always, stride, dilation, taps, size):
    def function(x, w):
        return conv_general_dilated(x, w, (stride, 1), "SAME", None, (1, dilation), LAYOUT[2])

    def gradient(x, w, ct):
        return fgrad.vjp(lambda w: function(x, w), w)[1](ct)[0]
    x, w = draw(2, size, size, 16), draw(taps, taps, 16, 24)
    wide = [fnp.array(a.astype("float64")) for a in (x, w)]
    want = function(*wide)
    assert_close(compiled(function, x, w)[0], np.asarray(want).astype("float32"), length=800)
    ct = draw(*want.shape)
    want = gradient(*wide, fnp.array(ct.astype("float64")))
    found = compiled(gradient, x, w, ct)[0]
    assert_close(found, np.asarray(want).astype("float32"), length=ct[..., 0].size)


def test_other_operands_are_no_windows(always):
    x, w = draw(2, 9, 9, 16), draw(3, 3, 16, 32)

    def strided(x, w):                           # with gaps, too
        return conv_general_dilated(x, w, (2, 2), "SAME", None, (3, 3), LAYOUT[2])
    assert not any(ways(strided, x, w))
    assert not any(ways(lambda x, w: x.reshape(-1, 144) @ w.reshape(144, 32), x, w))


class Images(Product):
    """Windows over arrays [image, row, column, channel] without a border."""

    def __init__(self, windows, columns):
        self.windows, self.columns = windows, columns

    def pointer(self, fn, place, at=0):
        return fn.gep("float", fn.load("ptr", fn.gep("ptr", "%buffers", place)), at)

    def workspace(self, fn):
        return self.pointer(fn, 3)

    def b_pointer(self, fn, b):
        return self.pointer(fn, 1)

    def out_pointer(self, fn, b):
        return self.pointer(fn, 2)

    def window_places(self, fn, outer, firsts, zeros):
        w = self.windows
        height, width = (n + r - 1 for n, r in zip(w.sizes, w.taps))
        for row, column in np.ndindex(w.elements):
            at = fn.add(fn.mul(outer, height), fn.add(firsts[0], row))
            at = fn.add(fn.mul(at, width), fn.add(firsts[1], column))
            yield self.pointer(fn, 0, fn.mul(at, w.channels))

    def a_element(self, fn, b, i, k):
        return fn.load("float", self.pointer(fn, 0))


@pytest.mark.parametrize("triple, bytes, registers", [
    ("x86_64-unknown-linux-gnu", 16, 16), ("aarch64-unknown-linux-gnu", 16, 32),
    ("x86_64-unknown-linux-gnu", 32, 16), ("x86_64-unknown-linux-gnu", 64, 32)])
@pytest.mark.parametrize("turned", [False, True])
def test_plans_for_other_machines_compile(always, triple, bytes, registers, turned):
    windows = Windows(2, (8, 6), (3, 2), 16, turned, (1, 1), (1, 1))
    rows = steps = 96
    made = plan(rows, 32, steps, "float", Strided(steps, 1), Strided(32, 1), out=Strided(32, 1),
                machine=Machine(bytes, registers), windows=windows)
    emitted = WindowWriter(made, Images(windows, 32), "product").emitted()
    text = whole(emitted.functions.values(), triple)
    assert "product" in other_machine(triple, bytes)(text)
