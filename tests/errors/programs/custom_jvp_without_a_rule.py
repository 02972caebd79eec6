import fgrad

@fgrad.custom_jvp
def f(x):
    return x * 2

y = fgrad.grad(f)(1.0)
