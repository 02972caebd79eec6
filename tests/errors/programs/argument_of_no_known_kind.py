import fgrad

class Model:
    def __repr__(self):
        return "Model()"

fgrad.jit(lambda m: 1.0)(Model())
