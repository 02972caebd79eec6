import math
import fgrad

@fgrad.jit
def f(x):
    return x * math.sin(x)

f(fgrad.numpy.ones(()))
