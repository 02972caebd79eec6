import fgrad
import fgrad.numpy as fnp

def loss(w, x):
    h = fnp.tanh(x @ w)
    return h.sum()

fgrad.grad(loss)(fnp.ones((4, 2)), fnp.ones((8, 3)))
