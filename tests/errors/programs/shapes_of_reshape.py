import fgrad.numpy as fnp

y = fnp.ones(12).reshape(5, -1)
