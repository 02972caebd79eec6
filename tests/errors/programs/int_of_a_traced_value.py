import fgrad

@fgrad.jit
def f(x):
    n = int(x)
    return x * n

f(1.5)
