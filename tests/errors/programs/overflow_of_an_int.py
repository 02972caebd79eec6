import fgrad.numpy as fnp

y = fnp.ones(3, "uint8") + 300
