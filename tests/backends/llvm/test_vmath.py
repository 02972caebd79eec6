"""Vector math against extended precision: stated errors, special values, every width.

References are NumPy's f64 for f32, and its longdouble for f64 where that is wider (x86); elsewhere
f64 is compared with f64, and half an ulp is allowed for the reference.
"""

import ctypes
import re
from functools import cache

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.backends.llvm import target, vmath
from fgrad.backends.llvm.host import HOST
from fgrad.backends.llvm.text import declarations

LANES = (1, 4, 16)
SAMPLES = 200_000
DTYPES = {"f32": np.float32, "f64": np.float64}
WIDE = np.finfo(np.longdouble).nmant > 52
TWO = ("atan2", "pow", "rem")
inf, nan = np.inf, np.nan

MAP = """define void @map.{key}({pointers}, ptr %out, i64 %n) {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
{loads}
  %y = call {t} {symbol}({values})
  %q = getelementptr {element}, ptr %out, i64 %i
  store {t} %y, ptr %q, align 4
  %next = add i64 %i, {lanes}
  br label %head
done:
  ret void
}}"""


def map_text(name, dtype, lanes):
    """A function that applies one of vector math to arrays whose size is a multiple of `lanes`."""
    element = {"f32": "float", "f64": "double"}[dtype]
    t = element if lanes == 1 else f"<{lanes} x {element}>"
    xs = range(2 if name in TWO else 1)
    loads = "\n".join(f"  %p{k} = getelementptr {element}, ptr %a{k}, i64 %i\n"
                      f"  %x{k} = load {t}, ptr %p{k}, align 4" for k in xs)
    return MAP.format(key=f"{name}.{dtype}.{lanes}", pointers=", ".join(f"ptr %a{k}" for k in xs),
                      loads=loads, values=", ".join(f"{t} %x{k}" for k in xs), t=t, lanes=lanes,
                      symbol=vmath.symbol(name, dtype, lanes), element=element)


def module_text(names, dtype, lanes):
    wanted = dict.fromkeys(n for name in names for n in (name, *vmath.needs(name, dtype)))
    text = "\n\n".join([*(vmath.definition(n, dtype, lanes) for n in wanted),
                        *(map_text(n, dtype, lanes) for n in names)])
    return "\n".join(declarations(text)) + "\n\n" + text


@cache
def library(dtype, lanes, names=vmath.NAMES):
    return target.load(target.compile_text(module_text(names, dtype, lanes)))


def apply(name, lanes, *xs, names=vmath.NAMES):
    """The function of arrays of one dtype, in vectors of `lanes`, from the library of `names`."""
    xs = np.broadcast_arrays(*xs)
    dtype = "f32" if xs[0].dtype == np.float32 else "f64"
    size = xs[0].size
    padded = [np.resize(x, -(-size // (16 * lanes)) * 16 * lanes) for x in xs]
    out = np.empty_like(padded[0])
    address = library(dtype, lanes, names).address(f"map.{name}.{dtype}.{lanes}")
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(xs) + 1), ctypes.c_int64)(address)
    function(*(x.ctypes.data for x in padded), out.ctypes.data, out.size)
    return out[:size]


def erf(x):
    """Kummer's series of positive terms: 2/sqrt(pi) e^(-x^2) sum of 2^n x^(2n+1) / (2n+1)!!"""
    x = np.asarray(x).astype(np.longdouble)
    a = np.clip(x, -7, 7)
    total = term = a.copy()
    for n in range(1, 180):
        term = term * (2 * a * a / (2 * n + 1))
        total = total + term
    return total * np.exp(-a * a) * 2 / np.sqrt(np.longdouble("3.14159265358979323846264338"))


def logistic(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


REFERENCE = {"exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "tanh": np.tanh,
             "logistic": logistic, "sinh": np.sinh, "cosh": np.cosh, "erf": erf, "pow": np.power,
             "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
             "atan": np.arctan, "atan2": np.arctan2, "rem": np.fmod}


def reference(name, *xs):
    """The value in a wider dtype."""
    wider = np.float64 if xs[0].dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        return REFERENCE[name](*(x.astype(wider) for x in xs))


def error_in_ulp(out, exact):
    """|out - exact| in units of the last place of `exact`; 0 or inf where that is not finite."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(out.dtype)
        same = (out == rounded) | (np.isnan(out) & np.isnan(rounded))
        error = np.abs(out.astype(exact.dtype) - exact) / np.spacing(np.abs(rounded))
        finite = np.isfinite(rounded) & np.isfinite(out)
        return np.where(finite, error, np.where(same, 0, inf)).astype(float)


#   values around which each function has something happening
SCALE = {"exp": 100, "expm1": 3, "log1p": 1, "tanh": 3, "logistic": 20, "sinh": 5, "cosh": 5,
         "erf": 2, "sin": 50, "cos": 50, "tan": 50, "asin": .6, "acos": .6, "atan": 2}


def samples(name, dtype, size, seed=0):
    """Every kind of number by random bits, and as many of the size that matters."""
    rng = np.random.default_rng(seed)
    kind = DTYPES[dtype]
    bits = {"f32": np.uint32, "f64": np.uint64}[dtype]
    count = 2 if name in TWO else 1
    every = [rng.integers(0, np.iinfo(bits).max, size // 2, bits, endpoint=True).view(kind)
             for _ in range(count)]
    near = [(SCALE.get(name, 3) * rng.standard_normal(size // 2)).astype(kind)
            for _ in range(count)]
    if name == "log":
        near = [1 + near[0] / 3]
    if name == "pow":
        near = [np.exp(near[0]).astype(kind), (10 * near[1]).astype(kind)]
    return [np.concatenate(pair) for pair in zip(every, near)]


def largest_error(name, dtype, lanes, size, seed=0):
    """(ulp, arguments)"""
    xs = samples(name, dtype, size, seed)
    error = error_in_ulp(apply(name, lanes, *xs), reference(name, *xs))
    at = int(np.argmax(error))
    return error[at], [x[at] for x in xs]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", vmath.NAMES)
def test_error_stays_below_the_stated_ulp(name, dtype):
    slack = 0 if dtype == "f32" or WIDE else 1
    error, at = largest_error(name, dtype, 16, SAMPLES)
    assert error <= vmath.ULP[name, dtype] + slack, (error, at)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", vmath.NAMES)
def test_every_width_gives_the_same_bits(name, dtype):
    xs = samples(name, dtype, 4000, seed=1)
    wide, *others = [apply(name, lanes, *xs) for lanes in reversed(LANES)]
    for other in others:
        np.testing.assert_array_equal(wide, other)


def edges(dtype):
    """Arguments where something special happens, in some function."""
    kind, info = DTYPES[dtype], np.finfo(DTYPES[dtype])
    small = [info.tiny, info.smallest_subnormal, info.tiny / 3, info.tiny * 3.3, info.eps]
    usual = [0, .1, .5, 1, 1 - info.eps / 2, 1 + info.eps, 2, 3, 7, 9.5, 2.**24 + 1, 2.**53 + 2]
    ends = [88.72283, 88.8, 87.4, 89.42, 103.97, 104.1,
            709.78, 709.79, 745.1, 745.2, 710.47, 710.48, 1e30]
    angles = [1e5, 100001, 2.**30, 2.**31, info.max, info.max / 3]
    values = np.array([*small, *usual, *ends, *angles, inf, nan]).astype(kind)
    return np.concatenate([values, -values])


def sign_of(x):
    return np.where(np.isnan(x), 0, np.where(np.signbit(x), -1, 1))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", vmath.NAMES)
def test_edges_have_the_values_and_signs_of_ieee(name, dtype, lanes):
    x = edges(dtype)
    xs = [x] if name not in TWO else [side.ravel().copy() for side in np.meshgrid(x, x)]
    out, exact = apply(name, lanes, *xs), reference(name, *xs)
    with np.errstate(all="ignore"):
        rounded = exact.astype(x.dtype)
    np.testing.assert_array_equal(sign_of(out), sign_of(rounded))
    slack = 0 if dtype == "f32" or WIDE else 1
    assert error_in_ulp(out, exact).max() <= vmath.ULP[name, dtype] + slack


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", vmath.NAMES)
def test_denormal_arguments_are_not_flushed(name, dtype):
    rng = np.random.default_rng(2)
    kind = DTYPES[dtype]
    bits = {"f32": np.uint32, "f64": np.uint64}[dtype]
    xs = [rng.integers(0, 2 ** np.finfo(kind).nmant, 2000).astype(bits).view(kind)
          * rng.choice([-1, 1], 2000).astype(kind) for _ in range(2 if name in TWO else 1)]
    slack = 0 if dtype == "f32" or WIDE else 1
    error = error_in_ulp(apply(name, 16, *xs), reference(name, *xs))
    assert error.max() <= vmath.ULP[name, dtype] + slack


@pytest.mark.parametrize("dtype", DTYPES)
def test_denormal_results_of_exp_and_pow_are_rounded_right(dtype):
    kind = DTYPES[dtype]
    low, high = {"f32": (-103.9, -87.4), "f64": (-745.1, -708.4)}[dtype]
    x = np.linspace(low, high, 4000).astype(kind)
    assert error_in_ulp(apply("exp", 16, x), reference("exp", x)).max() <= 1.1
    base = np.full_like(x, np.e)
    assert error_in_ulp(apply("pow", 16, base, x), reference("pow", base, x)).max() <= 1.1


@pytest.mark.parametrize("dtype", DTYPES)
def test_pow_has_the_corners_of_ieee(dtype):
    kind = DTYPES[dtype]
    cases = [(nan, 0, 1), (1, nan, 1), (nan, 1, nan), (2, nan, nan), (0, -1, inf), (-0., -1, -inf),
             (-0., -2, inf), (0, 2, 0), (-0., 3, -0.), (-0., 2.5, 0), (-1, inf, 1), (-1, -inf, 1),
             (-1, nan, nan), (.5, inf, 0), (.5, -inf, inf), (2, inf, inf), (2, -inf, 0),
             (-inf, 3, -inf), (-inf, 2.5, inf), (-inf, -3, -0.), (inf, -1, 0), (-8, 3, -512),
             (-8, 1 / 3, nan), (-2, 1e30, inf), (-3, 0, 1), (0, 0, 1), (0, inf, 0), (0, -inf, inf)]
    x, y, expected = (np.array(column, kind) for column in zip(*cases))
    out = apply("pow", 4, x, y)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(sign_of(out), sign_of(expected))


@pytest.mark.parametrize("dtype", DTYPES)
def test_pow_is_as_precise_near_one_and_near_overflow(dtype):
    rng = np.random.default_rng(4)
    kind, info = DTYPES[dtype], np.finfo(DTYPES[dtype])
    exponents = rng.uniform(np.log(float(info.tiny)), np.log(float(info.max)), 100_000)
    distance = np.exp(rng.uniform(np.log(4 * float(info.eps)), 5, exponents.size))
    x = (1 + distance).astype(kind)
    y = (exponents / np.log(x.astype(float))).astype(kind)
    slack = 0 if dtype == "f32" or WIDE else 1
    assert error_in_ulp(apply("pow", 16, x, y), reference("pow", x, y)).max() \
        <= vmath.ULP["pow", dtype] + slack


@pytest.mark.parametrize("dtype", DTYPES)
def test_whole_powers_are_exact_where_they_fit(dtype):
    sides = np.meshgrid(np.arange(-9, 10), np.arange(7))
    x, y = (side.ravel().astype(DTYPES[dtype]) for side in sides)
    np.testing.assert_array_equal(apply("pow", 16, x, y), (x.astype(int) ** y.astype(int)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_large_angle_in_a_vector_does_not_disturb_the_others(dtype):
    x = np.linspace(-3, 3, 16).astype(DTYPES[dtype])
    for name in ("sin", "cos", "tan"):
        before = apply(name, 16, x)
        mixed = x.copy()
        mixed[5] = 1e22
        after = apply(name, 16, mixed)
        np.testing.assert_array_equal(np.delete(after, 5), np.delete(before, 5))
        error = error_in_ulp(after[5:6], reference(name, mixed[5:6]))
        assert error[0] <= vmath.ULP[name, dtype] + 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_logistic_and_sin_stay_within_their_bounds(dtype):
    x = np.linspace(-30, 30, 50_000).astype(DTYPES[dtype])
    out = apply("logistic", 16, x)
    assert out.min() >= 0 and out.max() <= 1
    assert np.abs(apply("sin", 16, x)).max() <= 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [0, 1, 17])
def test_sizes_that_are_not_a_multiple_of_the_width(size, dtype):
    x = np.linspace(0.1, 2, size).astype(DTYPES[dtype])
    np.testing.assert_allclose(apply("exp", 4, x), np.exp(x), rtol=4 * np.finfo(x.dtype).eps)


@pytest.mark.parametrize("lanes", [2, 8, 12, 32, 64])
def test_exp_has_the_same_bits_in_vectors_of_parts_of_a_register_and_of_several(lanes):
    [x] = samples("exp", "f32", 100 * lanes)
    np.testing.assert_array_equal(apply("exp", lanes, x, names=("exp",)), apply("exp", 1, x))


@pytest.mark.parametrize("size", [1, 16, 33, 64, 1000])
def test_kernels_compute_exp_with_the_bits_of_one_lane(size):
    """Also where a vector has lanes that are seldom: too small, too large, infinite or NaN."""
    x = np.random.default_rng(size).standard_normal(size).astype("float32") * 5
    for seldom in (0, 100, -100, -1e30, inf, nan):
        x[size // 2] = seldom
        np.testing.assert_array_equal(np.asarray(fgrad.jit(fnp.exp)(x)), apply("exp", 1, x))


def test_symbols_name_dtype_and_width():
    assert vmath.symbol("exp", "f32", 16) == "@fg.exp.v16f32"
    assert vmath.symbol("exp", "f64", 1) == "@fg.exp.f64"


def test_needs_are_the_functions_a_definition_calls():
    assert vmath.needs("sin", "f32") == ("quadrant",)
    assert vmath.needs("exp", "f64") == ()
    assert vmath.needs("logistic", "f32") == vmath.needs("exp", "f32")
    for name in vmath.NAMES:
        called = re.findall(r"call [^@\n]+ @fg\.(\w+)\.", vmath.definition(name, "f32", 1))
        assert tuple(called) == vmath.needs(name, "f32")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("base", [0.0, 0.5, 1.0, 2.0, 10.0, -1.5, inf, nan])
def test_powers_of_a_constant_have_the_bits_of_powers_of_an_array(base, dtype):
    """Of a constant the logarithm is computed once, where the program is compiled."""
    y = np.concatenate([np.linspace(-160, 160, 321), np.linspace(-3, 3, 50),
                        [inf, -inf, nan, -0.0]]).astype(dtype)
    of_constant = fgrad.jit(lambda y: fnp.power(base, y))(y)
    of_array = fgrad.jit(fnp.power)(np.full_like(y, base), y)
    np.testing.assert_array_equal(np.asarray(of_constant), np.asarray(of_array))
    text = fgrad.show(lambda y: fnp.power(base, y), y, stage="llvm")
    assert re.search(r"call [^\n]*@fg\.pow\.[^\n]* alwaysinline", text)


@pytest.mark.parametrize("name", ["tanh", "erf"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_odd_functions_of_limit_one_stay_within_it_and_reach_it(name, dtype):
    x = np.concatenate([np.linspace(0, 20, SAMPLES), [20, 1e5, 1e30, inf]]).astype(DTYPES[dtype])
    y = apply(name, 16, x)
    assert y.max() == 1 and (y[x >= 19.1] == 1).all()
    np.testing.assert_array_equal(apply(name, 16, -x), -y)


FLAGS = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define i32 @flags.read() {
  %at = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %word = load i32, ptr %at, align 4
  ret i32 %word
}

define void @flags.write(i32 %word) {
  %at = alloca i32, align 4
  store i32 %word, ptr %at, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void
}
"""
UNDERFLOW, DENORMAL = 0x10, 0x02             # of these flags


@pytest.mark.skipif("x86_64" not in HOST.triple, reason="the flags are x86's")
@pytest.mark.parametrize("name", ["log1p", "expm1", "sinh"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", LANES)
def test_arguments_such_as_powers_of_e_make_no_denormal_numbers(name, dtype, lanes):
    """These take a processor a hundred cycles each: log1p(exp(-x)) took twenty times as long."""
    flags = target.load(target.compile_text(FLAGS))
    read = ctypes.CFUNCTYPE(ctypes.c_uint32)(flags.address("flags.read"))
    write = ctypes.CFUNCTYPE(None, ctypes.c_uint32)(flags.address("flags.write"))
    x = np.exp(-np.linspace(5, 85 if dtype == "f32" else 700, 16_000)).astype(DTYPES[dtype])
    apply(name, lanes, x, names=(name,))                         # compiles it
    before = read()
    try:
        write(before & ~0x3F)
        out = apply(name, lanes, x, names=(name,))
        assert not read() & (UNDERFLOW | DENORMAL)
    finally:
        write(before)
    assert error_in_ulp(out, reference(name, x)).max() < vmath.ULP[name, dtype] + 0.5
