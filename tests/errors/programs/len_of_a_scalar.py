import fgrad

fgrad.grad(lambda x: x * len(x))(1.0)
