import fgrad
import fgrad.numpy as fnp

@fgrad.jit
def f(x, n):
    return fnp.zeros(n) + x

f(1.0, fnp.array(3))
