import numpy as np
import fgrad

@fgrad.grad
def f(x):
    return np.array([x, 1.0]).sum()

f(2.0)
