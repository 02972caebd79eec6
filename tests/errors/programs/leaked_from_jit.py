import fgrad
import fgrad.numpy as fnp

kept = []

@fgrad.jit
def f(x):
    h = fnp.sin(x)
    kept.append(h)
    return h * 2

f(fnp.ones(3))
y = kept[0] + 1
