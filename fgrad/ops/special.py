"""Special functions as elementwise operations: one formula each, for NumPy and for compiled code.

A formula is written once, for NumPy and for compiled code (`mathematics`).  f16 is computed in f32.
Measured against a reference of 30 digits, the largest error relative to max(|f|, 1) in units of the
last place of f64 (of f32) is: lgamma 9 (9), digamma 2 (5), erfc 1 (1), log_ndtr 2 (2), ndtri 2 (2),
bessel_i0e 2 (1), bessel_i1e 1 (1);
relative to f, of erf_inv 4e-16 (4e-7).  Relies on `elementwise`; `fgrad.scipy.special` relies on
it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..scalar import polynomial
from ..types import F64, FLOATS, computed
from .elementwise import (
    Elementwise, add, div, eq, exp, gt, hypot, log, lt, mul, neg, pow, rsqrt, select, sign, sin,
    square, sub)
from .mathematics import OF_ARRAYS, OF_TERMS, Term
from .silence import quiet

# Chebyshev coefficients, the lowest first, of e⁻ˣ I₀(x) and e⁻ˣ I₁(x) / x in x / 4 - 1 up to 8, and
# of √x e⁻ˣ I(x) in 16 / x - 1 from there on; made with 40 digits.
I0_NEAR = (0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764,
    0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576,
    0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06,
    -2.670793853940612e-07, 6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09,
    -5.189795601635263e-10, 9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12,
    -4.856446783111929e-13, 7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15,
    -2.431279846547955e-16, 3.3307945188222384e-17)
I0_FAR = (0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05,
    2.8913705208347567e-06, 2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09,
    4.94060238822497e-10, 1.1889147107846439e-11, -3.1499165279632416e-11,
    -1.3215811840447713e-11, -1.7941785315068062e-12, 7.180124451383666e-13,
    3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14, -9.554846698828307e-15,
    3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16,
    -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17)
I1_NEAR = (0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499,
    0.024726449030626516, -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532,
    0.0005122859561685758, -0.00016176081582589674, 4.781565107550054e-05,
    -1.3273163656039436e-05, 3.4702513081376785e-06, -8.568720264695455e-07,
    2.0032947535521353e-07, -4.445059128796328e-08, 9.381537386495773e-09,
    -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11,
    1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13,
    -5.042185504727912e-14, 7.600684294735408e-15, -1.1055969477353862e-15,
    1.5536319577362005e-16, -2.111421214358166e-17)
I1_FAR = (0.38928811750914005, -0.009761097491361469, -0.00011058893876262371,
    -3.882564808877691e-06, -2.512236237870209e-07, -2.6314688468895196e-08,
    -3.835380385964237e-09, -5.589743462196584e-10, -1.8974958123505413e-11,
    3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14,
    4.272440016711951e-14, 1.0420276984128802e-14, -3.8144030724370075e-15,
    -1.8803547755107825e-15, 3.3082023109209285e-16, 2.96262899764595e-16, -3.209525921993424e-17,
    -4.6503053684893586e-17)

# Chebyshev coefficients, made with 40 digits: of (a + 3) / 4 exp(a²) erfc(a) from 1 on in
# 1 - 8 / (a + 3), and of erf(x) / x up to 1 in 2 x² - 1.
ERFC_FAR = (0.25198905875123545, -0.13725316921807218, 0.03145027806986967, -0.005927766705286923,
    0.0008734566773490569, -8.796404896181159e-05, 2.824730989332821e-06, 8.102194730610331e-07,
    -1.346431516284878e-07, -2.115372705510991e-10, 2.476001901934995e-09, -1.7591008813088757e-10,
    -4.166122632633187e-11, 6.029732270197919e-12, 7.565229253483512e-13, -1.7329004332483799e-13,
    -1.650642019161801e-14, 4.938210212556495e-15, 4.634979807392907e-16, -1.4397262154024152e-16,
    -1.6362323096693483e-17, 4.232242810234976e-18)
ERF_NEAR = (0.9754769393826541, -0.14226120510371365, 0.010035582187599796, -0.0005768764699767485,
    2.741993125219606e-05, -1.1043175507344507e-06, 3.8488755420345036e-08,
    -1.1808582533875466e-09, 3.2334215826050907e-11, -7.991015947004549e-13,
    1.7990725113961456e-14, -3.718635487818693e-16, 7.103599003714253e-18)

# M. Wichura, algorithm AS 241 (1988), PPND16: the normal quantile near a half, and by r = √(-log p)
# up to 5 and above.  Highest power first.
NDTRI_A = (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853,
           45921.953931549871457, 13731.693765509461125, 1971.5909503065514427,
           133.14166789178437745, 3.3871328727963666080)
NDTRI_B = (5226.4952788528545610, 28729.085735721942674, 39307.895800092710610,
           21213.794301586595867, 5394.1960214247511077, 687.18700749205790830,
           42.313330701600911252, 1)
NDTRI_C = (7.74545014278341407640e-4, 2.27238449892691845833e-2, 0.241780725177450611770,
           1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550,
           4.63033784615654529590, 1.42343711074968357734)
NDTRI_D = (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
           0.148103976427480074590, 0.689767334985100004550, 1.67638483018380384940,
           2.05319162663775882187, 1)
NDTRI_E = (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
           2.65321895265761230930e-2, 0.296560571828504891230, 1.78482653991729133580,
           5.46378491116411436990, 6.65790464350110377720)
NDTRI_F = (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
           7.86869131145613259100e-4, 1.48753612908506148525e-2, 0.136929880922735805310,
           0.599832206555887937690, 1)

# M. Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011): polynomials in
# w = -log(1 - x²), in √w for large w.  Per range of w: its upper end, where its polynomial is
# centred, the coefficients, highest first.
ERF_INV_SINGLE = (
    (5.0, 2.5, (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                -0.00125372503, -0.00417768164, 0.246640727, 1.50140941)),
    (math.inf, 3.0, (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                     -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)))
ERF_INV_DOUBLE = (
    (6.25, 3.125, (
        -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18,
        1.115787767802518096e-17,
        -1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15,
        -4.0545662729752068639e-14,
        -8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11,
        -5.4154120542946279317e-11, 1.051212273321532285e-09, -4.1126339803469836976e-09,
        -2.9070369957882005086e-08, 4.2347877827932403518e-07, -1.3654692000834678645e-06,
        -1.3882523362786468719e-05, 0.0001867342080340571352, -0.00074070253416626697512,
        -0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356)),
    (16.0, 3.25, (
        2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07,
        1.8239629214389227755e-08,
        1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06,
        1.2475304481671778723e-05,
        -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05,
        -0.0003550375203628474796,
        0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066,
        -0.0037512085075692412107,
        0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635)),
    (math.inf, 5.0, (
        -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
        -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
        2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
        -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
        7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
        1.0103004648645343977,
        4.8499064014085844221)))

# C. Lanczos, "A precision approximation of the gamma function" (1964), with g = 7 and 9 terms.
LANCZOS = (0.99999999999980993227684700473478, 676.520368121885098567009190444019,
           -1259.13921672240287047156078755283, 771.3234287776530788486528258894,
           -176.61502916214059906584551354, 12.507343278686904814458936853,
           -0.13857109526572011689554707, 9.984369578019570859563e-6, 1.50563273514931155834e-7)
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)     # B₂, B₄, …, B₁₄


def row(name, doc, formula, partials):
    """The operation of a formula(mathematics, x)."""
    @quiet
    def numpy(x):
        x = np.asarray(x)
        wide = x.astype(computed(x.dtype), copy=False)
        return np.asarray(formula(OF_ARRAYS, wide)).astype(x.dtype)

    def scalar_of(x):
        return formula(OF_TERMS, Term(x)).node
    return Elementwise(name, FLOATS, doc, numpy=numpy, scalar=scalar_of, partials=partials)


def ratio(above, below, x):
    """The quotient of two polynomials."""
    return polynomial(above, x) / polynomial(below, x)


def chebyshev(coefficients, x):
    """Σ cₖ Tₖ(x) for |x| <= 1; in f32 without the last terms, which are far below rounding."""
    return polynomial(in_powers(coefficients, x.dtype == F64), x)


@lru_cache(maxsize=None)
def in_powers(coefficients, precise):
    """The coefficients of powers, the highest first.  Their sizes add up to little more than the
    function's own, for every table here, so that Horner's scheme loses nothing.
    """
    least = 0.0 if precise else 2.0**-27 * max(abs(c) for c in coefficients)
    kept = [c for c in coefficients if abs(c) > least]
    return np.polynomial.chebyshev.cheb2poly(kept)[::-1].tolist()


# ---------------------------------------------------------------------------- areas

LARGE = 1e8                # x² + 1 is x² from here on, and may overflow


def asinh_of(m, x):
    """log1p(a + a² / (1 + √(1 + a²))) of a = |x|, which loses no digits near 0; log 2a if large."""
    a = abs(x)
    b = m.where(a > LARGE, 1.0, a)
    inside = m.where(a > LARGE, a - 1, b + b * b / (1 + m.sqrt(1 + b * b)))
    out = m.log1p(inside) + m.where(a > LARGE, math.log(2), 0 * b)
    return m.where(x < 0, -out, m.where(x == 0, x, out))


def asinh_by_x(out, x):
    """1 / √(x² + 1)"""
    return div(1.0, hypot(x, 1.0))


def acosh_of(m, x):
    """log1p(t + √(2t + t²)) of t = x - 1; log 2x if large; NaN below 1."""
    t = m.where(x > LARGE, 1.0, x) - 1
    inside = m.where(x > LARGE, x - 1, t + m.sqrt(t * (t + 2)))
    out = m.log1p(inside) + m.where(x > LARGE, math.log(2), 0 * t)
    return m.where(x < 1, math.nan, out)


def acosh_by_x(out, x):
    """1 / √(x² - 1), by factors, since x² may overflow"""
    return mul(rsqrt(sub(x, 1.0)), rsqrt(add(x, 1.0)))


# ---------------------------------------------------------------------------- gamma

def lgamma_of(m, x):
    """log |Γ(x)|: Lanczos' series from a half on, reflected below: Γ(x) Γ(1 - x) = π / sin πx."""
    reflected = x < 0.5
    z = m.where(reflected, -x, x - 1)
    series = LANCZOS[0]
    for k, c in enumerate(LANCZOS[1:], 1):
        series = series + c / (z + k)
    log_t = m.log1p(z / 7.5) + math.log(7.5)
    log_gamma = (z + 0.5 - (z + 7.5) / log_t) * log_t + m.log(series) + 0.5 * math.log(2 * math.pi)
    part = abs(x) - m.floor(abs(x))
    part = m.where(part > 0.5, 1 - part, part)               # sin πx keeps its digits
    below = math.log(math.pi) - m.log(m.sin(math.pi * part)) - log_gamma
    out = m.where(reflected, m.where(part == 0, math.inf, below), log_gamma)
    return m.where(abs(x) == math.inf, math.inf, out)


def digamma_of(m, x):
    """Γ'(x) / Γ(x): ten steps up, ψ(y) = ψ(y + 1) - 1 / y, then Stirling's series; NaN at poles.

    Below a half reflected: ψ(1 - x) - ψ(x) = π / tan πx.
    """
    reflected = x < 0.5
    y = m.where(reflected, 1 - x, x)
    steps = 1 / y
    for k in range(1, 10):
        steps = steps + 1 / (y + k)
    z = y + 10
    w = 1 / (z * z)
    tail = polynomial([b / (2 * k) for k, b in enumerate(BERNOULLI, 1)][::-1], w) * w
    out = m.log(z) - 0.5 / z - tail - steps
    part = x - m.round(x)
    mirror = m.where(part == 0, math.nan, math.pi / m.tan(math.pi * part))
    return m.where(reflected, out - mirror, out)


def trigamma(x):
    """ψ'(x) as a composition of operations, so that it has every derivative.

    As digamma: ψ'(y) = ψ'(y + 1) + 1 / y², and ψ'(1 - x) + ψ'(x) = π² / sin² πx.
    """
    reflected = lt(x, 0.5)
    y = select(reflected, sub(1.0, x), x)
    steps = div(1.0, square(y))
    for k in range(1, 10):
        steps = add(steps, div(1.0, square(add(y, float(k)))))
    z = add(y, 10.0)
    w = div(1.0, square(z))
    tail = polynomial_of(BERNOULLI[::-1], w)
    out = add(add(steps, div(1.0, z)), mul(w, add(0.5, div(tail, z))))
    mirror = square(div(math.pi, sin(mul(math.pi, select(reflected, x, 0.5)))))
    return select(reflected, sub(mirror, out), out)


def polynomial_of(coefficients, x):
    """Horner's scheme in operations, the highest power first."""
    out = mul(x, coefficients[0])
    for c in coefficients[1:-1]:
        out = mul(add(out, c), x)
    return add(out, coefficients[-1])


def zeta(s, q):
    """Hurwitz' ζ(s, q) = Σ (q + k)⁻ˢ for s > 1, q > 0, composed of operations; NaN for q <= 0.

    Ten terms, then Euler and Maclaurin's formula for the others: z¹⁻ˢ / (s - 1) + z⁻ˢ / 2 +
    Σ B₂ₖ / (2k)! · s (s + 1) … (s + 2k - 2) z⁻ˢ⁻²ᵏ⁺¹ with z = q + 10.
    """
    minus = neg(s)
    q = select(gt(q, 0.0), q, math.nan)
    out = pow(q, minus)
    for k in range(1, 10):
        out = add(out, pow(add(q, float(k)), minus))
    z = add(q, 10.0)
    power = pow(z, minus)
    out = add(out, mul(power, add(0.5, div(z, sub(s, 1.0)))))
    factor, w = div(mul(s, power), z), div(1.0, square(z))
    for k, b in enumerate(BERNOULLI, 1):
        out = add(out, mul(factor, b / math.factorial(2 * k)))
        factor = mul(mul(factor, w), mul(add(s, 2.0 * k - 1), add(s, 2.0 * k)))
    return out


def spence_of(m, x):
    """Li₂(1 - x) = -∫ log t / (t - 1) from 1 to x; NaN for x < 0.

    From 1/2 to 2 a series in u = -log x, u - u² / 4 + Σ B₂ₖ u²ᵏ⁺¹ / (2k + 1)!; elsewhere reflected:
    Li₂(z) + Li₂(1 - z) = π² / 6 - log z log(1 - z),
    Li₂(z) + Li₂(1 / z) = -π² / 6 - log²(-z) / 2.
    """
    low, high = x < 0.5, x > 2
    above = m.where(high, x - 1, 1.0)
    below = m.where(low, x, 0.25)
    u = -m.log(m.where(low, 1 - x, m.where(high, 1 + 1 / above, x)))
    odd = [b / math.factorial(2 * k + 1) for k, b in enumerate(BERNOULLI, 1)]
    core = u - u * u / 4 + u * u * u * polynomial(odd[::-1], u * u)
    both = m.where(x == 0, 0.0, m.log(below) * m.log1p(-below))
    log_above = m.log(above)
    far = -math.pi ** 2 / 6 - log_above * log_above / 2 - core
    return m.where(low, m.where(x < 0, math.nan, math.pi ** 2 / 6 - both - core),
                   m.where(high, far, core))


def spence_by_x(out, x):
    """log x / (1 - x), -1 at 1"""
    one = eq(x, 1.0)
    x = select(one, 2.0, x)
    return select(one, -1.0, div(log(x), sub(1.0, x)))


# -------------------------------------------------------------------- the normal distribution

def tail(m, a):
    """erfc(a) exp(a²) for a >= 1."""
    u = 4 / (a + 3)
    return u * chebyshev(ERFC_FAR, 1 - 2 * u)


def minus_square(m, a):
    """exp(-a²) for 0 <= a < 32, without the error of a² magnified.

    The square of the first half of a's digits is exact; what they leave is so little that a few
    terms are its exponential.
    """
    scale = 2.0**21 if a.dtype == F64 else 2.0**8
    high = m.floor(a * scale) * (1 / scale)
    rest = (high - a) * (high + a)
    return m.exp(-high * high) * polynomial((1 / 24, 1 / 6, 1 / 2, 1.0, 1.0), rest)


def erfc_of(m, x):
    """1 - erf(x), and not by subtraction above 1."""
    size = abs(x)
    a = m.where(size < 30, m.where(size > 1, size, 1.0), 30.0)
    far = minus_square(m, a) * tail(m, a)
    near = m.where(size < 1, x, 0.0)
    out = m.where(size < 1, 1 - near * chebyshev(ERF_NEAR, 2 * near * near - 1),
                  m.where(x < 0, 2 - far, far))
    return m.where(x == x, out, x)                           # NaN stays


def log_ndtr_of(m, x):
    """log of the normal distribution: by erfc(a) exp(a²) below -√2, by log1p above √2."""
    z = x * math.sqrt(0.5)
    a = m.where(abs(z) > 1, abs(z), 1.0)
    low = m.log(0.5 * tail(m, a)) - a * a
    high = m.log1p(-0.5 * minus_square(m, m.where(a < 30, a, 30.0)) * tail(m, a))
    middle = m.log1p(-0.5 * (1 - m.erf(z)))
    return m.where(z < -1, low, m.where(z > 1, high, middle))


def ndtri_of(m, p):
    """The x below which a share p of the normal distribution lies; ±inf at 0 and 1, NaN outside."""
    q = p - 0.5
    near = q * ratio(NDTRI_A, NDTRI_B, 0.180625 - q * q)
    rest = m.where(q < 0, p, 1 - p)
    r = m.sqrt(-m.log(rest))
    middle = ratio(NDTRI_C, NDTRI_D, r - 1.6)
    far = m.where(rest == 0, math.inf, ratio(NDTRI_E, NDTRI_F, m.where(rest == 0, 5.0, r) - 5))
    out = m.sign(q) * m.where(r <= 5, middle, far)
    return m.where(abs(q) <= 0.425, near, out)


def erf_inv_of(m, x):
    """The inverse of erf; ±inf at ±1, NaN outside."""
    ranges = ERF_INV_DOUBLE if x.dtype == F64 else ERF_INV_SINGLE
    w = -m.log1p(-(x * x))
    root = m.sqrt(m.where(w < ranges[0][0], ranges[0][0], w))
    out = None
    for k, (end, centre, coefficients) in reversed(list(enumerate(ranges))):
        part = polynomial(coefficients, (root if k else w) - centre)
        out = part if out is None else m.where(w < end, part, out)
    return m.where(abs(x) == 1, x * math.inf, out * x)


# ---------------------------------------------------------------------------- Bessel functions

def bessel(m, x, near, far):
    """Chebyshev's series of |x| up to 8, and of √|x| times the function above."""
    a = abs(x)
    small, large = m.where(a < 8, a, 8.0), m.where(a < 8, 8.0, a)
    beyond = chebyshev(far, 16 / large - 1) / m.sqrt(large)
    return a < 8, chebyshev(near, small / 4 - 1), beyond


def bessel_i0e_of(m, x):
    """exp(-|x|) I₀(x)"""
    return m.where(x == x, m.where(*bessel(m, x, I0_NEAR, I0_FAR)), x)


def bessel_i1e_of(m, x):
    """exp(-|x|) I₁(x)"""
    inside, near, beyond = bessel(m, x, I1_NEAR, I1_FAR)
    return m.where(inside, near * x, beyond * m.sign(x))


def i1e_by_x(out, x):
    """d/dx e⁻ˣ I₁ = e⁻ˣ (I₀ - I₁ / x) - sign(x) e⁻ˣ I₁; I₁(x) / x is a half at 0."""
    zero = eq(square(x), 0.0)
    quotient = select(zero, 0.5, div(out, select(zero, 1.0, x)))
    return sub(sub(bessel_i0e(x), quotient), mul(sign(x), out))


asinh = row("asinh", "The inverse of sinh.", asinh_of, [asinh_by_x])
acosh = row("acosh", "The inverse of cosh; NaN below 1.", acosh_of, [acosh_by_x])
lgamma = row("lgamma", "log |Γ(x)|.", lgamma_of, [lambda out, x: digamma(x)])
digamma = row("digamma", "Γ'(x) / Γ(x); NaN at the poles.", digamma_of,
              [lambda out, x: trigamma(x)])
spence = row("spence", "-∫ log t / (t - 1) from 1 to x; NaN below 0.", spence_of, [spence_by_x])
erfc = row("erfc", "1 - erf(x), and not by subtraction where that is small.", erfc_of,
           [lambda out, x: mul(-2 / math.sqrt(math.pi), exp(neg(square(x))))])
log_ndtr = row("log_ndtr", "The log of the share of the normal distribution below x.", log_ndtr_of,
               [lambda out, x: mul(1 / math.sqrt(2 * math.pi),
                                   exp(sub(mul(-0.5, square(x)), out)))])
ndtri = row("ndtri", "The x below which a share p of the normal distribution lies.", ndtri_of,
            [lambda out, p: mul(math.sqrt(2 * math.pi), exp(mul(0.5, square(out))))])
erf_inv = row("erf_inv", "The inverse of erf; ±inf at ±1, NaN outside.", erf_inv_of,
              [lambda out, x: mul(math.sqrt(math.pi) / 2, exp(square(out)))])
bessel_i0e = row("bessel_i0e", "exp(-|x|) I₀(x), of a modified Bessel function.", bessel_i0e_of,
                 [lambda out, x: sub(bessel_i1e(x), mul(sign(x), out))])
bessel_i1e = row("bessel_i1e", "exp(-|x|) I₁(x), of a modified Bessel function.", bessel_i1e_of,
                 [i1e_by_x])
