"""Images: a training step and the forward pass of a small CNN, and a residual stack."""

import math

import numpy

from ..workload import Workload
from .models import B1, B2, EPS, RATE, adam, start, torch_step

NHWC = ("NHWC", "HWIO", "NHWC")


def convolve(lib, x, w, stride=1):
    """A convolution of images x (N, H, W, C) by w (KH, KW, C, O), padded to ⌈size / stride⌉."""
    return lib.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=NHWC)


def pooled(lib, x):
    """The largest of each 2 × 2 pixels."""
    window = (1, 2, 2, 1)
    return lib.lax.reduce_window(x, -math.inf, lib.lax.max, window, window, "VALID")


def weights(rng, *shape):
    """He's initialisation: the last axis is what comes out."""
    deviation = numpy.float32((2 / math.prod(shape[:-1]))**0.5)
    return rng.standard_normal(shape, "float32") * deviation


def zeros(n):
    return numpy.zeros(n, "float32")


def cross_entropy(np, z, labels):
    z = z - np.max(z, axis=-1, keepdims=True)
    log_p = z - np.log(np.sum(np.exp(z), axis=-1, keepdims=True))
    return -np.mean(np.sum(log_p * (labels[:, None] == np.arange(10)), axis=-1))


def torch_weight(w):
    """A kernel (KH, KW, C, O) as torch has it."""
    return w.permute(3, 2, 0, 1).contiguous()


def torch_images(torch, x):
    """Images (N, H, W, C) as (N, C, H, W), laid out channels last, which torch advises on CPUs."""
    return x.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)


def labelled(batch, shape, parameters):
    """inputs(rng): parameters, images f32[batch,*shape], labels i32[batch]."""
    return lambda rng: (parameters(rng), rng.random((batch, *shape), "float32"),
                        rng.integers(0, 10, batch, "int32"))


# ---------------------------------------------------------------------------- a small CNN

DIGIT = (28, 28, 1)
CNN_FLOPS = 2 * (28 * 28 * 9 * 32 + 14 * 14 * 9 * 32 * 64 + 7 * 7 * 64 * 128 + 128 * 10)
FIRST = 2 * 28 * 28 * 9 * 32                     # the gradient of the images is not asked for


def cnn_parameters(rng):
    return [weights(rng, 3, 3, 1, 32), zeros(32), weights(rng, 3, 3, 32, 64), zeros(64),
            weights(rng, 7 * 7 * 64, 128), zeros(128), weights(rng, 128, 10), zeros(10)]


def cnn(lib, params, x):
    """Logits: two 3 × 3 convolutions with pooling, two dense layers."""
    np = lib.numpy
    w1, b1, w2, b2, w3, b3, w4, b4 = params
    x = pooled(lib, np.maximum(convolve(lib, x, w1) + b1, 0))
    x = pooled(lib, np.maximum(convolve(lib, x, w2) + b2, 0))
    x = np.maximum(np.reshape(x, (x.shape[0], -1)) @ w3 + b3, 0)
    return x @ w4 + b4


def jax_cnn_step(lib, params, x, labels):
    def loss(params, x, labels):
        return cross_entropy(lib.numpy, cnn(lib, params, x), labels)

    def step(state, x, labels):
        params, *moments = state
        value, grads = lib.value_and_grad(loss)(params, x, labels)
        return adam(lib.tree.map, params, grads, *moments), value
    return lib.jit(step), start(params, lib.numpy), x, labels


def torch_cnn(torch, params):
    """The same as a Module; its dense layers see channels first, so the first is permuted."""
    nn = torch.nn
    w1, b1, w2, b2, w3, b3, w4, b4 = params
    model = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))
    dense = w3.reshape(7, 7, 64, 128).permute(3, 2, 0, 1).reshape(128, 3136)
    for k, w, b in ((0, torch_weight(w1), b1), (3, torch_weight(w2), b2), (7, dense, b3),
                    (9, w4.T, b4)):
        model[k].weight.data, model[k].bias.data = w.contiguous(), b.clone()
    return model.to(memory_format=torch.channels_last)


def torch_cnn_step(torch, params, x, labels):
    model = torch_cnn(torch, params)
    optimizer = torch.optim.Adam(model.parameters(), RATE, (B1, B2), EPS, fused=True)
    step = torch_step(optimizer, model, torch.nn.functional.cross_entropy)
    return step, None, torch_images(torch, x), labels.long()


def jax_cnn_forward(lib, params, x, labels):
    return lib.jit(lambda params, x: cnn(lib, params, x)), params, x


def torch_cnn_forward(torch, params, x, labels):
    model = torch_cnn(torch, params).eval()
    return torch.inference_mode()(model), torch_images(torch, x)


CNN_STEP = {"jax": jax_cnn_step, "torch": torch_cnn_step}
CNN_FORWARD = {"jax": jax_cnn_forward, "torch": torch_cnn_forward}


# ---------------------------------------------------------------------------- a residual stack

STAGES = ((32, 32, 1), (32, 64, 2), (64, 128, 2))          # channels in and out, stride
RES_BATCH = 32


def residual_parameters(rng):
    def normed(*shape):
        return [weights(rng, *shape), numpy.ones(shape[-1], "float32"), zeros(shape[-1])]
    return {"stem": normed(3, 3, 3, 32), "head": [weights(rng, 128, 10), zeros(10)],
            "blocks": [{"first": normed(3, 3, a, b), "second": normed(3, 3, b, b),
                        **({"side": normed(1, 1, a, b)} if a != b else {})} for a, b, _ in STAGES]}


def residual_flops():
    """Of the forward pass of one image."""
    size, total = 32, 32 * 32 * 27 * 32
    for a, b, stride in STAGES:
        size //= stride
        total += size * size * b * (9 * a + 9 * b + (a if a != b else 0))
    return 2 * (total + 128 * 10)


def batch_normed(np, x, gain, bias):
    mean = np.mean(x, axis=(0, 1, 2))
    centred = x - mean
    variance = np.mean(centred * centred, axis=(0, 1, 2))
    return centred * (gain / np.sqrt(variance + 1e-5)) + bias


def residual(lib, params, x):
    """Logits: convolutions with batch normalization, in training mode, and sums around pairs."""
    np = lib.numpy

    def normed(layer, x, stride=1):
        w, gain, bias = layer
        return batch_normed(np, convolve(lib, x, w, stride), gain, bias)
    x = np.maximum(normed(params["stem"], x), 0)
    for block, (_, _, stride) in zip(params["blocks"], STAGES):
        y = np.maximum(normed(block["first"], x, stride), 0)
        side = normed(block["side"], x, stride) if "side" in block else x
        x = np.maximum(normed(block["second"], y) + side, 0)
    w, b = params["head"]
    return np.mean(x, axis=(1, 2)) @ w + b


def jax_residual(lib, params, x, labels):
    def loss(params, x, labels):
        return cross_entropy(lib.numpy, residual(lib, params, x), labels)
    return lib.jit(lib.value_and_grad(loss)), params, x, labels


def torch_residual(torch, params, x, labels):
    """Stateless, with the parameters laid out for torch; the gradients come back laid out as jax's.

    What this costs is outside of what is timed: the returned gradients are views.
    """
    functional = torch.nn.functional

    def prepared(layer):
        return [torch_weight(layer[0]).to(memory_format=torch.channels_last), *layer[1:]]
    stem, head = prepared(params["stem"]), list(params["head"])
    blocks = [{name: prepared(layer) for name, layer in block.items()}
              for block in params["blocks"]]
    flat = [p.requires_grad_() for layer in (
        stem, head, *(layer for block in blocks for layer in block.values())) for p in layer]

    def normed(layer, x, stride=1):
        w, gain, bias = layer
        if stride == 2:                          # as much padding at the far side as jax's "SAME"
            x = functional.pad(x, (0, 1, 0, 1)) if w.shape[-1] == 3 else x
            y = functional.conv2d(x, w, stride=2)
        else:
            y = functional.conv2d(x, w, padding=w.shape[-1] // 2)
        return functional.batch_norm(y, None, None, gain, bias, training=True, eps=1e-5)

    def loss(x, labels):
        x = torch.relu(normed(stem, x))
        for block, (_, _, stride) in zip(blocks, STAGES):
            y = torch.relu(normed(block["first"], x, stride))
            side = normed(block["side"], x, stride) if "side" in block else x
            x = torch.relu(normed(block["second"], y) + side)
        w, b = head
        return functional.cross_entropy(x.mean((2, 3)) @ w + b, labels)

    def value_and_grad(x, labels):
        value = loss(x, labels)
        grads = iter([g.permute(2, 3, 1, 0) if g.ndim == 4 else g
                      for g in torch.autograd.grad(value, flat)])

        def taken(layer):
            return [next(grads) for _ in layer]
        return value.detach(), {"stem": taken(stem), "head": taken(head), "blocks": [
            {name: taken(layer) for name, layer in block.items()} for block in blocks]}
    return value_and_grad, torch_images(torch, x), labels.long()


RESIDUAL = {"jax": jax_residual, "torch": torch_residual}

# Where ReLU's input is rounded to the other side of zero, a gradient changes by a whole term.
FLIPS = 5e-2

WORKLOADS = [
    *[Workload(f"cnn_step_{batch}", CNN_STEP, labelled(batch, DIGIT, cnn_parameters),
               flops=batch * (3 * CNN_FLOPS - FIRST), tolerance=1e-3, carries=True)
      for batch in (64, 256)],
    *[Workload(f"cnn_forward_{batch}", CNN_FORWARD, labelled(batch, DIGIT, cnn_parameters),
               flops=batch * CNN_FLOPS) for batch in (1, 64)],
    Workload("resnet_grad_32", RESIDUAL, labelled(RES_BATCH, (32, 32, 3), residual_parameters),
             flops=RES_BATCH * (3 * residual_flops() - 2 * 32 * 32 * 27 * 32), tolerance=FLIPS),
]
