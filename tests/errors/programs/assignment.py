import fgrad.numpy as fnp

x = fnp.zeros(3)
x[0] = 1.0
