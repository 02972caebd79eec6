import fgrad

def loss(w, x):
    return w * x

g = fgrad.grad(loss, argnames="v")
