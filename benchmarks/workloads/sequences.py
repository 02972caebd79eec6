"""Sequences: a training step of a transformer block, rows of a table, sorting, a loop of steps."""

import math

import numpy

from ..workload import Workload
from .models import B1, B2, EPS, RATE, adam, torch_step, xor, xor_step

BATCH, LENGTH, WIDTH, HEADS = 8, 128, 256, 8
TOKENS = BATCH * LENGTH
BLOCK_FLOPS = 2 * TOKENS * 12 * WIDTH**2 + 4 * BATCH * LENGTH**2 * WIDTH


# ---------------------------------------------------------------------------- a transformer block

def block_inputs(rng):
    """Parameters, tokens f32[8,128,256] and what is to come out."""
    def dense(a, b):
        return rng.standard_normal((a, b), "float32") / numpy.float32(math.sqrt(a))
    ones, none = numpy.ones(WIDTH, "float32"), numpy.zeros(WIDTH, "float32")
    params = {"norm1": [ones, none], "norm2": [ones.copy(), none.copy()],
              "qkv": dense(WIDTH, 3 * WIDTH), "out": dense(WIDTH, WIDTH),
              "up": [dense(WIDTH, 4 * WIDTH), numpy.zeros(4 * WIDTH, "float32")],
              "down": [dense(4 * WIDTH, WIDTH), none.copy()]}
    return params, *(rng.standard_normal((BATCH, LENGTH, WIDTH), "float32") for _ in range(2))


def layernorm(np, x, gain, bias):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * gain + bias


def attention(lib, x, qkv, out):
    """Causal attention with HEADS heads (Vaswani et al. 2017)."""
    np = lib.numpy
    heads = np.reshape(x @ qkv, (BATCH, LENGTH, 3, HEADS, WIDTH // HEADS))
    q, k, v = heads[:, :, 0], heads[:, :, 1], heads[:, :, 2]
    scores = np.einsum("bthd,bshd->bhts", q, k) / math.sqrt(WIDTH // HEADS)
    rows, columns = np.arange(LENGTH)[:, None], np.arange(LENGTH)
    shares = lib.nn.softmax(np.where(columns <= rows, scores, -1e30))
    return np.reshape(np.einsum("bhts,bshd->bthd", shares, v), x.shape) @ out


def block(lib, params, x):
    """Pre-norm: attention, then a dense layer of four times the width with ReLU."""
    np = lib.numpy
    x = x + attention(lib, layernorm(np, x, *params["norm1"]), params["qkv"], params["out"])
    (up, up_bias), (down, down_bias) = params["up"], params["down"]
    h = np.maximum(layernorm(np, x, *params["norm2"]) @ up + up_bias, 0)
    return x + h @ down + down_bias


def jax_transformer(lib, params, x, y):
    def loss(params, x, y):
        return lib.numpy.mean((block(lib, params, x) - y)**2)

    def step(state, x, y):
        params, *moments = state
        value, grads = lib.value_and_grad(loss)(params, x, y)
        return adam(lib.tree.map, params, grads, *moments), value
    zeros = lib.tree.map(lib.numpy.zeros_like, params)
    return lib.jit(step), (params, lib.numpy.float32(0), zeros, zeros), x, y


def torch_transformer(torch, params, x, y):
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
            self.out = nn.Linear(WIDTH, WIDTH, bias=False)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            heads = self.qkv(self.norm1(x)).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
            q, k, v = heads.permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
            return x + self.down(torch.relu(self.up(self.norm2(x))))
    model = Block()
    for name in ("qkv", "out"):
        getattr(model, name).weight.data = params[name].T.contiguous()
    for name in ("up", "down"):
        weight, bias = params[name]
        getattr(model, name).weight.data = weight.T.contiguous()
        getattr(model, name).bias.data = bias.clone()
    optimizer = torch.optim.Adam(model.parameters(), RATE, (B1, B2), EPS, fused=True)
    return torch_step(optimizer, model, functional.mse_loss), None, x, y


TRANSFORMER = {"jax": jax_transformer, "torch": torch_transformer}


# ---------------------------------------------------------------------------- rows of a table

WORDS, SIZE, PICKED = 50257, 256, 4096


def table_inputs(rng):
    """A table f32[50257,256], rows i32[4096], and a cotangent of the rows."""
    return (rng.standard_normal((WORDS, SIZE), "float32"), rng.integers(0, WORDS, PICKED, "int32"),
            rng.standard_normal((PICKED, SIZE), "float32"))


GATHER = {
    "jax":   lambda lib, table, rows, ct: (lib.jit(lambda t, r: t[r]), table, rows),
    "torch": lambda torch, table, rows, ct: (torch.nn.functional.embedding, rows.long(), table),
    "numpy": lambda np, table, rows, ct: (lambda t, r: t[r], table, rows),
}


def jax_scatter(lib, table, rows, ct):
    def gradient(table, rows, ct):
        return lib.vjp(lambda t: t[rows], table)[1](ct)[0]
    return lib.jit(gradient), table, rows, ct


def torch_scatter(torch, table, rows, ct):
    def gradient(rows, ct):
        return torch.ops.aten.embedding_dense_backward(ct, rows, WORDS, -1, False)
    return gradient, rows.long(), ct


def numpy_scatter(np, table, rows, ct):
    def gradient(rows, ct):
        out = np.zeros((WORDS, SIZE), ct.dtype)
        np.add.at(out, rows, ct)
        return out
    return gradient, rows, ct


SCATTER = {"jax": jax_scatter, "torch": torch_scatter, "numpy": numpy_scatter}


# ---------------------------------------------------------------------------- sorting, a loop

def million(rng):
    return (rng.standard_normal(10**6, "float32"),)


SORT = {"jax":   lambda lib, x: (lib.jit(lib.numpy.sort), x),
        "torch": lambda torch, x: (lambda x: torch.sort(x).values, x),
        "numpy": lambda np, x: (np.sort, x)}

STEPS = 1000


def jax_xor_loop(lib, params, x, y):
    step = xor_step(lib)

    def train(params, x, y):
        return lib.lax.fori_loop(0, STEPS, lambda _, params: step(params, x, y)[0], params)
    return lib.jit(train), params, x, y


def torch_xor_loop(torch, params, x, y):
    """From the same parameters each time, as in the other style."""
    start = [p.clone() for p in params]

    def train(x, y):
        w1, b1, w2, b2 = arrays = [p.clone().requires_grad_() for p in start]
        for _ in range(STEPS):
            out = torch.tanh(x @ w1 + b1) @ w2 + b2
            grads = torch.autograd.grad(((out - y)**2).mean(), arrays)
            with torch.no_grad():
                for p, g in zip(arrays, grads):
                    p -= 0.1 * g
        return [p.detach() for p in arrays]
    return train, x, y


XOR_LOOP = {"jax": jax_xor_loop, "torch": torch_xor_loop}

WORKLOADS = [
    Workload("transformer_step", TRANSFORMER, block_inputs, flops=3 * BLOCK_FLOPS,
             tolerance=1e-3, carries=True),
    Workload("gather_rows", GATHER, table_inputs, reads=4 * PICKED * SIZE,
             writes=4 * PICKED * SIZE),
    Workload("scatter_rows", SCATTER, table_inputs, reads=4 * PICKED * SIZE,
             writes=4 * WORDS * SIZE),
    Workload("sort_1e6", SORT, million, reads=4 * 10**6, writes=4 * 10**6),
    Workload("xor_1000_steps", XOR_LOOP, xor, tolerance=1e-2),
]
