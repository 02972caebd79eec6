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


def row_function(function, torch_function):
    """The styles of function(*arrays, np)."""
    return {"jax":   lambda lib, *a: (lib.jit(lambda *a: function(*a, lib.numpy)), *a),
            "numpy": lambda lib, *a: (lambda *a: function(*a, lib), *a),
            "torch": lambda lib, *a: (torch_function(lib), *a)}


def torch_layernorm(torch):
    return lambda x, gain, bias: torch.nn.functional.layer_norm(x, x.shape[-1:], gain, bias)


def jax_layernorm_grad(lib, *args):
    def gradient(x, gain, bias, ct):
        out, pull_back = lib.vjp(lambda *a: layernorm(*a, lib.numpy), x, gain, bias)
        return pull_back(ct)
    return lib.jit(gradient), *args


def autograd_layernorm_grad(lib, *args):
    def gradient(x, gain, bias, ct):
        pull_back, out = lib.make_vjp(lambda *a: layernorm(*a, lib.numpy), (0, 1, 2))(x, gain, bias)
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


def sums(axis):
    """The styles of a sum over an axis."""
    return {"jax":   lambda lib, x: (lib.jit(lambda x: lib.numpy.sum(x, axis=axis)), x),
            "numpy": lambda lib, x: (lambda x: lib.sum(x, axis=axis), x),
            "torch": lambda lib, x: (lambda x: lib.sum(x, dim=axis), x)}


SOFTMAX = row_function(softmax, lambda torch: lambda x: torch.softmax(x, -1))
LOGSUMEXP = row_function(logsumexp, lambda torch: lambda x: torch.logsumexp(x, -1))
LAYERNORM = row_function(layernorm, torch_layernorm)
ROWS, WIDTH = 2048, 768
SHAPES = {"1024x1024": (1024, 1024), "64x50257": (64, 50257)}

WORKLOADS = [
    *[Workload(f"softmax_{size}", SOFTMAX, normal(shape), bytes=8 * shape[0] * shape[1])
      for size, shape in SHAPES.items()],
    *[Workload(f"logsumexp_{size}", LOGSUMEXP, normal(shape), bytes=4 * shape[0] * shape[1])
      for size, shape in SHAPES.items()],
    Workload("layernorm", LAYERNORM, normal((ROWS, WIDTH), WIDTH, WIDTH), bytes=8 * ROWS * WIDTH),
    Workload("layernorm_grad", LAYERNORM_GRAD, normal((ROWS, WIDTH), WIDTH, WIDTH, (ROWS, WIDTH)),
             bytes=12 * ROWS * WIDTH),
    *[Workload(f"sum_axis_{axis}", sums(None if axis == "all" else int(axis)), normal((4096, 4096)),
               bytes=4 * 4096**2) for axis in ("0", "1", "all")],
]
