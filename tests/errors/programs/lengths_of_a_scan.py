from fgrad import lax
from fgrad import numpy as fnp

lax.scan(lambda c, x: (c + x[0] * x[1], None), 0.0, (fnp.ones(4), fnp.ones(5)))
