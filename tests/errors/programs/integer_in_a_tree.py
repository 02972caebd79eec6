import fgrad
import fgrad.numpy as fnp

params = {"w": fnp.ones(3), "step": fnp.array(0)}
g = fgrad.grad(lambda p: (p["w"] * p["step"]).sum())(params)
