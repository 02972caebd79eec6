import fgrad
import fgrad.numpy as fnp

@fgrad.jit
def row(table, i):
    return table[i]

fgrad.debug.checks(row)(fnp.ones((3, 2)), fnp.array(5))
