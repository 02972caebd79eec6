import fgrad
import fgrad.numpy as fnp

y = fgrad.vmap(lambda a, b: a * b, in_axes=(0,))(fnp.ones(3), fnp.ones(3))
