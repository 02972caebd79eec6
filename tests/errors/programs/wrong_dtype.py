import fgrad.numpy as fnp

y = fnp.ones(3) & fnp.ones(3)
