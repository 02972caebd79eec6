import fgrad
import fgrad.numpy as fnp

y = fgrad.vmap(fnp.sum, in_axes=2)(fnp.ones((3, 4)))
