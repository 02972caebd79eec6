import fgrad.numpy as fnp

y = fnp.broadcast_to(fnp.ones(3), (2, 4))
