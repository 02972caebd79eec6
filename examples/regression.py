"""Linear and logistic regression on tables: a straight line through many columns, with error bars.

    python examples/regression.py                                   a table drawn from a seed
    python examples/regression.py --data wine.csv --target quality  a number: linear regression
    python examples/regression.py --data iris.csv --target species  a word: logistic regression

What you learn: reading a CSV file, filling in what is missing, scaling columns; that both
regressions are one model with two losses; full-batch training by Adam inside one `jit`; and the
Hessian of the loss as error bars of the weights.
Answers: d2l chapters 3 and 4, CS231n's linear classifier, the regression labs of most courses.
"""

import argparse

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim, viz
from fgrad.data import tables


def synthetic(seed=0, n=400):
    """Columns of houses whose price is known to be 2·rooms - 1·age + noise, some ages missing."""
    rng = np.random.default_rng(seed)
    rooms, age = rng.normal(5, 1, n), rng.uniform(0, 9, n)
    return {"rooms": rooms, "age": np.where(rng.random(n) < 0.05, np.nan, age),
            "width": rng.normal(0, 1, n), "price": 2 * rooms - age + rng.normal(0, 0.5, n)}


def prepared(columns, target, seed=0):
    """(names, x f64[n,k], y, classes or None), rows shuffled; other text is left out."""
    y = columns[target]
    order = np.random.default_rng(seed).permutation(np.flatnonzero(y == y))      # NaN is not itself
    names = [name for name, c in columns.items() if name != target and c.dtype.kind in "if"]
    classes = np.unique(y) if y.dtype.kind == "U" else None
    y = y.astype("float32") if classes is None else np.searchsorted(classes, y)
    return names, tables.matrix(columns, names)[order], y[order], classes


def scaled(x, train):
    """f32[n,k]: columns of mean 0 and deviation 1 over the training rows, 0 for a missing one."""
    mean, deviation = np.nanmean(x[:train], axis=0), np.nanstd(x[:train], axis=0)
    return np.nan_to_num((x - mean) / np.where(deviation > 0, deviation, 1)).astype("float32")


def outputs(params, x):                                    # f32[n,k] → f32[n,classes], or f32[n]
    return x @ params["w"] + params["b"]


def squared(params, x, y):                                 # linear regression
    return fnp.mean((outputs(params, x) - y)**2)


def cross_entropy(params, x, y):                           # logistic regression
    return fnp.mean(nn.softmax_cross_entropy_with_integer_labels(outputs(params, x), y))


def train(loss, params, x, y, steps):
    """The parameters after full-batch steps of Adam."""
    optimizer = optim.adam(0.05)

    @fgrad.jit
    def step(params, state):
        value, grads = fgrad.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, value

    state = optimizer.init(params)
    for k in range(steps):
        params, state, value = step(params, state)
        if k % 150 == 0 or k == steps - 1:
            print(f"  step {k:4d}  loss {float(value):.4f}")
    return params


def error_bars(params, x, y):
    """Standard errors f[k] of the weights; their squares are σ² · (Hessian of Σ error² / 2)⁻¹."""
    hessian = np.asarray(fgrad.hessian(lambda w: squared({**params, "w": w}, x, y))(params["w"]))
    return np.sqrt(float(squared(params, x, y)) * np.diagonal(np.linalg.pinv(hessian * len(x) / 2)))


def run(columns, target, steps, file=None):
    """Trains on four fifths of the rows; in one line, how well it does on the rest."""
    names, x, y, classes = prepared(columns, target)
    cut = len(x) * 4 // 5
    x, kinds = scaled(x, cut), () if classes is None else (len(classes),)
    start = {"w": np.zeros((len(names), *kinds), "float32"), "b": np.zeros(kinds, "float32")}
    print(f"{target}: {len(x)} rows, columns {', '.join(names)}")
    if classes is None:
        y, unit = (y - np.mean(y[:cut])) / np.std(y[:cut]), np.std(y[:cut])
        params = train(squared, start, x[:cut], y[:cut], steps)
        for name, w, bar in zip(names, params["w"], error_bars(params, x[:cut], y[:cut])):
            print(f"  {name:24} {float(w) * unit:+10.4g} ± {bar * unit:.2g}")
        rest = float(squared(params, x[cut:], y[cut:]))
        if file:
            found, true = np.asarray(outputs(params, x[cut:])) * unit, y[cut:] * unit
            plot = viz.Plot(f"{target}, about its mean", x="true", y="predicted", size=(400, 400))
            plot.points(true, found, "test rows").line(true, true, "exact").save(file)
        return f"{target}: test R² {1 - rest / np.var(y[cut:]):.3f}, error {rest ** 0.5 * unit:.4g}"
    params = train(cross_entropy, start, x[:cut], y[:cut], steps)
    right = np.argmax(outputs(params, x[cut:]), axis=1) == y[cut:]
    return f"{target}: test accuracy {np.mean(right):.3f} over {len(classes)} classes"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FILE", help="a CSV file with a header")
    parser.add_argument("--target", help="the column to predict; the last one by default")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--picture", metavar="FILE",
                        help="write true and predicted numbers as SVG")
    parser.add_argument("--short", action="store_const", dest="steps", const=200, help="200 steps")
    args = parser.parse_args(argv)
    columns = tables.read_csv(args.data) if args.data else synthetic()
    target = args.target or list(columns)[-1]
    if target not in columns:
        parser.error(f"no column {target!r} among {', '.join(columns)}")
    result = run(columns, target, args.steps, args.picture)
    if not args.data and not args.target:                  # the same once more, as two classes
        classes = np.where(columns[target] > np.median(columns[target]), "high", "low")
        result += "; " + run({**columns, target: classes}, target, args.steps)
    print(result)


if __name__ == "__main__":
    main()
