import fgrad
import fgrad.numpy as fnp

@fgrad.jit
def positives(x):
    return x[x > 0]

positives(fnp.ones(3))
