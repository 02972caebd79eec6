import fgrad.numpy as fnp

y = fnp.ones(3)[0, 1]
