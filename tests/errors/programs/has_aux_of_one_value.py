import fgrad

def loss(w):
    return w * w

g = fgrad.value_and_grad(loss, has_aux=True)(1.0)
