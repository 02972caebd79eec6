import fgrad.numpy as fnp

y = fnp.where(fnp.ones(3) > 0, fnp.ones(3), fnp.zeros(2))
