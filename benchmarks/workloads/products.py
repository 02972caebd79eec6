"""Matrix products, and a dense layer with its gradient."""

from ..workload import Workload


def normal(*shapes):
    return lambda rng: tuple(rng.standard_normal(shape, "float32") for shape in shapes)


def product(form):
    """The styles of a product, "n" as given and "t" transposed."""
    def multiply(a, b):
        return (a.T if form[0] == "t" else a) @ (b.T if form[1] == "t" else b)
    plain = {style: lambda lib, a, b: (multiply, a, b) for style in ("numpy", "torch")}
    return {"jax": lambda lib, a, b: (lib.jit(multiply), a, b), **plain,
            "tinygrad": lambda lib, a, b: (lambda a, b: multiply(a, b).realize(), a, b)}


def matmul(name, m, k, n, form="nn", full=False):
    """A product f32[m,k] @ f32[k,n] → f32[m,n]."""
    a = (k, m) if form[0] == "t" else (m, k)
    b = (n, k) if form[1] == "t" else (k, n)
    return Workload(f"matmul_{name}", product(form), normal(a, b), flops=2 * m * k * n,
                    reads=4 * (m * k + k * n), writes=4 * m * n, full=full)


def batched(name, count, m, k, n):
    """Products of f32[count,m,k] and f32[count,k,n]."""
    return Workload(f"matmul_batched_{name}", product("nn"), normal((count, m, k), (count, k, n)),
                    flops=2 * count * m * k * n, reads=4 * count * (m * k + k * n),
                    writes=4 * count * m * n)


def linear_relu(x, w, b, np):
    return np.maximum(x @ w + b, 0)


def torch_linear_relu(torch):
    return lambda x, w, b: torch.relu(torch.addmm(b, x, w))


FORWARD = {
    "jax":   lambda lib, *a: (lib.jit(lambda *a: linear_relu(*a, lib.numpy)), *a),
    "numpy": lambda lib, *a: (lambda *a: linear_relu(*a, lib), *a),
    "torch": lambda lib, *a: (torch_linear_relu(lib), *a),
    "tinygrad": lambda lib, *a: (lambda x, w, b: (x @ w + b).relu().realize(), *a),
}


def jax_vjp(lib, *args):
    def gradients(x, w, b, ct):
        _, pull_back = lib.vjp(lambda *a: linear_relu(*a, lib.numpy), x, w, b)
        return pull_back(ct)
    return lib.jit(gradients), *args


def autograd_vjp(lib, *args):
    def gradients(x, w, b, ct):
        pull_back, _ = lib.make_vjp(lambda *a: linear_relu(*a, lib.numpy), (0, 1, 2))(x, w, b)
        return pull_back(ct)
    return gradients, *args


def torch_vjp(torch, *args):
    def gradients(x, w, b, ct):
        arrays = [a.detach().requires_grad_() for a in (x, w, b)]
        return torch.autograd.grad(torch_linear_relu(torch)(*arrays), arrays, ct)
    return gradients, *args


BATCH, IN, OUT = 256, 784, 256
LAYER = 2 * BATCH * IN * OUT

WORKLOADS = [
    *[matmul(n, n, n, n) for n in (64, 128, 256, 512, 1024)],
    matmul(2048, 2048, 2048, 2048, full=True),
    matmul("64x784x256", 64, 784, 256),
    matmul("row_by_1024", 1, 1024, 1024),
    matmul("1024_by_column", 1024, 1024, 1),
    matmul("8x1024x1024", 8, 1024, 1024),
    matmul("outer_2048x8x2048", 2048, 8, 2048),
    matmul("inner_32x65536x32", 32, 65536, 32),
    matmul("tall_16384x32x32", 16384, 32, 32),
    batched("64x128", 64, 128, 128, 128),
    batched("1024x16", 1024, 16, 16, 16),
    batched("scores_64x128x32x128", 64, 128, 32, 128),
    *[matmul(f"512_{form}", 512, 512, 512, form) for form in ("nt", "tn", "tt")],
    Workload("linear_relu", FORWARD, normal((BATCH, IN), (IN, OUT), OUT), flops=LAYER),
    Workload("linear_relu_vjp", {"jax": jax_vjp, "autograd": autograd_vjp, "torch": torch_vjp},
             normal((BATCH, IN), (IN, OUT), OUT, (BATCH, OUT)), flops=3 * LAYER),
]
