import fgrad

t = fgrad.tree.map(lambda a, b: a + b, {"w": 1, "b": 2}, {"w": 1, "c": 2})
