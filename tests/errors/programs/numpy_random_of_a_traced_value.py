import numpy as np
import fgrad

@fgrad.jit
def noise(scale):
    return np.random.normal(0.0, scale)

noise(fgrad.numpy.ones(3))
