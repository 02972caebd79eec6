import fgrad
import fgrad.numpy as fnp

@fgrad.jit
def f(x):
    for k in range(2500):
        x = x * 0.5
    return x

f(fnp.ones(3))
