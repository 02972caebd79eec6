import fgrad.numpy as fnp

y = fnp.stack([fnp.ones(3), fnp.ones(4)])
