"""Rows: softmax, logsumexp, layer normalization with its gradient, and sums over each axis."""

from ..workload import Workload


def softmax(x, np):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def logsumexp(x, np):
    m = np.max(x, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(x - m), axis=-1)) + m[:, 0]


def layernorm(x, gain, bias, np):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * gain + bias


def row_function(function, torch_function, tinygrad_function):
    """The styles of function(*arrays, np)."""
    return {"jax":   lambda lib, *a: (lib.jit(lambda *a: function(*a, lib.numpy)), *a),
            "numpy": lambda lib, *a: (lambda *a: function(*a, lib), *a),
            "torch": lambda lib, *a: (torch_function(lib), *a),
            "tinygrad": lambda lib, *a: (lambda *a: tinygrad_function(*a).realize(), *a)}


def tinygrad_layernorm(x, gain, bias):
    return x.layernorm(eps=1e-5) * gain + bias


def torch_layernorm(torch):
    return lambda x, gain, bias: torch.nn.functional.layer_norm(x, x.shape[-1:], gain, bias)


def jax_layernorm_grad(lib, *args):
    def gradient(x, gain, bias, ct):
        _, pull_back = lib.vjp(lambda *a: layernorm(*a, lib.numpy), x, gain, bias)
        return pull_back(ct)
    return lib.jit(gradient), *args


def autograd_layernorm_grad(lib, *args):
    def gradient(x, gain, bias, ct):
        pull_back, _ = lib.make_vjp(lambda *a: layernorm(*a, lib.numpy), (0, 1, 2))(x, gain, bias)
        return pull_back(ct)
    return gradient, *args


def torch_layernorm_grad(torch, *args):
    def gradient(x, gain, bias, ct):
        arrays = [a.detach().requires_grad_() for a in (x, gain, bias)]
        return torch.autograd.grad(torch_layernorm(torch)(*arrays), arrays, ct)
    return gradient, *args


LAYERNORM_GRAD = {"jax": jax_layernorm_grad, "autograd": autograd_layernorm_grad,
                  "torch": torch_layernorm_grad}


def normal(*shapes):
    return lambda rng: tuple(rng.standard_normal(shape, "float32") for shape in shapes)


def nbytes(shape):
    """The bytes of an f32 matrix."""
    return 4 * shape[0] * shape[1]


def sums(axis):
    """The styles of a sum over an axis."""
    return {"jax":   lambda lib, x: (lib.jit(lambda x: lib.numpy.sum(x, axis=axis)), x),
            "numpy": lambda lib, x: (lambda x: lib.sum(x, axis=axis), x),
            "tinygrad": lambda lib, x: (lambda x: x.sum(axis).realize(), x),
            "torch": lambda lib, x: (lambda x: lib.sum(x, dim=axis), x)}


SOFTMAX = row_function(softmax, lambda torch: lambda x: torch.softmax(x, -1),
                       lambda x: x.softmax(-1))
LOGSUMEXP = row_function(logsumexp, lambda torch: lambda x: torch.logsumexp(x, -1),
                         lambda x: x.logsumexp(-1))
LAYERNORM = row_function(layernorm, torch_layernorm, tinygrad_layernorm)
AXES = {"0": 0, "1": 1, "all": None}
SQUARE, BATCH = (4096, 4096), (2048, 768)
SHAPES = {"1024x1024": (1024, 1024), "64x50257": (64, 50257)}

WORKLOADS = [
    *[Workload(f"softmax_{size}", SOFTMAX, normal(shape), reads=nbytes(shape), writes=nbytes(shape))
      for size, shape in SHAPES.items()],
    *[Workload(f"logsumexp_{size}", LOGSUMEXP, normal(shape), reads=nbytes(shape))
      for size, shape in SHAPES.items()],
    Workload("layernorm", LAYERNORM, normal(BATCH, BATCH[1], BATCH[1]),
             reads=nbytes(BATCH), writes=nbytes(BATCH)),
    Workload("layernorm_grad", LAYERNORM_GRAD, normal(BATCH, BATCH[1], BATCH[1], BATCH),
             reads=2 * nbytes(BATCH), writes=nbytes(BATCH)),
    *[Workload(f"sum_axis_{name}", sums(axis), normal(SQUARE), reads=nbytes(SQUARE))
      for name, axis in AXES.items()],
]
