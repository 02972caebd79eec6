import numpy as np
import fgrad

@fgrad.grad
def f(x):
    y = np.zeros(3)
    np.multiply(x, 2.0, out=y)
    return x.sum()

f(np.ones(3))
