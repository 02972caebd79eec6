import fgrad
import fgrad.numpy as fnp

kept = []

@fgrad.jit
def step(x):
    fgrad.vmap(lambda a: kept.append(a) or a)(x)
    return x

step(fnp.ones(3))
y = kept[0] + 1
