"""Steps of random programs that work element by element.

A move takes a Writer of `strategies.py` and gives (text, the values whose error it carries on[, how
much that error may grow]), or None where no value of the program fits.
"""

import numpy as np

SMOOTH = ("fnp.tanh({})", "fnp.sin({})", "fnp.cos({})", "fnp.exp(fnp.tanh({}))",
          "fnp.log1p({0} * {0})", "fnp.sqrt({0} * {0} + 1)", "fnp.arctan({})",
          "fnp.expm1(fnp.tanh({}))", "ops.logistic({})", "ops.erf({})", "-{}", "abs({})",
          "1 / ({0} * {0} + 1)", "fnp.log({0} * {0} + 0.5)", "{} * 0.5", "{} + 1", "2 - {}",
          "fnp.maximum({}, 0)", "fnp.clip({}, -1, 1)", "fnp.sinh(fnp.sin({}))",
          "fnp.arcsin(0.9 * fnp.sin({}))", "fnp.positive({})", "fnp.logaddexp({}, 0.0)")
POWERS = ("{} ** 2", "{} ** 3", "{0} * {0}")
JUMPS = ("fnp.floor({})", "fnp.ceil({})", "fnp.round({})", "fnp.sign({})", "{} > 0", "{} <= 1",
         "{} == {}", "{} != 0", "{}.astype('int32')", "fnp.trunc({})", "fnp.isfinite({})",
         "fnp.signbit({})", "{} // 1")
INTEGERS = ("{} + 3", "{} * -2", "{} // 2", "{} % 3", "{} & 5", "{} | 1", "{} ^ 6", "{} << 1",
            "{} >> 1", "-{}", "abs({})", "~{}", "fnp.clip({}, -2, 2)", "{} > 0", "{} == 1",
            "{}.astype('bool')", "{} ** 2", "{}.astype('{float}') * 0.25", "{}.astype('int16')",
            "{}.astype('uint8')", "{}.astype('int8')", "{}.astype('int32')", "fnp.sign({})")
RING = ("{} + {}", "{} - {}", "{} * {}", "fnp.maximum({}, {})", "fnp.minimum({}, {})")
FIELD = ("{0} / ({1} * {1} + 1)", "fnp.arctan2({0}, {1} * {1} + 1)", "{0} * 0.5 + {1} * 0.5",
         "fnp.logaddexp({}, {})", "fnp.hypot({}, {})")
BOOLS = ("~{}", "{}.astype('int32')", "{}.astype('{float}')", "{} & True", "{} * 2")


def smooth(w):
    x = w.any("f")
    return x and (w.one(SMOOTH).format(x.name), [x])


def power(w):
    x = w.any("f")
    return x and (w.one(POWERS).format(x.name), [x], 3 * (1 + x.top) ** 2)


def jump(w):
    x = w.any("f", exact=True)
    return x and (w.one(JUMPS).format(x.name, x.name), [x])


def whole(w):
    x = w.any("i")
    if x is None:
        return None
    known = [how for how in INTEGERS if not (x.unsigned and "-" in how)]
    return w.one(known).format(x.name, float=w.float), [x]


def logical(w):
    x = w.any("b")
    return x and (w.one(BOOLS).format(x.name, float=w.float), [x])


def binary(w):
    x = w.any("fi")
    if x is None:
        return None
    y = w.partner(x, "fi")
    how = w.one(RING if x.kind == y.kind == "i" else RING + FIELD)
    return how.format(x.name, y.name), [x, y], 2 + x.top + y.top


def compared(w):
    x = w.any("fib", exact=True)
    if x is None:
        return None
    y = w.partner(x, exact=True)
    return w.one(("{} < {}", "{} >= {}", "{} == {}", "{} != {}")).format(x.name, y.name), [x, y]


def bits(w):
    x = w.any("ib")
    if x is None:
        return None
    y = w.partner(x, x.kind)
    how = w.one(("{} & {}", "{} | {}", "{} ^ {}", "fnp.maximum({}, {})"))
    return how.format(x.name, y.name), [x, y]


def chosen(w):
    x, c = w.any("fi"), w.any("b")
    if x is None or c is None or not w.broadcastable(x.shape, c.shape):
        return None
    y = w.partner(x, "fi")
    if not w.broadcastable(np.broadcast_shapes(x.shape, y.shape), c.shape):
        return None
    if w.coin():
        return f"fnp.where({c.name}, {x.name}, {y.name})", [x, y]
    number = w.one(("0", "1.0", "-1") if x.kind == "f" else ("0", "1"))
    return f"fnp.where({c.name}, {x.name}, {number})", [x]


def converted(w):
    x = w.any("f")
    if x is None:
        return None
    dtype = w.one([d for d in w.dtypes if d.startswith("float")])
    return f"{x.name}.astype('{dtype}')", [x], 1.0
