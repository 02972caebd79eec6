import fgrad
import fgrad.numpy as fnp

fgrad.jvp(fnp.sin, (fnp.ones(3),), (fnp.ones(2),))
