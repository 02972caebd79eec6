"""Convolutions of random shapes whose windows are brought to points, and their gradients: the
values are those of NumPy's rule in f64."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fgrad
import fgrad.numpy as fnp
from fgrad import passes
from fgrad.backends import base
from fgrad.backends.llvm import contract, module, winograd
from fgrad.convolution import conv_general_dilated
from tests.strategies import examples
from tests.tolerance import assert_close

NHWC = ("NHWC", "HWIO", "NHWC")


@pytest.fixture(scope="module", autouse=True)
def always():
    """Wherever there are windows, they are brought to points."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(winograd, "part_cycles", lambda p: 0)
        contract.plan.cache_clear()
        yield
    contract.plan.cache_clear()


@st.composite
def convolutions(draw):
    """(shape of the images, of the kernel, the arguments of a convolution behind them)."""
    number = lambda low, high: draw(st.integers(low, high))
    pair = lambda low, high: (number(low, high), number(low, high))
    taps, stride, dilation = pair(1, 5), pair(1, 2), pair(1, 2)
    padding = [pair(-1, 3) for _ in range(2)]
    least = [(t - 1) * d + 1 - low - high for t, d, (low, high) in zip(taps, dilation, padding)]
    sizes = [max(1, low) + number(0, 6) for low in least]
    channels, columns = draw(st.sampled_from([8, 16, 17, 24, 33])), number(8, 40)
    return ((number(1, 3), *sizes, channels), (*taps, channels, columns),
            (stride, padding, None, dilation, NHWC))


@given(convolutions(), st.booleans(), st.integers(0, 99))
@examples(25)
def test_convolutions_of_random_shapes(shapes, squared, seed):
    images, kernel, how = shapes
    rng = np.random.default_rng(seed)
    x, w = (rng.standard_normal(s).astype("float32") for s in (images, kernel))

    def convolved(x, w):
        y = conv_general_dilated(x, w, *how)
        return y * y if squared else y

    def function(x, w, ct):
        y, back = fgrad.vjp(convolved, x, w)
        return y, fnp.sum(y, axis=(0, 1, 2)), *back(ct), fnp.sum(ct, axis=(0, 1, 2))
    out = fgrad.eval_shape(convolved, x, w)
    ct = rng.standard_normal(out.shape).astype("float32")
    want = function(*[fnp.array(a.astype("float64")) for a in (x, w, ct)])
    types = [fgrad.ArrayType("float32", a.shape) for a in (x, w, ct)]
    plan = passes.plan(fgrad.make_ir(function)(*types), module.host_target())
    found = base.find("cpu").compile(plan, "cpu")([fnp.array(a) for a in (x, w, ct)])
    for a, b in zip(found, want):
        assert_close(np.asarray(a), np.asarray(b).astype("float32"), length=10 * ct.size)
