import fgrad.numpy as fnp

a, b = fnp.ones((8, 3)), fnp.ones(4)
c = fnp.tanh(a + b)
