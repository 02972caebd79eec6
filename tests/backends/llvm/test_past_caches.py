"""Results that no cache holds are written past the caches: where, with which values."""

import ctypes

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import passes
from fgrad.backends import base
from fgrad.backends.llvm import emit, host, module, target
from fgrad.backends.llvm.host import HOST, last_cache
from fgrad.backends.llvm.text import PAST_CACHES

LANES = HOST.vector_bytes // 4


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    """Arrays of 4 KB are large; what else is known of the machine stays."""
    module.host_target()
    monkeypatch.setattr(host, "last_cache", lambda: 4096)


def planned(function, args, donate=()):
    types = [fgrad.ArrayType(a.dtype.name, a.shape) for a in args]
    return passes.plan(fgrad.make_ir(function)(*types), module.host_target(), donate)


def passed(function, *args, donate=()):
    """Does some kernel write past the caches?"""
    return PAST_CACHES in module.Module(planned(function, args, donate)).text()


def check(function, *args, donate=()):
    """The values are those of the operations one by one."""
    want = function(*[fnp.array(a) for a in args])
    executable = base.find("cpu").compile(planned(function, args, donate), "cpu")
    (found,) = executable([fnp.array(a) for a in args])
    np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-5, atol=1e-6)


def draw(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype("float32")


@pytest.mark.parametrize("count", [1024, 5000, 16 * LANES * 8, 30_001])
def test_a_large_result_is(count):
    check(lambda x: fnp.maximum(x * 2 + 1, 0), draw(count))
    assert passed(lambda x: fnp.maximum(x * 2 + 1, 0), draw(count))


def test_no_more_is_said_of_an_address_than_was_looked_at():
    """A vector of a loop over an exponential is several lines long, and begins at any line."""
    text = module.Module(planned(fnp.exp, [draw(8192)])).text()
    lines = [line for line in text.splitlines() if PAST_CACHES in line]
    assert lines and all("align 64," in line or HOST.vector_bytes < 64 for line in lines)
    check(fnp.exp, draw(8192))


def test_what_a_cache_holds_is_not():
    """Three quarters of it: 3 KB, of what is read and written together."""
    assert not passed(lambda x: x * 2 + 1, draw(383))
    assert passed(lambda x: x * 2 + 1, draw(384))
    assert not passed(lambda x, y: x * 2 + y, draw(255), draw(255))
    assert passed(lambda x, y: x * 2 + y, draw(256), draw(256))


def test_a_small_result_of_much_is_not():
    assert not passed(lambda x: fnp.sum(x, axis=0), draw(20, 112))
    assert passed(lambda x: fnp.sum(x, axis=0), draw(20, 128))


def test_what_is_read_of_a_buffer_counts():
    """Not all of it: a part, or what is found at places known at run time."""
    assert not passed(lambda x: x[100:356] * 2, draw(4000))
    assert not passed(lambda x, k: x[k], draw(1000, 16), np.arange(8))
    assert passed(lambda x: x[100:612] * 2, draw(4000))


def test_rows_of_whole_lines_are():
    def function(x):
        return x / fnp.sum(x, axis=1, keepdims=True) + fnp.max(x, axis=0)
    x = 3 + draw(40, 16 * LANES)
    check(function, x)
    text = module.Module(planned(function, [x])).text()
    assert PAST_CACHES in text
    assert text.count("fence") == 1              # not one for each row


def test_short_rows_that_begin_anywhere_are_not():
    assert not passed(lambda x, y: x[:, :-1] * y, draw(40, 8 * LANES), draw(40, 8 * LANES - 1))


@pytest.mark.parametrize("columns", [1025, 1037, 2047, 4099])
def test_long_rows_that_begin_anywhere_are_from_their_first_line_on(columns):
    def softmax(x):
        y = fnp.exp(x - fnp.max(x, axis=1, keepdims=True))
        return y / fnp.sum(y, axis=1, keepdims=True)
    x = draw(11, columns)
    for function in (softmax, fnp.exp, lambda x: x[:, 1:] * 2, lambda x: x[:, ::-1] + x):
        check(function, x)
    assert passed(softmax, x) and passed(lambda x: x[:, 1:] * 2, x)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int8"])
def test_rows_of_any_dtype_are(dtype):
    x = (draw(9, 4501) * 9).astype(dtype)
    check(lambda x: x[:, 2:] + x[:, :-2], x)
    assert passed(lambda x: x[:, 2:] + x[:, :-2], x)


def test_rows_of_two_results_that_begin_at_different_places_are_written_in_the_other_way():
    """Or past the caches, where they begin alike: then both at once."""
    for cut in (0, 1):
        def function(x):
            y = x[:, 1:] * 2
            return fnp.concatenate([y[:, cut:], y[:, :cut] + 1], axis=1), y + x[:, :-1]
        x = fnp.array(draw(11, 1300))
        for found, want in zip(fgrad.jit(function)(x), function(x)):
            np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-6)


def test_rows_left_over_of_those_at_once_may_begin_at_lines_where_others_do_not():
    """The first of the three does: all of them were written so, and the process died."""
    x = 3 + draw(8 * LANES + 3, 6 * LANES + 1)
    check(lambda x: fnp.exp(x) / fnp.sum(x, axis=1, keepdims=True), x)


def test_what_is_read_again_is_not():
    assert not passed(lambda x: fnp.cumsum(x), draw(4000))
    assert not passed(lambda x: x * 2, draw(4000), donate=(0,))
    assert not passed(lambda x: fnp.sum(x, axis=0), draw(128, 128))     # set, then added to


def test_memory_that_does_not_begin_at_a_line_is_written_in_the_other_way():
    function = lambda x, y: x * 2 + y
    x, y = draw(4000), 1 + draw(4000)
    steps = planned(function, [x, y])
    (kernel,) = steps.steps
    text, used = emit.function("kernel", kernel, cache=host.last_cache())
    library = target.load(target.compile_text(
        module.module_text({"k.one": str(text).replace("@kernel(", "@k.one(")}, used)))
    for shift in (0, 4, 32, 60):
        room = np.zeros(4 * 4100, np.uint8)
        start = -room.ctypes.data % 64 + shift
        out = room[start:start + 16000].view("float32")
        given = {"x": x, "y": y}
        table = (ctypes.c_void_p * 3)(*[given[b.name].ctypes.data for b in kernel.params],
                                      out.ctypes.data)
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address("k.one"))
        call(ctypes.addressof(table), 0)
        np.testing.assert_allclose(out, x * 2 + y, rtol=1e-6)
    library.close()


def test_the_size_of_the_last_cache_is_read(monkeypatch, tmp_path):
    for text, size in (("32768K\n", 32 << 20), ("16M", 16 << 20), ("4096", 4096),
                       ("", host.USUAL_CACHE)):
        (tmp_path / "size").write_text(text)
        monkeypatch.setattr(host, "LAST_CACHE", str(tmp_path / "size"))
        last_cache.cache_clear()
        assert last_cache() == size
    monkeypatch.setattr(host, "LAST_CACHE", str(tmp_path / "none"))
    last_cache.cache_clear()
    assert last_cache() == host.USUAL_CACHE
    last_cache.cache_clear()
