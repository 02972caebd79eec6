"""fgrad.scipy.special against stored values of 17 digits, and its derivatives."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.errors import ArgumentError, GradientError
from fgrad.scipy import special

INF = float("inf")
# name: (arguments, values by another implementation).
VALUES = {
    "gammaln": (((0.1, 0.5, 1.5, 3.7, 100.5, -0.3, -2.7,),),
        (2.252712651734206, 0.5723649429247, -0.12078223763524526, 1.428072326665388,
         361.43554046777757, 1.4648400508576027, -0.0714070853156458,)),
    "digamma": (((0.1, 0.5, 1.5, 3.7, 100.5, -0.3, -2.7,),),
        (-10.423754940411076, -1.9635100260214235, 0.03648997397857652, 1.1671535393615113,
         4.605174352581845, 2.1133097796353972, -1.1153471291406887,)),
    "erfc": (((-2.0, 0.3, 1.1, 5.0, 12.0, 26.0,),),
        (1.9953222650189528, 0.6713732405408726, 0.11979493042591832, 1.5374597944280347e-12,
         1.3562611692059047e-64, 5.663192408856145e-296,)),
    "ndtri": (((1e-300, 1e-10, 0.02, 0.3, 0.5, 0.97,),),
        (-37.0470962993612, -6.361340902404056, -2.053748910631823, -0.5244005127080409, 0.0,
         1.8807936081512509,)),
    "log_ndtr": (((-40.0, -7.0, -1.0, 0.0, 1.2, 3.0,),),
        (-804.6084420137539, -27.384307498811076, -1.8410216450092634, -0.6931471805599453,
         -0.12224636048741773, -0.0013508099647481925,)),
    "i0": (((-3.0, 0.0, 1.5, 12.0,),),
        (4.880792585865024, 1.0, 1.6467231897728907, 18948.92534929631,)),
    "i1": (((-3.0, 0.0, 1.5, 12.0,),),
        (-3.9533702174026093, 0.0, 0.9816664285779079, 18141.348781638833,)),
    "i0e": (((-3.0, 0.0, 1.5, 200.0,),),
        (0.24300035416182536, 1.0, 0.36743360905415834, 0.028227159949111912,)),
    "i1e": (((-3.0, 0.0, 1.5, 200.0,),),
        (-0.19682671329730084, 0.0, 0.21903938742092574, 0.028156503394832916,)),
    "expit": (((-3.0, 0.0, 2.0,),),
        (0.04742587317756678, 0.5, 0.8807970779778823,)),
    "logit": (((0.1, 0.5, 0.9,),),
        (-2.197224577336219, 0.0, 2.1972245773362196,)),
    "ndtr": (((-9.0, -1.0, 0.0, 2.0,),),
        (1.1285884059538324e-19, 0.15865525393145707, 0.5, 0.9772498680518208,)),
    "entr": (((0.0, 0.5, 2.0, -1.0,),),
        (0.0, 0.34657359027997264, -1.3862943611198906, -INF,)),
    "gamma": (((0.5, 4.0, 5.5, -1.5,),),
        (1.7724538509055159, 6.0, 52.34277778455352, 2.363271801207355,)),
    "factorial": (((0.0, 1.0, 5.0, 3.5,),),
        (1.0, 1.0, 120.0, 11.63172839656745,)),
    "betaln": (((0.5, 3.0, 20.0,), (1.5, 2.0, 70.0,),),
        (0.4515827052894547, -2.4849066497880004, -48.12239743895197,)),
    "beta": (((0.5, 3.0, 2.0,), (1.5, 2.0, 7.0,),),
        (1.5707963267948963, 0.08333333333333333, 0.017857142857142856,)),
    "poch": (((0.5, 3.0,), (2.0, 0.5,),),
        (0.75, 1.6616754852239215,)),
    "zeta": (((2.0, 3.5, 10.0, 30.0,), (1.0, 0.5, 3.0, 0.1,),),
        (1.6449340668482266, 11.620804663441898, 1.8012627818085337e-05, 9.999999999999983e+29,)),
    "polygamma": (((0.0, 1.0, 2.0, 5.0,), (1.5, 0.3, 7.0, 2.0,),),
        (0.03648997397857652, 12.245364546107734, -0.023530472985855234, 2.0811674381338965,)),
    "gammainc": (((0.5, 3.0, 20.0, 100.0, 0.1,), (0.2, 9.0, 19.0, 130.0, 0.01,),),
        (0.47291074313446196, 0.9937678048936227, 0.43939261060849183, 0.9972495916326934,
         0.6626212599544796,)),
    "gammaincc": (((0.5, 3.0, 20.0, 100.0, 0.1,), (0.2, 9.0, 19.0, 130.0, 5.0,),),
        (0.5270892568655381, 0.006232195106377317, 0.5606073893915082, 0.002750408367306518,
         0.00014393896584673387,)),
    "betainc": (((0.5, 3.0, 20.0, 100.0,), (1.5, 2.0, 7.0, 50.0,), (0.2, 0.9, 0.5, 0.7,),),
        (0.549815144247899, 0.9477, 0.0046776533126831055, 0.8054481662277535,)),
    "xlogy": (((0.0, 1.0, 2.0,), (0.0, 3.0, 0.5,),),
        (0.0, 1.0986122886681098, -1.3862943611198906,)),
    "xlog1py": (((0.0, 1.0, 2.0,), (-1.0, 3.0, 0.5,),),
        (0.0, 1.3862943611198906, 0.8109302162163288,)),
    "rel_entr": (((0.0, 1.0, 2.0, 1.0,), (0.0, 3.0, 0.5, 0.0,),),
        (0.0, -1.0986122886681098, 2.772588722239781, INF,)),
    "kl_div": (((0.0, 1.0, 2.0,), (2.0, 3.0, 0.5,),),
        (2.0, 0.90138771133189, 1.2725887222397811,)),
    "expi": (((-3.0, -0.2, 0.4, 5.0, 60.0),),
        (-0.013048381094197046, -1.2226505441838929, 0.10476521861932497, 40.185275355803185,
         1.9361822139292765e+24)),
    "exp1": (((0.1, 1.0, 1.5, 30.0),),
        (1.8229239584193906, 0.2193839343955205, 0.1000195824066327, 3.021552010688813e-15)),
    "expn": (((0.0, 1.0, 2.0, 5.0, 40.0), (0.7, 0.2, 3.0, 1.0, 0.5)),
        (0.7094075768448708, 1.2226505441838929, 0.010641925085272829, 0.07045423746172039,
         0.015350163158933868)),
    "spence": (((0.0, 0.1, 0.7, 1.0, 1.6, 30.0),),
        (1.6449340668482264, 1.2997147230049588, 0.3261295100754763, 0.0, -0.5281071740446668,
         -7.280084707384272)),
    "comb": (((5.0, 5.0, 30.0, 2.0, 4.5), (2.0, 0.0, 7.0, 3.0, 1.5)),
        (10.0, 1.0, 2035800.0, 0.0, 6.5625)),
    "gammasgn": (((1.5, -0.5, -1.5,),),
        (1.0, -1.0, 1.0,)),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_are_those_stored(name, dtype):
    args, want = VALUES[name]
    args = [np.array(a, dtype) for a in args]
    if dtype == "float32" and name == "ndtri":
        args, want = [a[1:] for a in args], want[1:]         # 1e-300 is 0
    got = getattr(special, name)(*args)
    assert got.dtype == dtype
    bound = 3e-5 if dtype == "float32" else 2e-12
    np.testing.assert_allclose(got, np.array(want), rtol=bound, atol=bound)


@pytest.mark.parametrize("name", ["gammaln", "erfc", "ndtri", "log_ndtr", "i0e", "i1e", "polygamma",
                                  "gammainc", "betainc", "rel_entr", "expi", "expn", "spence",
                                  "comb"])
def test_compiled_and_batched_it_is_the_same(name):
    args = [np.array(a, "float64") for a in VALUES[name][0]]
    function = getattr(special, name)
    want = function(*args)
    for made in (fgrad.jit(function), fgrad.vmap(function), fgrad.jit(fgrad.vmap(function))):
        np.testing.assert_allclose(made(*args), want, rtol=1e-12)


DERIVATIVES = {
    "gammaln": (special.gammaln, [0.3, 2.5, -1.3]),
    "digamma": (special.digamma, [0.3, 2.5, 30.0]),
    "erfc": (special.erfc, [-1.0, 0.5, 2.0]),
    "ndtri": (special.ndtri, [0.05, 0.4, 0.9]),
    "log_ndtr": (special.log_ndtr, [-8.0, -1.0, 2.0]),
    "i0": (special.i0, [-1.0, 0.5, 9.0]),
    "i1": (special.i1, [-1.0, 0.5, 9.0]),
    "zeta": (lambda x: special.zeta(x, 2.5), [1.5, 3.0, 7.0]),
    "zeta by q": (lambda q: special.zeta(3.0, q), [0.5, 3.0, 7.0]),
    "polygamma": (lambda x: special.polygamma(2, x), [0.5, 3.0, 7.0]),
    "gammainc": (lambda x: special.gammainc(np.array(2.5), x), [0.5, 3.0, 7.0]),
    "betainc": (lambda x: special.betainc(np.array(2.5), np.array(1.5), x), [0.1, 0.5, 0.9]),
    "betaln": (lambda x: special.betaln(x, 2.0 * x), [0.5, 3.0, 7.0]),
    "expi": (special.expi, [-1.0, 0.5, 2.5]),
    "expn": (lambda x: special.expn(np.arange(3.0), x), [0.5, 1.5, 3.0]),
    "Si": (lambda x: special.sici(x)[0], [-3.0, 0.5, 0.0]),
    "Ci": (lambda x: special.sici(x)[1], [-3.0, 0.5, 9.0]),
    "spence": (special.spence, [0.1, 0.7, 3.0]),
    "comb": (lambda x: special.comb(x, 1.5), [2.5, 3.0, 7.2]),
    "logit": (special.logit, [0.1, 0.5, 0.9]),
    "kl_div": (lambda p: special.kl_div(p, 0.5), [0.1, 0.5, 0.9]),
    "logsumexp": (special.logsumexp, [0.1, 0.5, 0.9]),
    "log_softmax": (special.log_softmax, [0.1, 0.5, 0.9]),
    "gamma": (special.gamma, [0.5, 2.5, -0.5]),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_agree_with_finite_differences(name):
    function, x = DERIVATIVES[name]
    fgrad.check_grads(function, (np.array(x),))


def test_sine_and_cosine_integrals_are_those_stored():
    x = np.array([-3.0, 0.5, 2.0, 2.5, 40.0])
    si, ci = special.sici(x)
    np.testing.assert_allclose(si, [-1.84865253, 0.49310742, 1.60541298, 1.77852017, 1.58698512],
                               rtol=1e-8)
    np.testing.assert_allclose(ci, [0.11962979, -0.17778408, 0.42298083, 0.2858712, 0.01902001],
                               rtol=3e-7)
    for limit, want in ((0.0, (0.0, -np.inf)), (np.inf, (np.pi / 2, 0.0))):
        assert [v.item() for v in special.sici(np.array(limit))] == list(want)


def test_integrals_at_their_limits():
    assert special.expi(np.array([0.0, np.inf])).tolist() == [-np.inf, np.inf]
    assert special.expn(np.array([0, 1, 3, 3]), np.array([0.0, 0.0, 0.0, np.inf])).tolist() == [
        np.inf, np.inf, 0.5, 0.0]
    assert np.isnan(special.expn(np.array([-1.0, 1.5, 1.0]), np.array([1.0, 1.0, -1.0]))).all()
    assert np.isnan(special.spence(np.array(-0.1)))


def test_sums_of_bernoulli_numbers_are_powers():
    b = np.asarray(special.bernoulli(8), "float64")
    np.testing.assert_allclose(b, [1, -1 / 2, 1 / 6, 0, -1 / 30, 0, 1 / 42, 0, -1 / 30], rtol=1e-6)
    assert special.bernoulli(0).tolist() == [1.0]
    with pytest.raises(ArgumentError):
        special.bernoulli(-1)


def test_things_are_chosen_again_where_that_is_allowed():
    assert special.comb(5, np.arange(4), repetition=True).tolist() == [1.0, 5.0, 15.0, 35.0]
    with pytest.raises(ArgumentError):
        special.comb(5, 2, exact=True)


def test_the_derivative_beside_a_zero_is_finite():
    for function in (special.xlogy, special.xlog1py, special.rel_entr):
        out = fgrad.grad(lambda x: function(0.0 * x, x))(0.0)
        assert np.isfinite(out)
    assert abs(fgrad.grad(special.i1e)(0.0) - 0.5) < 1e-6


@pytest.mark.parametrize("run", [lambda f: f, fgrad.jit])
def test_x_log_y_has_its_derivatives_where_x_is_zero(run):
    by_both = run(fgrad.grad(special.xlogy, (0, 1)))
    np.testing.assert_allclose(by_both(0.0, 2.0), [np.log(2.0), 0.0], rtol=1e-6)
    np.testing.assert_allclose(run(fgrad.grad(special.xlog1py))(0.0, 2.0), np.log(3.0), rtol=1e-6)
    mixed = run(fgrad.grad(fgrad.grad(special.xlogy), 1))
    assert mixed(0.0, 2.0) == 0.5
    assert run(special.xlogy)(0.0, np.array([0.0, -1.0, np.inf])).tolist() == [0.0, 0.0, 0.0]
    assert run(fgrad.grad(special.entr))(0.0) == np.inf
    assert run(fgrad.grad(special.entr))(1.0) == -1.0


# dP/da, by another implementation of the series.
A, X = np.array([0.02, 0.7, 3.0, 40.0, 144.0]), np.array([0.01, 2.0, 1.5, 55.0, 119.0])
BY_A = np.array([-3.7529984494852506, -0.17167839642772312, -0.18363042561309537,
                 -0.005590954001569388, -0.0031235980990822927])


@pytest.mark.parametrize("name, sign", [("gammainc", 1), ("gammaincc", -1)])
def test_derivatives_by_the_parameter_are_those_stored(name, sign):
    slope = fgrad.vmap(fgrad.grad(getattr(special, name)))
    np.testing.assert_allclose(slope(A, X), sign * BY_A, rtol=1e-11)
    np.testing.assert_allclose(fgrad.jit(slope)(A, X), sign * BY_A, rtol=1e-11)
    got = slope(A.astype("float32"), X.astype("float32"))
    assert got.dtype == "float32"
    np.testing.assert_allclose(got, sign * BY_A, rtol=3e-4)


@pytest.mark.parametrize("x", [0.02, 0.4, 0.97])
def test_the_incomplete_beta_function_varies_with_its_parameters(x):
    a, b = np.array([0.3, 2.5, 30.0]), np.array([7.0, 1.5, 0.4])
    fgrad.check_grads(lambda a, b: special.betainc(a, b, x), (a, b), order=1)
    for k in (0, 1):
        slope = lambda x: fgrad.grad(lambda a, b: special.betainc(a, b, x).sum(), k)(a, b)
        fgrad.check_grads(slope, (np.array(x),), order=1)


def test_at_the_borders_the_parameter_changes_nothing():
    slope = fgrad.grad(special.gammainc)
    assert [slope(2.0, x).item() for x in (0.0, 1e4, np.inf)] == [0.0, 0.0, 0.0]
    by_both = fgrad.grad(special.betainc, (0, 1))
    assert [g.item() for x in (0.0, 1.0) for g in by_both(2.0, 3.0, x)] == [0.0] * 4


def test_a_derivative_that_is_not_known_is_refused():
    with pytest.raises(GradientError):
        fgrad.grad(fgrad.grad(special.gammainc))(2.0, 1.0)
    with pytest.raises(ArgumentError):
        special.factorial(3, exact=True)


def test_limits_are_those_of_the_function():
    assert special.gammaln(np.array([0.0, -1.0, np.inf])).tolist() == [np.inf] * 3
    assert np.isnan(special.digamma(np.array([0.0, -2.0]))).all()
    assert special.ndtri(np.array([0.0, 1.0])).tolist() == [-np.inf, np.inf]
    assert np.isnan(special.ndtri(np.array([-0.1, 1.1]))).all()
    assert special.gammainc(2.0, np.array([0.0, np.inf])).tolist() == [0.0, 1.0]
    assert special.betainc(2.0, 3.0, np.array([0.0, 1.0])).tolist() == [0.0, 1.0]
    assert np.isnan(special.gammainc(np.array([-1.0]), 1.0)).all()
    assert special.erfc(np.array([-np.inf, np.inf])).tolist() == [2.0, 0.0]
    for name in ("erfc", "gammaln", "digamma", "ndtri", "log_ndtr", "i0e", "i1e"):
        assert np.isnan(getattr(special, name)(np.array(np.nan))), name


@pytest.mark.parametrize("how", [fgrad.jit, lambda f: f])
def test_derivatives_have_their_limits(how):
    slope = lambda f, x: how(fgrad.grad(f))(x).item()
    assert slope(fnp.cbrt, 0.0) == slope(special.erfinv, 1.0) == slope(special.erfinv, -1.0) == INF
    for dtype in (np.float16, np.float32, np.float64):
        assert slope(special.i1e, dtype(0)) == pytest.approx(0.5, rel=1e-6)
    for f in (fnp.arcsinh, fnp.arccosh):
        assert slope(f, np.float16(1000)) == np.float16(0.001)
        assert slope(f, np.float32(1e30)) == pytest.approx(1e-30)


def test_logsumexp_takes_factors_signs_and_a_mask():
    x = fnp.array([1000.0, 1000.0, 3.0])
    out, sign = special.logsumexp(x, b=fnp.array([1.0, -2.0, 0.0]), return_sign=True)
    assert (out, sign) == (1000.0, -1.0)
    masked = special.logsumexp(x, where=fnp.array([False, False, True]))
    assert masked == 3.0
    assert special.logsumexp(fnp.zeros((2, 0)), axis=1).tolist() == [-np.inf, -np.inf]
    assert special.logsumexp(x.reshape(3, 1), axis=0, keepdims=True).shape == (1, 1)


def test_half_precision_is_kept():
    x = np.array([0.5, 2.5], "float16")
    for function in (special.gammaln, special.digamma, special.erfc, special.i0e):
        assert function(x).dtype == np.float16


def test_where_polygamma_is_nan_its_slope_is():
    slope = fgrad.grad(lambda x: special.polygamma(1, x))
    assert np.isnan(slope(-0.5)) and slope(1.5) == pytest.approx(-0.8287966)
    assert fgrad.grad(lambda x: special.polygamma(0, x))(-0.5) == pytest.approx(8.934803)
    assert np.isnan(special.gammasgn(np.nan))
