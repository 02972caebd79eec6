import fgrad.numpy as fnp

y = fnp.zeros(3, dtype="float128x")
