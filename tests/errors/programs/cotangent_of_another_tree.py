import fgrad

out, pull = fgrad.vjp(lambda x: {"y": x * 2}, 1.0)
pull(1.0)
