"""Training steps: an MLP with Adam, XOR with plain descent; and per-example gradients."""

import numpy

from ..workload import Workload

SIZES = (784, 256, 128, 10)
WEIGHTS = sum(a * b for a, b in zip(SIZES, SIZES[1:]))
RATE, B1, B2, EPS = 1e-3, 0.9, 0.999, 1e-8


def layers(rng, sizes):
    """[w, b, w, b, …] with He's scale."""
    arrays = []
    for a, b in zip(sizes, sizes[1:]):
        arrays += [rng.standard_normal((a, b), "float32") * numpy.float32((2 / a)**0.5),
                   numpy.zeros(b, "float32")]
    return arrays


def digits(batch):
    """inputs(rng): parameters, images f32[batch,784], labels i32[batch]."""
    return lambda rng: (layers(rng, SIZES), rng.random((batch, 784), "float32"),
                        rng.integers(0, 10, batch, "int32"))


# ---------------------------------------------------------------------------- in JAX style


def logits(params, x, np):
    w1, b1, w2, b2, w3, b3 = params
    h = np.maximum(x @ w1 + b1, 0)
    h = np.maximum(h @ w2 + b2, 0)
    return h @ w3 + b3


def cross_entropy(params, x, labels, np):
    """The mean over the batch; x may also be one example."""
    z = logits(params, x, np)
    z = z - np.max(z, axis=-1, keepdims=True)
    log_p = z - np.log(np.sum(np.exp(z), axis=-1, keepdims=True))
    return -np.mean(np.sum(log_p * (labels[..., None] == np.arange(10)), axis=-1))


def adam(map, params, grads, count, mu, nu):
    """Adam (Kingma and Ba 2015) over trees; count is f32[]."""
    count = count + 1
    mu = map(lambda m, g: B1 * m + (1 - B1) * g, mu, grads)
    nu = map(lambda v, g: B2 * v + (1 - B2) * (g * g), nu, grads)
    first, second = 1 - B1**count, 1 - B2**count
    params = map(lambda p, m, v: p - RATE * (m / first) / ((v / second)**0.5 + EPS), params, mu, nu)
    return params, count, mu, nu


def train_step(lib, map):
    """step((params, count, mu, nu), x, labels) → (state, loss)."""
    loss = lib.value_and_grad(lambda params, x, labels: cross_entropy(params, x, labels, lib.numpy))

    def step(state, x, labels):
        params, *moments = state
        value, grads = loss(params, x, labels)
        return adam(map, params, grads, *moments), value
    return step


def start(params, np):
    zeros = [np.zeros_like(p) for p in params]
    return params, np.float32(0), zeros, zeros


def jax_mlp(lib, params, x, labels):
    return lib.jit(train_step(lib, lib.tree.map)), start(params, lib.numpy), x, labels


def autograd_mlp(lib, params, x, labels):
    def map_lists(function, *lists):
        return [function(*arrays) for arrays in zip(*lists)]
    return train_step(lib, map_lists), start(params, lib.numpy), x, labels


# ---------------------------------------------------------------------------- in torch style


def torch_model(torch, params, activation):
    """A Sequential of Linear layers with these weights."""
    modules = []
    for w, b in zip(params[::2], params[1::2]):
        layer = torch.nn.Linear(*w.shape)
        layer.weight.data, layer.bias.data = w.T.contiguous(), b.clone()
        modules += [layer, activation()]
    return torch.nn.Sequential(*modules[:-1])


def torch_step(optimizer, model, loss_function):
    """step(state, x, y) → (state, loss); the state lives in the model."""
    def step(state, x, y):
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
        return state, loss.detach()
    return step


def torch_mlp(torch, params, x, labels):
    model = torch_model(torch, params, torch.nn.ReLU)
    optimizer = torch.optim.Adam(model.parameters(), RATE, (B1, B2), EPS, fused=True)
    return torch_step(optimizer, model, torch.nn.functional.cross_entropy), None, x, labels.long()


# ---------------------------------------------------------------------------- in tinygrad style


def tinygrad_mlp(tinygrad, params, x, labels):
    """tinygrad's own Adam; the state lives in the optimizer."""
    optimizer = tinygrad.nn.optim.Adam(params, RATE, B1, B2, EPS)

    def step(state, x, labels):
        w1, b1, w2, b2, w3, b3 = params
        h = ((x @ w1 + b1).relu() @ w2 + b2).relu()
        with tinygrad.helpers.Context(TRAINING=1):
            optimizer.zero_grad()
            loss = (h @ w3 + b3).sparse_categorical_crossentropy(labels).backward()
            loss.realize(*optimizer.schedule_step())
        return state, loss
    return step, None, x, labels


# ---------------------------------------------------------------------------- XOR


def xor(rng):
    x = numpy.array([[0, 0], [0, 1], [1, 0], [1, 1]], "float32")
    return layers(rng, (2, 8, 1)), x, numpy.array([[0], [1], [1], [0]], "float32")


def xor_loss(params, x, y, np):
    w1, b1, w2, b2 = params
    out = np.tanh(x @ w1 + b1) @ w2 + b2
    return np.mean((out - y) * (out - y))


def xor_step(lib):
    loss = lib.value_and_grad(lambda params, x, y: xor_loss(params, x, y, lib.numpy))

    def step(params, x, y):
        value, grads = loss(params, x, y)
        return [p - 0.1 * g for p, g in zip(params, grads)], value
    return step


def torch_xor(torch, params, x, y):
    model = torch_model(torch, params, torch.nn.Tanh)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return torch_step(optimizer, model, torch.nn.functional.mse_loss), None, x, y


XOR = {"jax":      lambda lib, *args: (lib.jit(xor_step(lib)), *args),
       "autograd": lambda lib, *args: (xor_step(lib), *args),
       "torch":    torch_xor}


# ---------------------------------------------------------------------------- per-example gradients


def jax_per_example(lib, *args):
    loss = lib.grad(lambda params, x, label: cross_entropy(params, x, label, lib.numpy))
    return lib.jit(lib.vmap(loss, in_axes=(None, 0, 0))), *args


def torch_per_example(torch, params, x, labels):
    def loss(params, x, label):
        functional = torch.nn.functional
        w1, b1, w2, b2, w3, b3 = params
        h = functional.relu(x @ w1 + b1)
        h = functional.relu(h @ w2 + b2)
        return functional.cross_entropy(h @ w3 + b3, label)
    return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0)), params, x, labels.long()


MLP = {"jax": jax_mlp, "autograd": autograd_mlp, "torch": torch_mlp, "tinygrad": tinygrad_mlp}

PER_EXAMPLE = {"jax": jax_per_example, "torch": torch_per_example}

WORKLOADS = [
    *[Workload(f"mlp_step_{batch}", MLP, digits(batch), flops=batch * (6 * WEIGHTS - 2 * 784 * 256),
               tolerance=1e-3, carries=True) for batch in (64, 512)],
    Workload("xor_step", XOR, xor, tolerance=1e-3, carries=True),
    Workload("per_example_grads_64", PER_EXAMPLE, digits(64), writes=4 * 64 * WEIGHTS),
]
