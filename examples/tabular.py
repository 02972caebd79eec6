"""Linear and logistic regression on tables: a straight line through many columns, with error bars.

    python examples/tabular.py                                    a table drawn here from a seed
    python examples/tabular.py --data wine.csv --target quality   a column of numbers: linear regression
    python examples/tabular.py --data iris.csv --target species   a column of words: logistic regression

What it shows: reading a CSV file, filling in what is missing, scaling columns by the training rows only,
full-batch training by Adam inside one `jit`, and the Hessian of the loss as error bars of the weights.
"""

import argparse

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim
from fgrad.data import tables


def synthetic(seed=0, n=400):
    """Columns of houses whose price is known to be 2·rooms - 1·age + noise, some ages missing."""
    rng = np.random.default_rng(seed)
    rooms, age = rng.normal(5, 1, n), rng.uniform(0, 9, n)
    return {"rooms": rooms, "age": np.where(rng.random(n) < 0.05, np.nan, age),
            "width": rng.normal(0, 1, n), "price": 2 * rooms - age + rng.normal(0, 0.5, n)}


def prepared(columns, target, seed=0):
    """(names, x f32[n,k], y, classes or None), rows shuffled; other columns of text are left out."""
    y = columns[target]
    order = np.random.default_rng(seed).permutation(np.flatnonzero(y == y))      # NaN is not itself
    names = [name for name, c in columns.items() if name != target and c.dtype.kind in "if"]
    classes, y = np.unique(y, return_inverse=True) if y.dtype.kind == "U" else (None, y.astype("float32"))
    return names, tables.matrix(columns, names)[order], y[order], classes


def scaled(x, train):
    """f32[n,k]: columns of mean 0 and deviation 1 over the training rows; the mean where one is missing."""
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
    state = optimizer.init(params)

    @fgrad.jit
    def step(params, state):
        value, grads = fgrad.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, value

    for k in range(steps):
        params, state, value = step(params, state)
        if k % 150 == 0 or k == steps - 1:
            print(f"  step {k:4d}  loss {float(value):.4f}")
    return params


def error_bars(params, x, y):
    """Standard errors f32[k] of the weights of a linear regression: σ² · (Hessian of Σ error² / 2)⁻¹."""
    curvature = fgrad.hessian(lambda w: squared({**params, "w": w}, x, y))(params["w"]) * (len(x) / 2)
    return np.sqrt(float(squared(params, x, y)) * np.diagonal(np.linalg.pinv(np.asarray(curvature))))


def run(columns, target, args):
    """Trains on four fifths of the rows; in one line, how well it does on the rest."""
    names, x, y, classes = prepared(columns, target)
    cut = len(x) * 4 // 5
    x, kinds = scaled(x, cut), () if classes is None else (len(classes),)
    start = {"w": np.zeros((len(names), *kinds), "float32"), "b": np.zeros(kinds, "float32")}
    print(f"{target}: {len(x)} rows, columns {', '.join(names)}")
    if classes is None:
        unit = np.std(y[:cut])
        y = (y - np.mean(y[:cut])) / unit
        params = train(squared, start, x[:cut], y[:cut], args.steps)
        for name, w, bar in zip(names, params["w"], error_bars(params, x[:cut], y[:cut])):
            print(f"  {name:24} {float(w) * unit:+10.4g} ± {bar * unit:.2g}")
        rest = float(squared(params, x[cut:], y[cut:]))
        return f"{target}: test R² {1 - rest / np.var(y[cut:]):.3f}, error {rest ** 0.5 * unit:.4g}"
    params = train(cross_entropy, start, x[:cut], y[:cut], args.steps)
    right = fnp.mean(outputs(params, x[cut:]).argmax(1) == y[cut:])
    return f"{target}: test accuracy {float(right):.3f} over {len(classes)} classes"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FILE", help="a CSV file with a header")
    parser.add_argument("--target", help="the column to predict; the last one by default")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--short", action="store_const", dest="steps", const=200, help="200 steps only")
    args = parser.parse_args()
    columns = tables.read_csv(args.data) if args.data else synthetic()
    target = args.target or list(columns)[-1]
    if target not in columns:
        parser.error(f"no column {target!r} among {', '.join(columns)}")
    result = run(columns, target, args)
    if not args.data and not args.target:                  # the same table once more, as two classes
        classes = np.where(columns[target] > np.median(columns[target]), "high", "low")
        result += "; " + run({**columns, target: classes}, target, args)
    print(result)


if __name__ == "__main__":
    main()
