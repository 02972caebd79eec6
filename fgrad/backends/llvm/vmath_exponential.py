"""Exponentials, logarithms and what is made of them, as formulas over `vmath_values`.

Each function takes values and returns a value; special values come out of the arithmetic where they
can, of a select or a seldom branch where they cannot.  Unless a table says otherwise, the
polynomials are minimax fits (Remez exchange at 150 bits, coefficients rounded one after another)
made for this file; the splitting of arguments is textbook (Cody and Waite, Muller).  Relies on
`vmath_values`; `vmath` names the functions and states their measured errors.
"""

from __future__ import annotations

import math

from .vmath_values import (FORMATS, LOOKS_UP, Value, absolute, any_from, any_lane, at_least,
                           at_most, copysign, fma, horner, instead_if, intrinsic, lookup, seldom,
                           select, unless)

LN2 = {"f32": (0.693147182464599609375, -1.9046542121259337e-09),          # high and low part
       "f64": (0.6931471805599453094, 2.3190468138462996e-17)}

#   (e^r - 1 - r) / r^2 on |r| <= ln2/2, for the relative error of e^r - 1; errors 2^-25 and 2^-54
EXP = {"f32": (0.49999997, 0.16666517, 0.041667555, 0.0083699785, 0.0013862547),
       "f64": (0.5000000000000011, 0.16666666666666674, 0.04166666666651012, 0.008333333333321294,
               0.001388888895141117, 0.00019841269889351839, 2.4801483304779087e-05,
               2.7557239244458533e-06, 2.763415656950364e-07, 2.511120397630789e-08)}

#   (e^r - 1 - r) / r^2 on |r| <= ln2/16, for the relative error of e^r; error 2^-25
EXP_SHORT = (0.50006455, 0.16666858)

#   steps from one power of two to the next; those between are looked up
STEPS = {"f32": 8 if LOOKS_UP else 1, "f64": 1}

#   f32: (log(1 + f) - f + f^2/2) / f^3 on [sqrt(1/2) - 1, sqrt(2) - 1]
#   f64: (2 atanh(s) - 2 s) / s^3 as a function of s^2, with s = f / (2 + f)
LOG = {"f32": (0.33333313, -0.25000167, 0.20002224, -0.16659366, 0.14209552, -0.12549764,
               0.121091016, -0.109160505, 0.05337732),
       "f64": (0.666666666666671, 0.3999999999954091, 0.28571428719108855, 0.22222200641511647,
               0.18183468690172397, 0.15316268078820747, 0.14775571835512588)}

#   ((2 atanh(s) - 2 s) / s^3 - 2/3) / s^2 as a function of s^2
LOG_TAIL = (0.39999999999999997, 0.28571428571435054, 0.22222222219600218, 0.18181818651305995,
            0.1538457003202285, 0.13335865058497645, 0.11683115153079851, 0.1192600686633368)

#   log2((1 + s) / (1 - s)) / s as a function of s^2, and 2^r on |r| <= 1/2: for pow of f32
LOG2 = (2.8853900817902027, 0.9617966732001804, 0.5770836115707918, 0.4116711346115025,
        0.3407593618466545)
EXP2 = (0.9999999999525822, 0.6931471805307481, 0.2402265127908777, 0.055504109899484455,
        0.00961801704784435, 0.0013333411463497106, 0.00015472414737288786, 1.531904100466964e-05)

#   f32: (P(x^2) - 1) / x^2 and Q(x^2), x P / Q being tanh(x / 2) and tanh(atanh(erf x) / 2), and
#   where that is `doubled` it is 1: relative errors 2^-26 and 2^-25 of the doubled ones
TANH = ((0.029767064, 0.000114043665),
        (2.0, 0.2262007, 0.0024115397, 2.4448932e-06), 9.0109)
ERF = ((0.4503929, 0.14453104, 0.013165373, 0.0012759535),
       (1.7724539, 0.8249284, 0.29634076, 0.0383859, 0.0057464889, 0.000101569130), 3.9193)

#   erf(x) / x as a function of x^2 on [0, 1]; e^(x^2) erfc(x) of t = (x - 3) / (x + 3) on [1, 6]
ERF_SMALL = (1.1283791670955126, -0.3761263890318334, 0.11283791670936534, -0.026866170641867457,
             0.005223977595814714, -0.0008548325434278869, 0.0001205527882208111,
             -1.4924431063282897e-05, 1.6443700570385313e-06, -1.6180406101566134e-07,
             1.3600736079489655e-08, -7.577386670851123e-10)
ERFC = (0.17900115118138826, -0.3262335600432588, 0.24560380170687812, -0.15011593652474783,
        0.07166583802754206, -0.02439248351054752, 0.00426927411210148, 0.0007084764159006241,
        -0.0005945302969947537, 5.107624320843929e-05, 7.262488968642989e-05,
        -5.764264672066774e-06, -6.377546014488887e-06)

#   of 2^n e^r, r at most ln2/2, n from -low to size - low - 1 is usual: (low, size)
WINDOW = {"f32": (96, 128), "f64": (768, 1024)}

#   e^x and e^-x are normal numbers of f32 for x up to this
NORMAL_POWERS = 87.3

#   e^x is 0 below, and infinite above; sinh and cosh are infinite above the third
EXP_RANGE = {"f32": (-104.0, 89.0, 89.5), "f64": (-746.0, 710.0, 710.6)}


# -- exponentials -------------------------------------------------------------------------------


def split(x, exponent, steps=1):
    """(bits, n, r): x = n ln2/steps + r - what `rest` takes off, |r| <= ln2/2/steps, and bits' low
    ones are those of n + steps exponent.

    r is exact, since the product of n and the high part of ln2 is in the fma.
    """
    magic = x.format.magic + steps * exponent
    shifted = fma(x, steps / math.log(2), magic)
    n = shifted - magic
    return shifted.bits(), n, fma(n, -LN2[x.kind][0] / steps, x)


def rest(n, r, steps=1):
    """r without n times the low part of ln2/steps."""
    return fma(n, -LN2[r.kind][1] / steps, r)


def eighths(bits, low=0):
    """2^(n/8 - low), where bits' low ones are those of n; of f32.  The bits of the last three are
    looked up, less what adding them to the exponent puts behind it.
    """
    f = FORMATS["f32"]
    table = [f.pattern(2.0 ** (k / 8 - low)) - (k << f.mantissa - 3) for k in range(8)]
    return (lookup(table, bits) + (bits << f.mantissa - 3)).as_float()


def raised(r, t):
    """t e^r, for |r| <= ln2/16; of f32."""
    return fma(fma(horner(r, EXP_SHORT), r * r, r), t, t)


def times_power(y, bits):
    """y 2^n in two exact factors, right for n from -2 bias to bias + 1, overflow and denormals too.

    bits: the low ones are those of n + 2 bias, so that halves of them are exponents as stored.
    """
    m = y.format.mantissa
    half = bits >> 1
    return y * (half << m).as_float() * ((bits - half) << m).as_float()


def power_of_e(x, doublings=0, extra=None, scaled=times_power):
    """e^(x + extra) 2^doublings, for x in EXP_RANGE; extra is a correction far below x.

    scaled(y, bits): y 2^n, see `times_power`.
    """
    steps = STEPS[x.kind]
    bits, n, r = split(x, 2 * x.format.bias + doublings, steps)
    r = rest(n, r, steps) if extra is None else r + rest(n, extra, steps)
    if steps == 1:
        return scaled(horner(r, (1.0, 1.0, *EXP[x.kind])), bits)
    return scaled(raised(r, eighths(bits & 7)), bits >> 3)


def times_tiny_power(y, bits):
    """`times_power` for y from 0.9 to 2, as fast where the result is a denormal number.

    A multiplication with such a result takes the processor a hundred cycles.  Its bits are the
    integer that y 2^(n + bias - 1 + mantissa) rounds to, by an addition.
    """
    f = y.format
    count, least = bits & (4 * f.bias + 3), f.bias + 1             # n + 2 bias; n of normal ones
    tiny = (count < least) & (y > 0.0)                             # but not NaN
    large = times_power(y, select(tiny, 2 * f.bias, bits))
    units = y * ((select(tiny, count + (f.mantissa - 1), f.bias) << f.mantissa).as_float())
    whole = units + 1 / f.epsilon
    return select(tiny, (whole.bits() - f.pattern(1 / f.epsilon)).as_float(), large)


def any_power(x):
    """e^x of every x.

    Where it is 0 nothing tiny is computed: a lane of such takes the processor a hundred cycles, and
    masked scores of attention are full of them.
    """
    first, last, _ = EXP_RANGE[x.kind]
    zero = x < first
    power = power_of_e(select(zero, 0.0, at_most(x, last)), scaled=times_tiny_power)
    return select(zero, 0.0, power)


def exp(x):
    """Powers with an n = x / ln2 outside of WINDOW are seldom: a branch, which gives the same bits.

    The others get n by an addition of integers, to the exponent of 2^-low of the rest.
    """
    if STEPS[x.kind] > 1:
        return looked_up_exp(x)
    f, (low, size) = x.format, WINDOW[x.kind]
    bits, n, r = split(x, low)

    def usual():
        power = horner(rest(n, r), [c * 2.0 ** -low for c in (1.0, 1.0, *EXP[x.kind])])
        return (power.bits() + (bits << f.mantissa)).as_float()
    seldom_n = any_from(bits ^ f.pattern(f.magic), size, unsigned=True)
    return unless(seldom_n, usual, lambda: any_power(x))


def looked_up_exp(x):
    """`exp` by `eighths`, of f32, whose powers are normal numbers.  Where it is 0, n becomes -127,
    and 2^n is 0 as it is stored.
    """
    f, steps = x.format, STEPS[x.kind]
    low, end = f.bias - 1, f.pattern(NORMAL_POWERS)

    def outside(x):
        return any_from(absolute(x).bits(), end)

    def with_zeros():
        zero = x < EXP_RANGE[x.kind][0]
        found = split(select(zero, -f.bias * math.log(2), x), low, steps)
        return *found, outside(select(zero, 0.0, x))
    found = split(x, low, steps)
    never = Value(x.body, "false", "flag")
    bits, n, r, still = instead_if(outside(x), [*found, never], with_zeros)
    return unless(still, lambda: raised(rest(n, r, steps), eighths(bits, low)),
                  lambda: seldom("any_power", x))


def squared(r):
    """r^2, or 0 where it is nothing beside r: as a denormal number it would take the processor a
    hundred cycles, and so would its product with r; arguments such as e^-x are full of them.
    """
    some = select(absolute(r) < 2.0 ** (1 - r.format.bias // 3), 0.0, r)
    return some * some


def quarter_expm1(x):
    """(e^x - 1) / 4, which overflows nowhere that sinh does not; for x from -40 up."""
    f = x.format
    bits, n, r = split(x, f.bias - 2)
    scale, lost = (bits << f.mantissa).as_float(), n * -LN2[x.kind][1]      # 2^(n-2)
    whole = r + lost
    tail = fma(squared(whole), horner(whole, EXP[x.kind]), lost)
    return fma(scale, tail, fma(scale, r, scale - 0.25))


def where_tiny(x, y):
    """x where x and a function with slope 1 at 0 round alike, else the function's value y."""
    return select(absolute(x) < x.format.epsilon / 4, x, y)


def expm1(x):
    inside = at_least(at_most(x, EXP_RANGE[x.kind][1]), -40.0)
    return where_tiny(x, 4.0 * quarter_expm1(inside))


def sinh(x):
    q = quarter_expm1(at_most(absolute(x), EXP_RANGE[x.kind][2]))
    return where_tiny(x, copysign(2.0 * (q + q / fma(4.0, q, 1.0)), x))


def cosh(x):
    half = power_of_e(at_most(absolute(x), EXP_RANGE[x.kind][2]), doublings=-1)
    return half + 0.25 / half


def doubled(x, p, q, end):
    """tanh(2 atanh(a / b)) = 2ab / (a^2 + b^2), an odd function that is 1 from `end` up.

    a / b = x (1 + x^2 p(x^2)) / q(x^2); what it errs by matters less and less towards 1.
    """
    x = at_least(at_most(x, end), -end)
    z = x * x
    a, b = fma(x * z, horner(z, p), x), horner(z, q)
    return a * (b + b) / fma(b, b, a * a)


def tanh(x):
    """f32: `doubled`.  f64: e / (e + 2), e = e^(2|x|) - 1, the quotient corrected by the rounding
    error of e + 2."""
    if x.kind == "f32":
        return doubled(x, *TANH)
    q = quarter_expm1(2.0 * at_most(absolute(x), 22.0))
    d = q + 0.5
    inverse = 1.0 / d
    y = q * inverse
    lost = (d - 0.5) - q                                        # exact while q < 1/2
    y = fma(fma(y, lost, fma(-y, d, q)), inverse, y)
    return where_tiny(x, copysign(y, x))


def logistic(x):
    """1 / (1 + e), and e / (1 + e) for x < 0, with e = e^-|x|: no overflow, and exact tails."""
    e = exp(-absolute(x))
    return select(x < 0.0, e, 1.0) / (e + 1.0)


def erf(x):
    """f32: `doubled`.  f64: a polynomial on |x| < 1, else 1 - e^(-x^2) g(|x|)."""
    if x.kind == "f32":
        return doubled(x, *ERF)
    a = at_most(absolute(x), 6.0)
    z = a * a
    tail = power_of_e(-z) * horner((a - 3.0) / (a + 3.0), ERFC)
    return copysign(select(a < 1.0, a * horner(z, ERF_SMALL), 1.0 - tail), x)


# -- logarithms ---------------------------------------------------------------------------------


def decompose(x):
    """(m, k, places) with x = m 2^k, m from sqrt(1/2) to sqrt(2), for positive normal x.

    places: k + bias + 1 as an integer.  k is a float.
    """
    f = x.format
    root = f.pattern(math.sqrt(0.5))
    above = x.bits() - root
    places = (above + ((f.bias + 1) << f.mantissa)) >> f.mantissa
    m = ((above & ((1 << f.mantissa) - 1)) + root).as_float()
    k = (places | f.pattern(f.magic)).as_float() - (f.magic + f.bias + 1)
    return m, k, places


def normal(x):
    """(x as a normal number, what its exponent is too large by)."""
    f = x.format
    small, places = x < f.smallest, f.mantissa + 2.0
    return select(small, x * 2.0 ** places, x), select(small, places, 0.0, x.kind)


def log_of(f, k, square_of):
    """log(1 + f) + k ln2, for f from sqrt(1/2) - 1 to sqrt(2) - 1.  square_of: `squared`, or what
    it is where no f is tiny.
    """
    high, low = LN2[f.kind]
    square = square_of(f)
    if f.kind == "f32":
        y = fma(square * f, horner(f, LOG["f32"]), k * low)
        return fma(k, high, fma(-0.5, square, y) + f)
    s = f / (f + 2.0)
    z = square_of(s)
    half = 0.5 * square
    y = fma(s, half + z * horner(z, LOG["f64"]), k * low)       # log(1 + f) - f + f^2/2
    return fma(k, high, f - (half - y))


def log_of_power(m, k):
    """log(m 2^k), for m from sqrt(1/2) to sqrt(2)."""
    return log_of(m - 1.0, k, lambda f: f * f)


def log_edges(x, u, y):
    """y, but the edges of a logarithm where u is 0, negative, infinite or NaN (x has the last)."""
    edge = select(u < 0.0, math.nan, select(u.equals(0.0), -math.inf, x))
    return select((u > 0.0) & (u < math.inf), y, edge)


def log(x):
    """Zero, denormals, negative numbers, infinity and NaN are seldom, and take a branch."""
    def of_normal():
        m, k, _ = decompose(x)
        return log_of_power(m, k)

    def of_any():
        scaled, exponent = normal(x)
        m, k, _ = decompose(scaled)
        return log_edges(x, x, log_of_power(m, k - exponent))
    return unless(any_lane(outside_normal(x)), of_normal, of_any)


def outside_normal(x, end=math.inf):
    """Is x no positive normal number below `end`?  In one comparison: of bits that wrap around."""
    f = x.format
    least, half = f.pattern(f.smallest), 1 << (f.width - 1)
    return x.bits() + (half - least) >= f.pattern(end) - least - half


def log1p(x):
    """The logarithm of u = 1 + x, its rounding error carried into the fraction."""
    f = x.format
    u = x + 1.0
    lost = select(x > 1.0, 1.0 - (u - x), x - (u - 1.0))
    m, k, places = decompose(u)
    unit = ((2 * f.bias + 1 - places) << f.mantissa).as_float()             # 2^-k
    large = 1 / f.epsilon ** 2

    def of_usual():
        return copysign(log_of((m - 1.0) + lost * unit, k, squared), x)

    def of_any():
        carried = select(absolute(x) < large, lost * unit, 0.0)
        y = copysign(log_of((m - 1.0) + carried, k, squared), x)
        return log_edges(x, u, y)
    return unless(any_lane(outside_normal(u, large)), of_usual, of_any)


# -- powers -------------------------------------------------------------------------------------


def double_log(x):
    """(high, low) with high + low = log x to about 2^-64 of it, for positive f64 x.

    log x = k ln2 + 2 s + s^3 (2/3 + s^2 R(s^2)), s = f / (2 + f): in double-double but for R.
    """
    scaled, exponent = normal(x)
    m, k, _ = decompose(scaled)
    k = k - exponent
    f = m - 1.0
    d = f + 2.0
    inverse = 1.0 / d
    s = f * inverse
    s_low = fma(-s, f - (d - 2.0), fma(-s, d, f)) * inverse
    z = s * s
    z_low = fma(2.0 * s, s_low, fma(s, s, -z))
    tail = z * horner(z, LOG_TAIL)
    t = tail + 2 / 3
    t_low = tail - (t - 2 / 3) + 3.700743415417188e-17          # 2/3 beyond f64
    v = z * t
    v_low = fma(z, t_low, fma(z_low, t, fma(z, t, -v)))
    w = s * v
    w_low = fma(s, v_low, fma(s_low, v, fma(s, v, -w)))
    return sum_of_logs(k, s, s_low, w, w_low)


def sum_of_logs(k, s, s_low, w, w_low):
    """k ln2 + 2 s + w as (high, low), the terms in falling size."""
    high, low = 0.693147180559890330, 5.49792301870720995e-14   # k times the high part is exact
    a, b = k * high, 2.0 * s
    first = a + b
    second = first + w
    rest = (b - (first - a)) + (w - (second - first))
    rest = rest + fma(k, low, fma(2.0, s_low, w_low))
    total = second + rest
    return total, rest - (total - second)


def power_f64(a, y):
    """a^y for a >= 0 in f64, but for the corners that `pow` takes."""
    high, low = double_log(a)
    high = log_limits(a, high)
    product = y * high
    exact = absolute(product) < 1100.0
    rest = select(exact, fma(y, high, -product) + y * low, 0.0)
    start, end, _ = EXP_RANGE["f64"]
    return power_of_e(at_least(at_most(product, end), start), extra=rest)


def log_limits(a, y):
    """y, but -inf for a = 0 and inf for a = inf."""
    return select(a.equals(0.0), -math.inf, select(a.equals(math.inf), math.inf, y))


def power_f32(a, y):
    """2^(y log2 a) for f32 a >= 0, computed in f64: the result is rounded once."""
    a, y = a.wide(), y.wide()
    m, k, _ = decompose(a)
    s = (m - 1.0) / (m + 1.0)
    exponent = y * log_limits(a, fma(s, horner(s * s, LOG2), k))
    exponent = at_least(at_most(exponent, 130.0), -160.0)
    f = FORMATS["f64"]
    shifted = exponent + (f.magic + f.bias)
    power = (shifted.bits() << f.mantissa).as_float()
    r = exponent - (shifted - (f.magic + f.bias))
    return (horner(r, EXP2) * power).narrow("f32")


def pow(x, y):
    """x^y with the corners of IEEE 754: 1^y = x^0 = 1, even of NaN; NaN for x < 0, y no integer."""
    a = absolute(x)
    result = power_f32(a, y) if x.kind == "f32" else power_f64(a, y)
    result = select(a.equals(1.0) & y.equals(y), 1.0, result)
    whole = intrinsic("trunc", y).equals(y)
    half = 0.5 * y
    odd = whole & ~intrinsic("trunc", half).equals(half)
    negative = copysign(1.0, x) < 0.0
    result = select(negative & odd, -result, result)
    undefined = (x < 0.0) & (a < math.inf) & ~whole
    result = select(undefined, math.nan, result)
    result = select(x.unordered(y), x + y, result)
    return select(x.equals(1.0) | y.equals(0.0), 1.0, result)
