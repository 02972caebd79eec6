"""When sorting is done in machine code, and that it is NumPy's stable order then as before."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ops, passes
from fgrad.backends.llvm import module
from fgrad.errors import CheckError
from fgrad.ops import radix
from fgrad.types import ArrayType

N = 5000
ODD = [0.0, -0.0, 1.0, -1.0, np.nan, -np.nan, np.inf, -np.inf]


@pytest.fixture
def ready(monkeypatch):
    """Every kind of words has its machine code, and it is asked whatever the processor."""
    monkeypatch.setattr(radix, "_sorted", {})
    monkeypatch.setattr(radix.machine(), "is_faster", lambda x: True)
    for kind in ("short", "long", "places"):
        radix.prepare(kind)
    assert radix._sorted == {"short": True, "long": True, "places": True}


def drawn(dtype, shape):
    """Numbers of which many are tied; of floats a half are odd ones."""
    rng = np.random.default_rng(len(shape))
    x = rng.normal(size=shape) * 1e4 * (rng.random(shape) < 0.7)
    x = (abs(x) if dtype[0] == "u" else x).astype(dtype)
    if x.dtype.kind == "f":
        x = np.where(rng.random(shape) < 0.5, x, rng.choice(np.array(ODD, dtype), shape))
    return x


def check(x, axis):
    order = ops.order.numpy(x, axis=axis)
    np.testing.assert_array_equal(order, np.argsort(x, axis, kind="stable"))
    out, want = ops.sort.numpy(x, axis=axis), np.take_along_axis(x, order, axis)
    np.testing.assert_array_equal(out, want)
    there = want == want                         # the signs of NaN are checked below
    np.testing.assert_array_equal(np.signbit(out[there]), np.signbit(want[there]))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("shape, axis", [((N,), 0), ((3, N), 1), ((N, 2), 0), ((2, N, 2), 1)])
def test_it_is_numpys_stable_sort(ready, dtype, shape, axis):
    check(drawn(dtype, shape), axis)


def test_rows_that_are_not_contiguous(ready):
    x = drawn("f4", (2 * N, 3))
    check(x[::2].T, 1)
    check(x[::-2], 0)
    check(np.frombuffer(b"." + x.tobytes(), np.uint8)[1:].view("f4"), 0)          # not aligned


def test_nan_keep_their_order_too(ready):
    x = drawn("f4", (2, N))
    out = np.empty_like(x)
    assert radix.values(out, x)
    for row, to in zip(x, out):
        np.testing.assert_array_equal(np.signbit(to[np.isnan(to)]), np.signbit(row[np.isnan(row)]))


@pytest.mark.parametrize("long", [0, radix.LONG])
@pytest.mark.parametrize("numbers", [[-0.0, 0.0], [-0.0], [0.0], [-2.0, -0.0, 3.0, 0.0], [1.0, 2.0],
                                     [-1.0, -0.0], [0.0, 2.0, -np.inf], [-1.0, -2.0]])
def test_zeros_of_both_signs_keep_their_order(ready, monkeypatch, numbers, long):
    """Rows with one -0.0 at most, and rows with many, whether it is sought before or after."""
    monkeypatch.setattr(radix, "LONG", long)
    rng = np.random.default_rng(7)
    for dtype in ("f4", "f8"):
        x = rng.choice(np.array(numbers, dtype), (3, N))
        x[1] = rng.normal(size=N)
        x[1, 5] = numbers[0]
        check(x, 1)


def test_numpy_sorts_what_it_sorts_as_fast(ready, monkeypatch):
    monkeypatch.setattr(radix.machine(), "is_faster", lambda x: False)
    x = drawn("f4", (2, N))
    assert not radix.values(np.empty_like(x), x)
    check(x, 1)


def test_several_keys_are_numpys_lexsort(ready):
    rng = np.random.default_rng(3)
    keys = [rng.integers(0, 4, (2, N)).astype(t) for t in ("f4", "i1", "f8", "i8", "f2")]
    for k in range(1, 6):
        order = ops.order.numpy(*keys[:k], axis=1)
        np.testing.assert_array_equal(order, np.lexsort(keys[:k][::-1], 1))


def test_a_process_that_sorts_little_does_without(monkeypatch):
    asked = []

    class Machine:
        is_kept = staticmethod(lambda kind: asked.append(kind) or False)
        library = staticmethod(lambda kind: asked.append(f"{kind} compiled"))
    monkeypatch.setattr(radix, "_sorted", {})
    monkeypatch.setattr(radix, "machine", lambda: Machine)
    x = np.zeros(radix.LOADING // 4, "f4")
    for _ in range(3):
        assert not radix.values(np.empty_like(x), x) and asked == []
    assert not radix.values(np.empty_like(x), x) and asked == ["short"]
    assert not radix.is_ready("short", radix.COMPILING // 2) and asked == ["short"]   # once
    assert radix.is_ready("short", radix.COMPILING // 2) and asked[1:] == ["short compiled"]
    assert radix.is_ready("short", 1) and len(asked) == 2
    assert radix.places(x[:radix.PLACES - 1], None) is None and "places" not in radix._sorted


def test_where_there_is_no_machine_code_numpy_sorts_on(monkeypatch):
    def refused(kind):
        raise CheckError("the system allows no code.", where=None)

    monkeypatch.setattr(radix, "_sorted", {})
    monkeypatch.setattr(radix.machine(), "library", refused)
    fgrad.errors.NOTICED.discard("radix")
    with pytest.warns(fgrad.FgradWarning, match="NumPy sorts, not machine code: the system allows"):
        radix.prepare("short")
    check(drawn("f4", (N,)), 0)
    radix.prepare("short")                       # it is not asked for again
    assert radix._sorted["short"] is False


def test_it_is_begun_while_kernels_are_written(monkeypatch):
    begun = []
    monkeypatch.setattr(radix, "_sorted", {"places": True})
    monkeypatch.setattr(radix.machine(), "begin", begun.append)
    program = fgrad.make_ir(lambda x: (fnp.sort(x) + 0, fnp.argsort(x) + 0, fnp.sort(x[:100])))
    plan = passes.plan(program(ArrayType("f4", (N,))), module.host_target(), ())
    module.Module(plan)
    assert begun == []
    module.Module(plan, lambda texts: None)
    assert begun == ["short"]                    # what is there, or is not needed, is not begun

    def refused(kind):
        raise CheckError("the system allows no code.", where=None)
    monkeypatch.setattr(radix.machine(), "begin", refused)
    module.Module(plan, lambda texts: None)      # whoever needs it says so


def test_compiled_code_has_it_from_the_start(monkeypatch):
    monkeypatch.setattr(radix, "_sorted", {})
    x = fnp.array(drawn("f4", (N,)))
    want = np.sort(x.np, kind="stable")
    np.testing.assert_array_equal(fgrad.jit(lambda x: fnp.sort(x) + 0)(x).np, want)
    assert radix._sorted == {"short": True}
    fgrad.jit(lambda x: fnp.argsort(x[:100]) + 0)(x)         # too short
    assert radix._sorted == {"short": True}
    order = fgrad.jit(lambda x: fnp.argsort(x) + 0)(x)
    np.testing.assert_array_equal(order.np, np.argsort(x.np, kind="stable"))
    assert radix._sorted == {"short": True, "places": True}
