"""What is called at several places is planned once; the values are those of its equations."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import jit, lax

RNG = np.random.default_rng(0)


def drawn(*shape):
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype("complex64")


def shown(f, *args):
    return fgrad.show(f, *args, stage="schedule", device="cpu")


def assert_close(got, want):
    assert got.shape == want.shape
    assert np.abs(np.asarray(got) - want).max() <= 1e-5 * max(1.0, np.abs(want).max(initial=0))


def three(x, y, z):
    return fnp.fft.fft(x) * fnp.fft.fft(y) * fnp.fft.fft(z)


def test_what_is_called_often_is_planned_once():
    args = [drawn(3, 60) for _ in range(3)]
    text = shown(three, *args)
    assert text.count("run fft") == 3 and text.count("plan fft(") == 1
    (head, *_) = [line for line in text.split("\n") if line.startswith("run fft")]
    assert head.split("│")[1].split() == ["test_calls.py:27", "fft"]
    assert_close(jit(three)(*args), np.prod([np.fft.fft(a) for a in args], axis=0))


def test_a_profile_has_the_lines_of_calls():
    f, args = jit(three), [drawn(64, 256) for _ in range(3)]
    f(*args)
    found = [step for step in f.profile(*args).steps if "/fft" in step.name]
    assert len(found) >= 6 and all(step.where.startswith("test_calls.py:27") for step in found)


def test_what_is_called_twice_is_inlined():
    def two(x, y):
        return fnp.fft.fft(x) * fnp.fft.fft(y)
    x, y = drawn(3, 60), drawn(3, 60)
    assert "run fft" not in shown(two, x, y)
    assert_close(jit(two)(x, y), np.fft.fft(x) * np.fft.fft(y))


def test_what_is_called_twice_is_planned_once_where_that_spares_much():
    """3-D transforms, there and back, of two fields: 2700 ms until they were compiled, for 1500."""
    def turned(x):
        return fnp.fft.irfftn(fnp.fft.rfftn(x) * 0.5, x.shape, axes=(0, 1, 2))
    x = np.asarray(RNG.standard_normal((12, 15, 20)), "float32")
    text = shown(lambda x: turned(fnp.sin(turned(x))), x)
    assert text.count("run fft") == 8 and text.count("plan fft(") == 4
    assert text.count("run rfft") == 2 and text.count("plan rfft(") == 1
    assert_close(jit(lambda x: turned(fnp.sin(turned(x))))(x), np.sin(x / 2) / 2)


def test_roots_are_tables_though_what_reads_them_is_called_in_a_loop():
    def f(x):
        def step(x, _):
            x = fnp.fft.ifft(fnp.fft.fft(fnp.fft.ifft(fnp.fft.fft(x))))
            return fnp.fft.ifft(fnp.fft.fft(x)) * 0.5, x.real.sum()
        return lax.scan(step, x, None, length=3)
    x = drawn(96)
    text = shown(f, x)
    assert text.count("run fft") == 6 and text.count("plan fft(") == 2
    assert "table" in text and "cos" not in text
    end, sums = jit(f)(x)
    assert_close(end, x / 8)
    assert_close(sums, np.array([x.real.sum() / 2 ** k for k in range(3)]))


def test_zeros_are_part_of_what_is_called():
    def f(x, y, z):
        return [fnp.fft.fft(a.astype("complex64")) for a in (x, y, z)]
    args = [RNG.standard_normal(60).astype("float32") for _ in range(3)]
    text = shown(f, *args)
    (head,) = [line for line in text.split("\n") if "plan fft(" in line]
    assert head.count("f32[1,60,1]") == 1                # no imaginary part is given
    for got, a in zip(jit(f)(*args), args):
        assert_close(got, np.fft.fft(a))


def test_parts_that_nobody_wants_are_not_computed():
    def f(x, y, z):
        return [fnp.fft.ifft(a).real for a in (x, y, z)]
    args = [drawn(60) for _ in range(3)]
    (head,) = [line for line in shown(f, *args).split("\n") if "plan fft(" in line]
    assert head.split(" -> ")[1].count("f32") == 1
    for got, a in zip(jit(f)(*args), args):
        assert_close(got, np.fft.ifft(a).real)


def test_results_of_one_call_are_arguments_of_the_next():
    def f(x):
        for _ in range(5):
            x = fnp.fft.fft(x) / 8
        return x
    x, want = drawn(2, 64), None
    want = x
    for _ in range(5):
        want = np.fft.fft(want) / 8
    assert shown(f, x).count("run fft") == 5
    assert_close(jit(f)(x), want)


@pytest.mark.parametrize("n", [9, 16, 31, 45, 77])
@pytest.mark.parametrize("shape,axis", [((3,), 0), ((), 0), ((2, 3), 1)])
def test_all_transforms_are_called(n, shape, axis):
    shape = (*shape[:axis], n, *shape[axis:])

    def f(x):
        for _ in range(3):
            x = fnp.fft.irfft(fnp.fft.rfft(x, axis=axis), n, axis=axis) + fnp.roll(x, 1, axis)
        return x
    x = RNG.standard_normal(shape).astype("float32")
    want = x.astype("float64")
    for _ in range(3):
        want = want + np.roll(want, 1, axis)
    assert_close(jit(f)(x), want)


def test_a_call_in_a_branch_and_in_a_loop_that_ends_when_it_will():
    def f(x, k):
        def going(c):
            return c[1] < k

        def step(c):
            x, n = c
            x = lax.cond(n % 2 == 0, lambda a: fnp.fft.fft(a) / 6, lambda a: fnp.fft.fft(-a) / 6, x)
            return fnp.fft.fft(x) / 6, n + 1
        return lax.while_loop(going, step, (x, 0))[0]
    x = drawn(4, 36)
    want = x
    for n in range(5):
        want = np.fft.fft(np.fft.fft(want * (-1) ** n) / 6) / 6
    assert_close(jit(f)(x, 5), want)
    assert_close(jit(f)(x, 0), x)


def test_derivatives_call_too():
    def f(x):
        return (fnp.abs(three(x, x * 2, x * 3)) ** 2).sum()
    x = drawn(40)
    spectrum = np.fft.fft(x.astype("complex128"))
    g = jit(fgrad.grad(lambda a: f(fnp.array(a[0]) + 1j * a[1])))(np.stack([x.real, x.imag]))
    dz = 36 * 6 * np.abs(spectrum) ** 4 * spectrum
    want = np.fft.ifft(dz) * 40
    got = np.asarray(g)
    assert np.abs(got[0] + 1j * got[1] - want).max() <= 1e-4 * np.abs(want).max()
