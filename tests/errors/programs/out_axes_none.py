import fgrad
import fgrad.numpy as fnp

y = fgrad.vmap(lambda x: x * 2, out_axes=None)(fnp.ones(3))
