import fgrad

def square(x):
    return x * x

g = fgrad.grad(square)(3)
