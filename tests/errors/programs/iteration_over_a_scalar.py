import fgrad

@fgrad.jit
def total(x):
    return sum(x)

total(fgrad.numpy.array(1.0))
