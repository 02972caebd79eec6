import fgrad
import fgrad.numpy as fnp

def square(x):
    return x * x

g = fgrad.grad(square)(fnp.ones(3))
