import fgrad.numpy as fnp

y = fnp.einsum("ij,jk->ik", fnp.ones((2, 3)), fnp.ones((4, 5)))
