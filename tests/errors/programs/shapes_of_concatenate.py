import fgrad.numpy as fnp

y = fnp.concatenate([fnp.ones((2, 3)), fnp.ones((2, 4))], axis=0)
