import fgrad

@fgrad.jit
def positive(x):
    if x > 0:
        return x
    return -x

positive(fgrad.numpy.ones(3).sum())
