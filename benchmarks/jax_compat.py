"""Compares fgrad with jax, function by function: values, dtypes, gradients, vmap.

    python -m benchmarks.jax_compat [docs/jax-compat.md]

The calls are in `jax_names`.  Prints the share that agrees, and writes the table of all calls.
"""

import importlib
import sys
import warnings

import numpy as np

from benchmarks.jax_names import GROUPS, REASONS

RELATIVE = 2e-4            # f32, through a few operations and their derivatives


def main(path=None):
    """Compares every call; writes the table to `path`."""
    warnings.simplefilter("ignore")
    results = [(group, row[0], compared(group, row))
               for group, rows in GROUPS.items() for row in rows]
    text = document(results)
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    bad = [(f"{g}.{n}", r) for g, n, r in results if r != "agrees"]
    for name, result in bad:
        print(f"{name:32} {result}")
    print(f"{len(results) - len(bad)} of {len(results)} calls agree "
          f"({100 * (1 - len(bad) / len(results)):.1f} %)")


def compared(group, row):
    """ "agrees", "missing", or how the call differs."""
    name, *args = row
    named = args.pop() if args and isinstance(args[-1], dict) else {}
    jax, fgrad = [importlib.import_module(m) for m in ("jax", "fgrad")]
    theirs, ours = [getattr(place(m, group), name, None) for m in (jax, fgrad)]
    if ours is None:
        return "missing"
    if group == "random":
        theirs, ours = [drawn(f, m.random.key(0)) for f, m in ((theirs, jax), (ours, fgrad))]
    try:
        return difference(jax, fgrad, theirs, ours, args, named)
    except Exception as error:                   # whatever it raises is a row of the table
        return f"raises {type(error).__name__}: {str(error).splitlines()[0][:90]}"


def place(module, group):
    """What has the functions of a group: a module, or what a module calls so."""
    try:
        return importlib.import_module(f"{module.__name__}.{group}")
    except ModuleNotFoundError:
        first, _, rest = group.partition(".")
        return getattr(importlib.import_module(f"{module.__name__}.{first}"), rest)


def drawn(function, key):
    """The function of everything but the key."""
    return lambda *args, **named: function(key, *args, **named)


def difference(jax, fgrad, theirs, ours, args, named):
    """ "agrees", or what differs first."""
    want = theirs(*on(jax, args), **named)
    got = ours(*on(fgrad, args), **named)
    problem = values_differ(got, want)
    if problem:
        return problem
    places = [k for k, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype == np.float32]
    if not places or not isinstance(leaves(want)[0], np.ndarray):
        return "agrees"
    slope = gradient(jax, theirs, args, named, places)
    problem = slope and values_differ(gradient(fgrad, ours, args, named, places), slope)
    if problem:
        return f"gradient: {problem}"
    try:
        mapped = [batched(m, f, args, named, places[0]) for m, f in ((jax, theirs), (fgrad, ours))]
    except Exception:                            # jax cannot: shapes that depend on values
        return "agrees"
    return f"vmap: {values_differ(*mapped[::-1])}" if values_differ(*mapped[::-1]) else "agrees"


def on(module, args):
    """The arguments as arrays of the library; lists too."""
    array = importlib.import_module(f"{module.__name__}.numpy").asarray
    return [array(a) if isinstance(a, np.ndarray) else
            [array(b) if isinstance(b, np.ndarray) else b for b in a]
            if isinstance(a, list) and a and isinstance(a[0], np.ndarray) else a for a in args]


def leaves(x):
    """NumPy arrays of a result: keys by their words, other things as they are."""
    if isinstance(x, (tuple, list)) and not isinstance(x, str):
        return [leaf for part in x for leaf in leaves(part)]
    if "key" in str(getattr(x, "dtype", "")):
        x = importlib.import_module("jax").random.key_data(x)
    if type(x).__name__ == "Key":
        x = x.data
    return [np.asarray(x) if hasattr(x, "__array__") else x]


def values_differ(got, want):
    """How results differ: in number, shape, dtype or value; "" where they agree."""
    got, want = leaves(got), leaves(want)
    if len(got) != len(want):
        return f"{len(got)} results, not {len(want)}"
    for x, y in zip(got, want):
        if not isinstance(y, np.ndarray):
            if x != y:
                return f"{x}, not {y}"
            continue
        x = np.asarray(x)
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"{x.dtype}{list(x.shape)}, not {y.dtype}{list(y.shape)}"
        real = y.dtype.kind == "f"
        scale = max(1.0, float(np.max(np.abs(y[np.isfinite(y)]), initial=0))) if real else 1.0
        if not np.allclose(x, y, rtol=RELATIVE, atol=RELATIVE * scale, equal_nan=real):
            return "other values"
    return ""


def gradient(module, function, args, named, places):
    """The gradients of Σ out cos(index) by all float arrays, or None where jax has none."""
    numpy = importlib.import_module(f"{module.__name__}.numpy")

    def total(*xs):
        found = dict(zip(places, xs))
        out = function(*[found.get(k, a) for k, a in enumerate(on(module, args))], **named)
        floats = [x for x in flat(out) if getattr(x, "dtype", None) == np.float32]
        return sum((numpy.sum(x * np.cos(np.arange(x.size, dtype="float32")).reshape(x.shape))
                    for x in floats), 0.0 * numpy.sum(xs[0]))
    try:
        xs = on(module, [args[k] for k in places])
        return list(module.grad(total, tuple(range(len(places))))(*xs))
    except Exception:
        if module.__name__ == "jax":
            return None
        raise


def flat(x):
    """The arrays of a result."""
    return [leaf for part in x for leaf in flat(part)] if isinstance(x, (tuple, list)) else [x]


def batched(module, function, args, named, place):
    """The function under vmap over the first axis of three copies, each scaled."""
    array = importlib.import_module(f"{module.__name__}.numpy").asarray
    whole = on(module, args)
    stack = np.stack([args[place] * np.float32(s) for s in (1.0, 0.99, 0.98)])
    return module.vmap(lambda x: function(*[x if k == place else a for k, a in enumerate(whole)],
                                          **named))(array(stack))


def document(results):
    """The table in Markdown."""
    jax = importlib.import_module("jax")
    good = sum(r == "agrees" for _, _, r in results)
    lines = ["# fgrad and jax, function by function", "",
             "Made by `python -m benchmarks.jax_compat docs/jax-compat.md` with jax "
             f"{jax.__version__}.  Values, dtypes, gradients and vmap of {len(results)} calls: "
             f"{good} agree ({100 * good / len(results):.1f} %).", ""]
    for group in GROUPS:
        lines += [f"## {group}", "", "| function | result |", "|---|---|"]
        seen = {}
        for g, name, result in results:
            if g == group:
                seen.setdefault(name, []).append(result)
        for name in sorted(seen):
            worst = next((r for r in seen[name] if r != "agrees"), "agrees")
            reason = REASONS.get(f"{group}.{name}") if worst != "agrees" else None
            text = worst.replace("|", "\\|")
            lines.append(f"| {name} | {text}{': ' + reason if reason else ''} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main(*sys.argv[1:2])
