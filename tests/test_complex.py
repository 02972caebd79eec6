"""Complex numbers: compiled code against NumPy's, derivatives, promotion, and what is refused."""

import operator

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import lax, ops
from fgrad.core import PRIMITIVES
from fgrad.errors import DtypeError, GradientError
from fgrad.types import C64, C128, SCALARS
from tests.ops.examples import EXAMPLES

RNG = np.random.default_rng(3)
Z, W = RNG.standard_normal((2, 3, 4)) + 1j * RNG.standard_normal((2, 3, 4))
TOLERANCE = {"complex64": 2e-5, "complex128": 1e-11}
PRIMITIVES.load()
COMPILED = [name for name, op in PRIMITIVES.items() if name in EXAMPLES
            and (C128 in op.dtypes or name in ("complex", "select", "reshape", "transpose", "rev",
                                               "broadcast", "slice", "pad", "concatenate", "gather",
                                               "dynamic_slice", "dynamic_update_slice"))]


def close(got, want, dtype="complex64"):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, (got.dtype, want.dtype)
    scale = np.max(np.abs(want), initial=1.0)
    np.testing.assert_allclose(got / scale, want / scale, atol=TOLERANCE[dtype], rtol=0)


@pytest.mark.parametrize("device", ["cpu", "opencl"])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_operations_agree_with_numpy(name, device):
    op = PRIMITIVES[name]
    for k, case in enumerate(EXAMPLES[name]):
        args = case.draw(C128 if C128 in op.dtypes or name != "complex" else "float64", seed=k)
        numbers = {j: a for j, a in enumerate(args) if a.__class__ in SCALARS}
        arrays = [fnp.asarray(a) for j, a in enumerate(args) if j not in numbers]

        def run(*arrays, numbers=numbers, count=len(args), case=case):
            given = iter(arrays)
            return op(*[numbers[j] if j in numbers else next(given) for j in range(count)],
                      **case.params)
        want, got = run(*arrays), fgrad.jit(run, device=device)(*arrays)
        for a, b in zip(fgrad.tree.leaves(got), fgrad.tree.leaves(want)):
            assert a.type is b.type
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-8, atol=1e-8,
                                       err_msg=f"{name} {case}")


UNARY = """exp expm1 log log1p sqrt sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh
    arctanh square negative conjugate absolute real imag angle sign reciprocal exp2 log2 log10 isnan
    isinf isfinite isreal iscomplex sum prod mean var std cumsum cumprod ravel""".split()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_functions_of_complex_numbers_agree_with_numpy_eager_and_compiled(dtype):
    z = Z.astype(dtype)
    for name in UNARY:
        want, function = getattr(np, name)(z), getattr(fnp, name)
        close(function(fnp.asarray(z)), want, dtype)
        close(fgrad.jit(function)(z), want, dtype)


def test_elementary_functions_on_the_axes_and_at_extremes_agree_with_numpy():
    z = np.array([0, 1, -1, 1j, -1j, 2, -2, 2j, -2j, 1e-9 + 1e-9j, 300 + 300j, 1e-300, -0.5 + 0j])
    for name in ("exp", "sqrt", "tanh", "sin", "arcsinh", "arctan", "log1p", "expm1", "absolute"):
        with np.errstate(all="ignore"):
            want = getattr(np, name)(z)
        got = np.asarray(fgrad.jit(getattr(fnp, name))(z))
        finite = np.isfinite(want)
        np.testing.assert_allclose(got[finite], want[finite], rtol=1e-9, atol=1e-15, err_msg=name)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_inverses_of_sine_and_cosine_keep_the_digits_of_both_parts(dtype):
    limits = np.finfo(dtype)
    size = np.array([0, limits.tiny, 1e-20, 1e-6, 0.5, 1, 1 + limits.eps, 2, 1e4, 1e9, 2e10,
                     limits.max], limits.dtype)
    ends = np.concatenate([size, -size])
    z = np.empty((len(ends), len(ends)), dtype)
    z.real, z.imag = ends[:, None], ends
    for name in ("arcsin", "arccos", "arcsinh"):
        want = getattr(np, name)(z)
        got = np.asarray(fgrad.jit(getattr(fnp, name))(z))
        for a, b in ((got.real, want.real), (got.imag, want.imag)):
            np.testing.assert_allclose(a, b, rtol=6 * limits.eps, atol=limits.tiny, err_msg=name)
            np.testing.assert_array_equal(np.signbit(a), np.signbit(b), err_msg=name)


def test_products_and_moves_agree_with_numpy():
    for function in (lambda m, z, w: z @ w.T, lambda m, z, w: m.einsum("ij,ij->i", z, w),
                     lambda m, z, w: m.vdot(z, w), lambda m, z, w: m.tensordot(z, w, 2),
                     lambda m, z, w: m.where(m.abs(z) > 1, z, w) ** 2 + 1j * z - z / (1 + 2j),
                     lambda m, z, w: m.concatenate([z, w], 1)[:, ::-1][1:, ::2],
                     lambda m, z, w: z**w + z**-3 + z**0.5 + 2.0**z,
                     lambda m, z, w: m.pad(z, 1)[[0, 2, 1]] + m.mean(z),
                     lambda m, z, w: z.T.conj()):
        want = function(np, Z, W)
        close(function(fnp, fnp.asarray(Z), fnp.asarray(W)), want, "complex128")
        close(fgrad.jit(lambda z, w, f=function: f(fnp, z, w))(Z, W), want, "complex128")


@pytest.mark.parametrize("make, dtype", [
    (lambda: 1j * fnp.ones(2), "complex64"), (lambda: fnp.asarray(np.ones(2)) * 0.1j, "complex128"),
    (lambda: fnp.arange(3) + 1j, "complex64"), (lambda: fnp.asarray([1 + 2j, 3.0]), "complex64"),
    (lambda: fnp.zeros(2, complex), "complex64"),
    (lambda: fnp.ones(2, "float16") * 1j, "complex64"),
    (lambda: fnp.asarray(np.ones(2)) + fnp.ones(2, "complex64"), "complex128"),
    (lambda: fnp.ones(2, "complex64").real, "float32"), (lambda: abs(fnp.array(3 + 4j)), "float32"),
    (lambda: fnp.ones(2, "complex128") * 2.0, "complex128")])
def test_complex_dtypes_promote_as_in_jax(make, dtype):
    assert make().dtype == dtype


def test_python_numbers_keep_their_digits_beside_double_precision():
    assert complex((fnp.asarray(np.ones(())) * 0.1j).item()) == 0.1j


def test_what_stands_for_elements_out_of_range_may_be_complex():
    z, i = fnp.asarray(Z[0]), np.array([0, 9, 2])
    for fill in (1 + 2j, 3j, 5, np.nan):
        for read in (lambda z: fnp.take(z, i, mode="fill", fill_value=fill),
                     lambda z: z.at[i].get(mode="fill", fill_value=fill)):
            want = np.where(i < 4, Z[0, i % 4], fill)
            np.testing.assert_array_equal(read(z), want)
            np.testing.assert_array_equal(fgrad.jit(read)(z), want)


def test_control_flow_carries_complex_numbers():
    def run(z):
        last, seen = lax.scan(lambda c, v: (c * v + 1j, c), z[0], z)
        last = lax.fori_loop(0, 3, lambda i, c: c * c * 0.3 + last, last)
        last = lax.while_loop(lambda c: fnp.sum(abs(c)) < 90, lambda c: 2 * c, last)
        return lax.cond(fnp.real(last[0]) > 0, lambda c: c, lambda c: -c, last), seen
    for a, b in zip(run(fnp.asarray(Z)), fgrad.jit(run)(Z)):
        close(a, b, "complex128")


# ---------------------------------------------------------------------------- derivatives

HOLOMORPHIC = "exp log sqrt sin cos tan sinh cosh tanh arcsin arctan arcsinh arccosh square".split()


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic_derivatives_are_difference_quotients_in_every_direction(name):
    function = getattr(fnp, name)
    got = fgrad.grad(lambda z: fnp.sum(function(z)), holomorphic=True)(fnp.asarray(Z * 0.7))
    jitted = fgrad.jit(fgrad.grad(lambda z: fnp.sum(function(z)), holomorphic=True))(Z * 0.7)
    for h in (1e-6, 1e-6j):
        want = (getattr(np, name)(Z * 0.7 + h) - getattr(np, name)(Z * 0.7 - h)) / (2 * h)
        np.testing.assert_allclose(got, want, rtol=1e-5)
        np.testing.assert_allclose(jitted, want, rtol=1e-5)


def loss(z):
    """A real function of complex numbers."""
    return fnp.sum(abs(fnp.exp(z) @ z.T + fnp.conj(z)[:, :3] * 1j) ** 2 / (1 + fnp.angle(z[:, :3])))


def test_the_gradient_of_a_real_function_is_the_two_partial_derivatives():
    z = fnp.asarray(Z * 0.3)
    got = np.asarray(fgrad.grad(loss)(z))
    for at in ((0, 0), (1, 2), (2, 3)):
        step = np.zeros((3, 4))
        step[at] = 1e-6
        dx = (loss(z + step) - loss(z - step)) / 2e-6
        dy = (loss(z + 1j * step) - loss(z - 1j * step)) / 2e-6
        assert got[at] == pytest.approx(complex(dx.item(), -dy.item()), rel=1e-5)
    close(fgrad.jit(fgrad.grad(loss))(z), got, "complex128")
    close(fgrad.vmap(fgrad.grad(loss))(z[None])[0], got, "complex128")


def test_descent_against_the_conjugate_gradient_reaches_the_minimum():
    step = fgrad.jit(lambda z: z - 0.1 * fnp.conj(fgrad.grad(
        lambda z: fnp.sum(abs(z - (1 + 2j)) ** 2))(z)))
    z = fnp.zeros(2, complex)
    for _ in range(60):
        z = step(z)
    np.testing.assert_allclose(z, [1 + 2j] * 2, atol=1e-4)


def test_jacobians_of_holomorphic_functions():
    function = lambda z: z * z[::-1]
    for transform in (fgrad.jacfwd, fgrad.jacrev):
        got = np.asarray(transform(function, holomorphic=True)(fnp.asarray(Z[0])))
        np.testing.assert_allclose(got, np.diag(Z[0][::-1]) + np.fliplr(np.diag(Z[0])), atol=1e-12)


@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "eigvalsh", "svdvals", "solve", "qr",
                                  "pinv", "slogdet", "norm"])
def test_linear_algebra_and_its_gradients(name):
    square = Z[:, :3]
    hermitian = name in ("cholesky", "eigvalsh")
    matrix = square @ square.conj().T + 3 * np.eye(3) if hermitian else square

    def function(m, a):
        if name == "solve":
            return m.linalg.solve(a, W[:, :2])
        if name == "svdvals":
            return m.linalg.svd(a, compute_uv=False)
        if name == "qr":
            return abs(m.linalg.qr(a)[1])
        found = getattr(m.linalg, name)(a)
        return found[1] if name == "slogdet" else found
    want = function(np, matrix)
    close(function(fnp, fnp.asarray(matrix)), want, "complex128")
    close(fgrad.jit(lambda a: function(fnp, a))(matrix), want, "complex128")

    def total(a):
        return fnp.sum(abs(function(fnp, a)) ** 2)
    got, h = np.asarray(fgrad.grad(total)(fnp.asarray(matrix))), 1e-6
    towards = RNG.standard_normal((3, 3)) + 1j * RNG.standard_normal((3, 3))
    if hermitian:
        towards = towards + towards.conj().T
    up, down = (total(fnp.asarray(matrix + s * h * towards)).item() for s in (1, -1))
    assert np.sum(got * towards).real == pytest.approx((up - down) / (2 * h), rel=1e-5)


# ---------------------------------------------------------------------------- what is refused

def test_complex_numbers_have_no_order():
    with pytest.raises(DtypeError, match="lt is not defined for c64"):
        fnp.ones(2, complex) < 1
    with pytest.raises(DtypeError, match="reduce_max is not defined for c64"):
        fnp.max(fnp.ones(2, complex))


def test_gradients_say_what_holomorphic_is_for():
    z = fnp.asarray(1 + 1j)
    with pytest.raises(GradientError, match="grad needs a real result, but .* returned c64"):
        fgrad.grad(lambda z: z * z)(z)
    with pytest.raises(GradientError, match="holomorphic=True needs a complex result"):
        fgrad.grad(abs, holomorphic=True)(z)
    with pytest.raises(GradientError, match="jacrev by the complex .* needs holomorphic=True"):
        fgrad.jacrev(lambda z: z * z)(z)
    with pytest.raises(GradientError, match="holomorphic=True needs complex arguments"):
        fgrad.jacfwd(lambda z: z * z, holomorphic=True)(1.0)


def test_programs_print_and_stages_show_pairs():
    text = fgrad.show(lambda z: z * z, fnp.asarray(Z))
    assert "mul z z" in text and "c128[3,4]" in text
    assert "f64[3,4,2]" in fgrad.show(lambda z: z * z, fnp.asarray(Z), stage="loops")


def test_dtypes_are_known_by_name():
    assert ops.zeros_like(fnp.ones(2, "c64")).dtype == C64
    assert fnp.iscomplexobj(fnp.ones(2, "c64")) and not fnp.iscomplexobj(fnp.ones(2))
    assert fnp.issubdtype(C64, np.complexfloating) and fnp.finfo("c64").eps == np.finfo("f4").eps
    assert fnp.real_if_close(np.array([1 + 0j])).dtype == "float64"


def test_random_normal_numbers_have_parts_of_half_the_variance_and_the_values_of_jax():
    got = fgrad.random.normal(fgrad.random.key(0), (3,), "complex64")
    np.testing.assert_allclose(got, [0.70994526 - 1.727077j, -0.6408772 - 1.4394435j,
                                     -0.52903765 + 0.14534172j], rtol=1e-5)


def test_lax_has_the_parts_of_complex_numbers():
    z = fnp.asarray(Z)
    assert lax.complex(lax.real(z), lax.imag(z)).tolist() == z.tolist()
    np.testing.assert_array_equal(lax.conj(z), np.conj(Z))


def test_extremes_of_complex_numbers_are_refused_at_once_and_compiled():
    for function in (fnp.argmax, fgrad.jit(fnp.argmin)):
        with pytest.raises(DtypeError, match="arg(max|min) is not defined for c"):
            function(fnp.asarray(Z))
    np.testing.assert_allclose(fnp.sinc(fnp.asarray(Z)), np.sinc(Z))
    assert np.isfinite(np.asarray(fgrad.jit(fnp.sqrt)(np.array([3e38 + 0j], "complex64")))).all()


# ---------------------------------------------------------------------------- native calls

@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (4, 5)])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_later_calls_are_native(shape, dtype):
    """The memory of complex numbers is that of their parts: constants, arguments and results."""
    z = np.resize(Z, shape).astype(dtype)
    turn = np.asarray(2 - 1j, dtype)
    f = fgrad.jit(lambda z, x: (z * turn, [abs(z) + x, fnp.conj(z).T], {"exp": fnp.exp(z)}),
                  device="cpu")
    for _ in range(4):
        a, (b, c), d = f(z, z.real)
        want = z * turn, abs(z) + z.real, z.conj().T, np.exp(z)
        for got, x in zip((a, b, c, d["exp"]), want, strict=True):
            assert got.dtype == x.dtype and got.shape == x.shape
            np.testing.assert_allclose(np.asarray(got), x, rtol=2e-5)
    assert f.cache_info().hits == 1              # the later ones began without Python
    if len(shape) == 2:                          # views are not contiguous
        np.testing.assert_allclose(np.asarray(f(z[::2, ::-1], z.real[::2, ::-1])[0]),
                                   z[::2, ::-1] * turn, rtol=2e-5)


# ---------------------------------------------------------------------------- lengths

@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lengths_of_all_magnitudes(dtype):
    """√(x² + y²) to 1.5 ulp from the least denormal to the largest number, and as NumPy beyond."""
    info = np.finfo(dtype)
    low, high = np.log2(float(info.smallest_subnormal)), np.log2(float(info.max)) - 1
    draw = np.random.default_rng(7)
    x = np.exp2(draw.uniform(low, high, 20_000)).astype(dtype)
    y = (x * np.exp2(draw.uniform(-26, 0, 20_000))).astype(dtype)
    got = np.asarray(fgrad.jit(fnp.hypot, device="cpu")(x, y))
    want = np.hypot(x.astype(np.longdouble), y.astype(np.longdouble))
    assert np.max(np.abs(got - want) / np.spacing(want.astype(dtype))) < 1.5
    odd = np.array([0, -0.0, 1, np.inf, -np.inf, np.nan], dtype)
    x, y = (v.ravel() for v in np.meshgrid(odd, odd))
    np.testing.assert_array_equal(fgrad.jit(fnp.hypot, device="cpu")(x, y), np.hypot(x, y))
    z = np.stack([x, y], -1).view(np.result_type(dtype, np.complex64))[:, 0]
    np.testing.assert_array_equal(fgrad.jit(fnp.abs, device="cpu")(z), abs(z))


def test_lengths_have_the_derivative_zero_at_zero():
    assert fgrad.grad(lambda x: fnp.hypot(x, 0.0 * x))(0.0) == 0
    assert fgrad.grad(lambda x: abs(x + 1j * x))(0.0) == 0
    fgrad.check_grads(fnp.hypot, (np.array([3.0, -0.5]), np.array([4.0, 0.7])), order=2)


def test_derivatives_at_python_numbers_that_are_complex():
    """jvp, vjp and linearize raised AttributeError; tangents and cotangents take the dtype."""
    close(fgrad.jvp(lambda z: z ** 2, (1 + 1j,), (1j,))[1], np.complex64(-2 + 2j))
    close(fgrad.vjp(lambda z: z * 3, 1 + 1j)[1](1j)[0], np.complex64(3j))
    close(fgrad.linearize(lambda z: z * z, 1 + 1j)[1](1j), np.complex64(-2 + 2j))
    wide = np.complex128(1 + 1j)
    close(fgrad.jvp(lambda z: z ** 2, (wide,), (1j,))[1], np.complex128(-2 + 2j), "complex128")
    close(fgrad.vjp(lambda z: z * 3, wide)[1](1j)[0], np.complex128(3j), "complex128")
    with pytest.raises(DtypeError, match="must have the dtype of"):
        fgrad.vjp(lambda x: x * 2, 1.0)[1](1j)


def test_complex_numbers_are_rounded_part_by_part():
    """They stayed as they were."""
    z = np.array([1.5 + 2.5j, -0.44 - 1.66j], np.complex64)
    close(fnp.round(z), np.round(z))
    close(fgrad.jit(lambda z: fnp.round(z, 1))(z), np.round(z, 1))


SPOILT = np.array([1 + 2j, np.nan, 3 - 1j], "complex64")
PLANE = np.array([[1 + 2j, 3j, 3 - 1j], [1, 2 - 1j, 4j]], "complex128")
EVEN = np.array([True, False, True])


@pytest.mark.parametrize("call", [
    ("nan_to_num", SPOILT), ("nansum", SPOILT), ("nanprod", SPOILT), ("nanmean", SPOILT),
    ("isclose", PLANE, PLANE + 1e-9), ("allclose", PLANE, PLANE + 1), ("cov", PLANE),
    ("cov", PLANE[0]), ("corrcoef", PLANE), ("correlate", PLANE[0], PLANE[1, :2]),
    ("linalg.norm", PLANE[0], 0)], ids=lambda call: call[0])
def test_statistics_of_complex_numbers_are_numpys(call):
    name, *args = call
    ours, theirs = [operator.attrgetter(name)(m)(*args) for m in (fnp, np)]
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-6)


def test_the_variance_of_chosen_complex_numbers():
    want = np.var(PLANE[0], where=EVEN)
    assert np.isclose(fnp.var(PLANE[0], where=EVEN).item(), want)
    assert fnp.mean(PLANE[0], where=EVEN).item() == np.mean(PLANE[0], where=EVEN)


def test_logarithms_of_complex_0():
    for log in (fnp.log2, fnp.log10):
        assert log(0j).real.item() == -np.inf and log(0j).imag.item() == 0


@pytest.mark.parametrize("modes", [("fwd",), ("rev",)])
def test_check_grads_compares_the_imaginary_part_too(modes):
    @fgrad.custom_jvp
    def square(z):
        return z * z
    square.defjvp(lambda zs, ts: (square(*zs), 2 * zs[0].real * ts[0]))
    with pytest.raises(fgrad.GradientError, match="is wrong at z"):
        fgrad.check_grads(square, (1 + 2j,), order=1, modes=modes)
    for f in (lambda z: z * z, abs, fnp.conj, fnp.exp):
        fgrad.check_grads(f, (np.array([1 + 2j, -0.5j]),), modes=modes)
    fgrad.check_grads(lambda x: fnp.exp(1j * x), (0.3,), modes=modes)


@pytest.mark.parametrize("run", [lambda f: f, fgrad.jit])
def test_arccosh_keeps_the_digits_and_signs_of_numpy(run):
    edge = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 1e-9, 1e9, -1e30, 1 + 1e-7]
    z = np.array([complex(a, b) for a in edge for b in edge], "complex128")
    want, found = np.arccosh(z), np.asarray(run(fnp.arccosh)(z))
    np.testing.assert_allclose(found, want, rtol=1e-14)
    assert (np.signbit(found.real) == np.signbit(want.real)).all()
    assert (np.signbit(found.imag) == np.signbit(want.imag)).all()


def test_derivatives_beside_cuts_are_of_the_side_that_the_sign_of_zero_tells():
    for z in (2 + 0j, complex(2, -0.0), 0.3 - 0.5j, -1.5 + 2j):
        z = np.complex128(z)
        want = 1 / (np.sqrt(z - 1) * np.sqrt(z + 1))
        close(fgrad.grad(fnp.arccosh, holomorphic=True)(z), want)
        close(fgrad.jit(fgrad.grad(fnp.arccosh, holomorphic=True))(z), want)


@pytest.mark.parametrize("product", ["a @ x", "x @ a", "a.conj().T @ x", "x @ a.conj().T"])
def test_products_with_vectors_go_along_the_numbers_in_memory(product):
    """The parts of numbers lie two apart: nothing was a row, and columns were gathered."""
    a = (RNG.standard_normal((70, 70)) + 1j * RNG.standard_normal((70, 70))).astype("complex64")
    x = (RNG.standard_normal(70) + 1j * RNG.standard_normal(70)).astype("complex64")

    def f(a, x):
        return eval(product)
    close(fgrad.jit(f)(a, x), f(a, x))
    real = fgrad.show(f, a.real.copy(), x.real.copy(), stage="loops")
    assert (" reduce " in fgrad.show(f, a, x, stage="loops")) == (" reduce " in real)


@pytest.mark.parametrize("m, k, n", [(1, 70, 70), (36, 130, 60), (33, 65, 17), (128, 64, 96)])
def test_products_of_all_transpose_forms(m, k, n):
    a, b, c, d = [(RNG.standard_normal(s) + 1j * RNG.standard_normal(s)).astype("complex64")
                  for s in ((m, k), (k, n), (n, k), (k, m))]
    for f in (lambda a, b, c, d: a @ b, lambda a, b, c, d: a @ c.conj().T,
              lambda a, b, c, d: d.T @ b, lambda a, b, c, d: d.conj().T @ c.T):
        close(fgrad.jit(f)(a, b, c, d), f(a, b, c, d))
