from fgrad import lax
from fgrad import numpy as fnp


def step(carry, x):
    return {"h": carry["h"] + x, "n": carry["n"] + 0.5}, x


start = {"h": fnp.zeros(3), "n": fnp.array(0)}
lax.scan(step, start, fnp.ones((5, 3)))
