import fgrad.numpy as fnp

y = fnp.mean(fnp.ones((8, 3)), axis=2)
