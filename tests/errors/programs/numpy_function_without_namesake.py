import numpy as np
import fgrad

@fgrad.jit
def f(x):
    np.savetxt("x.txt", x)
    return x

f(np.ones(3))
