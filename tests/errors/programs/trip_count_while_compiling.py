from fgrad import jit
from fgrad import numpy as fnp


@jit
def total(x, n):
    for i in range(n):
        x = x + i
    return x


total(fnp.ones(3), fnp.array(4))
