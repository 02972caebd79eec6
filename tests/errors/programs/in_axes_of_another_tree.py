import fgrad
import fgrad.numpy as fnp

def predict(params, x):
    return params["w"] @ x

y = fgrad.vmap(predict, in_axes=({"v": None}, 0))({"w": fnp.ones((2, 3))}, fnp.ones((4, 3)))
