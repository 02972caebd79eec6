import fgrad

@fgrad.jit
def total(x):
    return sum(a for a in x)

total(fgrad.numpy.array(1.0))
