"""Loops that change parts of what they carry give what the same steps give one by one."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fgrad.numpy as fnp
from fgrad import jit, lax
from tests.strategies import examples

ROWS, COLUMNS = 6, 3


def drawn(seed, count):
    """The text of a random step: (vector, vector, matrix), k → the next three, something else."""
    r = random.Random(seed)
    known = {"v": ["a", "b"], "m": ["c"]}
    places = ["k", "k - 1", "(k * 3) % 6", "k + 1", "2"]

    def at():
        return r.choice(places)

    def number():
        v, m = r.choice(known["v"]), r.choice(known["m"])
        return r.choice([f"{v}[{at()}]", f"{m}[{at()}, 1]", f"{v}.sum() * 0.1", "1.5"])

    def vector():
        v, m = r.choice(known["v"]), r.choice(known["m"])
        return r.choice([f"({v} * 0.5 + {number()})", f"{v}[::-1]", f"{m}[:, k % 3]"])

    def row():
        m = r.choice(known["m"])
        return r.choice([f"{m}[{at()}]", f"({m}[{at()}] * 0.5 + {number()})", f"{m}.mean(axis=0)"])

    def change():
        v, m = r.choice(known["v"]), r.choice(known["m"])
        how = r.choice(["set", "add"])
        return r.choice([
            ("v", f"{v}.at[{at()}].{how}({number()})"),
            ("v", f"lax.dynamic_update_slice({v}, {vector()}[:{r.choice([1, 4])}], ({at()},))"),
            ("v", vector()),
            ("v", f"lax.fori_loop(0, 3, lambda j, d: d.at[j].{how}(d[k] * 0.5), {v})"),
            ("m", f"{m}.at[{at()}].{how}({row()})"),
            ("m", f"{m}.at[:, k % 3].{how}({vector()})"),
            ("m", f"lax.dynamic_update_slice({m}, {row()}[None], ({at()}, 0))")])
    lines = ["def step(carry, k):", "    a, b, c = carry"]
    for n in range(count):
        kind, text = change()
        lines.append(f"    {kind}{n} = {text}")
        known[kind].append(f"{kind}{n}")
    out = [r.choice(known[kind][-2:]) for kind in "vvm"]
    lines.append(f"    return ({', '.join(out)}), {number()}")
    return "\n".join(lines)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@examples(25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 4))
def test_a_loop_gives_what_its_steps_give(device, seed, count, length):
    space = {"fnp": fnp, "lax": lax}
    exec(drawn(seed, count), space)
    rng = np.random.default_rng(seed)
    start = tuple(fnp.array(rng.normal(size=s)) for s in ((ROWS,), (ROWS,), (ROWS, COLUMNS)))
    carry, ys = start, []
    for k in range(length):
        carry, y = space["step"](carry, k)
        ys.append(y)
    run = jit(lambda c: lax.scan(space["step"], c, fnp.arange(length)), device=device)
    again = jit(lambda c: run(c), device=device, donate_argnums=0)
    for got in (run(start), again(tuple(x + 0 for x in start))):
        for x, want in zip((*got[0], got[1]), (*carry, fnp.stack(ys)), strict=True):
            np.testing.assert_allclose(np.asarray(x), np.asarray(want), rtol=1e-12, atol=1e-12)
