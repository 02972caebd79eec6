import fgrad

def loss(w, x):
    return w * x

g = fgrad.grad(loss, argnums=2)(1.0, 2.0)
