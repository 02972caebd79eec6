from fgrad import lax
from fgrad import numpy as fnp

lax.while_loop(lambda x: x < 10, lambda x: x + 1, fnp.ones(3))
