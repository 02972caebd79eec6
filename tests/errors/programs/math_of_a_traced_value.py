import math

from fgrad import grad


def wave(x):
    return math.sin(x)


grad(wave)(1.0)
