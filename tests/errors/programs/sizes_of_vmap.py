import fgrad
import fgrad.numpy as fnp

def predict(params, x):
    return params["w"] * x

y = fgrad.vmap(predict)({"w": fnp.ones((5, 3))}, fnp.ones((4, 3)))
