import fgrad
import fgrad.numpy as fnp

def loss(x):
    return fnp.where(x > 0, fnp.sqrt(x), 0.0).sum()

fgrad.debug.nans(fgrad.grad(loss))(fnp.array([0.0, 4.0]))
