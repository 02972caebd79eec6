import fgrad
import fgrad.numpy as fnp

@fgrad.jit
def last(x):
    return x[3]

last(fnp.ones(3))
