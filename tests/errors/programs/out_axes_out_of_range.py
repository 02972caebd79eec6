import fgrad
import fgrad.numpy as fnp

y = fgrad.vmap(lambda x: x * 2, out_axes=3)(fnp.ones(3))
