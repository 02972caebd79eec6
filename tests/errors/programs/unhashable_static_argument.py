import fgrad

f = fgrad.jit(lambda x, sizes: x * len(sizes), static_argnames="sizes")
f(1.0, [1, 2])
