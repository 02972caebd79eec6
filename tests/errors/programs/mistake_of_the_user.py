import fgrad
import fgrad.numpy as fnp

def loss(params, x):
    return fgrad.vmap(lambda row: params["v"] @ row)(x).sum()

fgrad.jit(fgrad.grad(loss))({"w": fnp.ones(3)}, fnp.ones((2, 3)))
