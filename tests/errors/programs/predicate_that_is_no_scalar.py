from fgrad import lax
from fgrad import numpy as fnp

x = fnp.ones(3)
lax.cond(x > 0, lambda x: x, lambda x: -x, x)
