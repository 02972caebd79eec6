from fgrad import grad, lax


def halve(x):
    return lax.while_loop(lambda x: x > 1.0, lambda x: x / 2, x)


grad(halve)(10.0)
