import numpy as np
import fgrad

@fgrad.grad
def f(x):
    table = np.zeros((2, 2))
    table[0, 0] = x
    return table.sum()

f(1.0)
