import fgrad.numpy as fnp

y = fnp.zeros((3, 2)).at[0].set(fnp.ones(3))
