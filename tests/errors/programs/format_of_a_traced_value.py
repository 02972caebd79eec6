import fgrad

@fgrad.jit
def f(x):
    print(f"x is {x:.3f}")
    return x

f(fgrad.numpy.ones(3))
