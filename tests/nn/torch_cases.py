"""Layers, activations and losses beside torch's: one case in both libraries.

`benchmarks/compare_layers.py` runs both and can store torch's answers, which `test_torch_cases.py`
compares with fgrad's.  Arrays are named; gradients of a weighted sum are taken by each float one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import nn


@dataclass(frozen=True)
class Case:
    """shapes: name → shape; integers: name → (high, *shape).

    own(*arrays) and torch(torch, *tensors) give what is compared.
    """
    name: str
    shapes: dict
    own: Callable
    torch: Callable
    integers: dict | None = None

    def arrays(self):
        """name → array, the same in every run."""
        rng = np.random.default_rng(len(self.name))
        found = {k: rng.standard_normal(shape).astype("float32")
                 for k, shape in self.shapes.items()}
        return found | {k: rng.integers(0, high, shape)
                        for k, (high, *shape) in (self.integers or {}).items()}

    def answers(self):
        """(result, {name: gradient}) by fgrad."""
        arrays = {k: fnp.asarray(a) for k, a in self.arrays().items()}
        out = self.own(*arrays.values())
        weights = weight(out.shape)

        def total(floats):
            return fnp.sum(self.own(*(arrays | floats).values()) * weights)
        grads = fgrad.grad(total)({k: arrays[k] for k in self.shapes})
        return np.asarray(out), {k: np.asarray(g) for k, g in grads.items()}

    def torch_answers(self, torch):
        """The same by torch."""
        tensors = {k: torch.tensor(a, requires_grad=k in self.shapes)
                   for k, a in self.arrays().items()}
        out = self.torch(torch, *tensors.values())
        (out * torch.tensor(weight(out.shape))).sum().backward()
        return out.detach().numpy(), {k: tensors[k].grad.numpy() for k in self.shapes}


def weight(shape):
    """What results are multiplied by before they are summed: no two alike."""
    return np.cos(np.arange(np.prod(shape, dtype=int), dtype="float32")).reshape(shape)


def activation(name, theirs=None):
    """A case of an activation, by its name in torch.nn.functional."""
    return Case(name, {"x": (3, 6)}, lambda x: getattr(nn, name)(2.0 * x),
                lambda torch, x: getattr(torch.nn.functional, theirs or name)(2.0 * x))


def applied(layer, params, x, **rest):
    return layer.apply(params, {}, x, **rest)[0]


def recurrent(name, layer, gates):
    """A case of a recurrent layer with 4 units over 3 features."""
    def own(x, wx, wh, bx, bh):
        return applied(layer, {"wx": wx, "wh": wh, "bx": bx, "bh": bh}, x)

    def theirs(torch, x, wx, wh, bx, bh):
        weights = dict(weight_ih_l0=wx.T, weight_hh_l0=wh.T, bias_ih_l0=bx, bias_hh_l0=bh)
        module = getattr(torch.nn, name)(3, 4, batch_first=True)
        return torch.func.functional_call(module, weights, (x,))[0]
    shapes = {"x": (2, 5, 3), "wx": (3, 4 * gates), "wh": (4, 4 * gates), "bx": (4 * gates,),
              "bh": (4 * gates,)}
    return Case(name.lower(), shapes, own, theirs)


def convolution(name, kernel, x, w, transposed=False, **options):
    """A case of a convolution; `options` are torch's, and fgrad's."""
    def own(x, w, b):
        kind = nn.ConvTranspose if transposed else nn.Conv
        layer = kind(w.shape[-1], kernel, padding=options.get("padding", 0),
                     **{k: v for k, v in options.items() if k != "padding"})
        return applied(layer, {"w": w, "b": b}, x)

    def theirs(torch, x, w, b):
        count = len(kernel)
        middle = range(1, count + 1)
        order = (count, count + 1) if transposed else (count + 1, count)
        if transposed:                           # torch has the groups along the inputs
            parts = torch.split(w, w.shape[-1] // options.get("groups", 1), dim=-1)
            w = torch.flip(torch.cat(parts, dim=-2), tuple(range(count)))
        function = f"conv_transpose{count}d" if transposed else f"conv{count}d"
        out = getattr(torch.nn.functional, function)(
            x.permute(0, count + 1, *middle), w.permute(*order, *range(count)), b, **options)
        return out.permute(0, *range(2, count + 2), 1)
    return Case(name, {"x": x, "w": (*kernel, *w), "b": (w[-1],)}, own, theirs)


def attention(torch, x, wq, wk, wv, wo):
    functional, (n, t, d) = torch.nn.functional, x.shape
    q, k, v = ((x @ w).reshape(n, t, 2, d // 2).transpose(1, 2) for w in (wq, wk, wv))
    y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.transpose(1, 2).reshape(n, t, d) @ wo


def own_attention(x, wq, wk, wv, wo):
    params = {"query": {"w": wq}, "key": {"w": wk}, "value": {"w": wv}, "out": {"w": wo}}
    return applied(nn.MultiHeadAttention(2, is_causal=True, bias=False), params, x)


def scaled(layer):
    """own(x, scale, shift) of a layer that normalises."""
    return lambda x, scale, shift: applied(layer, {"scale": scale, "shift": shift}, x)


def batch_norm(x, scale, shift):
    state = {"mean": fnp.zeros(3), "variance": fnp.ones(3)}
    return nn.BatchNorm().apply({"scale": scale, "shift": shift}, state, x, train=True)[0]


def images(torch, function, x, *rest, **options):
    """A function of (N, C, H, W) on (N, H, W, C)."""
    return function(x.permute(0, 3, 1, 2), *rest, **options).permute(0, 2, 3, 1)


NORM = {"x": (2, 3, 4, 3), "scale": (3,), "shift": (3,)}
PAIR = {"a": (3, 5), "b": (3, 5)}
LABELS = {"labels": (5, 3)}

CASES = [
    *map(activation, "relu relu6 elu selu celu silu mish sigmoid tanh softplus glu".split()),
    *(activation(own, theirs) for own, theirs in (
        ("leaky_relu", None), ("soft_sign", "softsign"), ("hard_sigmoid", "hardsigmoid"),
        ("hard_silu", "hardswish"), ("hard_tanh", "hardtanh"), ("log_sigmoid", "logsigmoid"),
        ("tanh_shrink", "tanhshrink"), ("soft_shrink", "softshrink"),
        ("hard_shrink", "hardshrink"))),
    Case("gelu", {"x": (3, 6)}, lambda x: nn.gelu(x),
         lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh")),
    Case("softmax", {"x": (3, 6)}, nn.softmax, lambda torch, x: torch.softmax(x, -1)),
    Case("log_softmax", {"x": (3, 6)}, nn.log_softmax, lambda torch, x: torch.log_softmax(x, -1)),
    Case("dense", {"x": (4, 3), "w": (3, 5), "b": (5,)},
         lambda x, w, b: applied(nn.Dense(5), {"w": w, "b": b}, x),
         lambda torch, x, w, b: torch.nn.functional.linear(x, w.T, b)),
    convolution("conv1d", (3,), (2, 7, 2), (2, 4), stride=2, padding=1),
    convolution("conv2d", (3, 3), (2, 5, 6, 2), (2, 4), padding=1),
    convolution("conv2d_strided_dilated", (3, 2), (1, 7, 6, 2), (2, 3), stride=2, dilation=2),
    convolution("conv2d_groups", (3, 3), (1, 5, 5, 4), (2, 6), groups=2),
    convolution("conv3d", (2, 2, 2), (1, 3, 4, 3, 2), (2, 3)),
    convolution("conv_transpose2d", (3, 3), (1, 4, 3, 2), (2, 3), transposed=True, stride=2,
                padding=1),
    convolution("conv_transpose2d_groups", (3, 2), (1, 4, 3, 4), (2, 6), transposed=True, stride=2,
                groups=2),
    Case("adaptive_avg_pool", {"x": (1, 7, 4, 2)},
         lambda x: applied(nn.AdaptiveAvgPool((3, 2)), {}, x),
         lambda torch, x: images(torch, torch.nn.functional.adaptive_avg_pool2d, x, (3, 2))),
    Case("adaptive_max_pool", {"x": (1, 7, 4, 2)},
         lambda x: applied(nn.AdaptiveMaxPool((3, 2)), {}, x),
         lambda torch, x: images(torch, torch.nn.functional.adaptive_max_pool2d, x, (3, 2))),
    Case("max_pool", {"x": (2, 6, 4, 2)}, lambda x: applied(nn.MaxPool((3, 2), 2, 1), {}, x),
         lambda torch, x: images(torch, torch.nn.functional.max_pool2d, x, (3, 2), 2, 1)),
    Case("avg_pool", {"x": (2, 6, 4, 2)}, lambda x: applied(nn.AvgPool((2, 2)), {}, x),
         lambda torch, x: images(torch, torch.nn.functional.avg_pool2d, x, 2)),
    Case("batch_norm", NORM, batch_norm, lambda torch, x, scale, shift: images(
        torch, torch.nn.functional.batch_norm, x, None, None, scale, shift, training=True)),
    Case("layer_norm", NORM, scaled(nn.LayerNorm()), lambda torch, x, scale, shift:
         torch.nn.functional.layer_norm(x, (3,), scale, shift)),
    Case("group_norm", {"x": (2, 3, 4, 6), "scale": (6,), "shift": (6,)},
         scaled(nn.GroupNorm(groups=2)), lambda torch, x, scale, shift: images(
             torch, torch.nn.functional.group_norm, x, 2, scale, shift)),
    Case("instance_norm", NORM, scaled(nn.InstanceNorm()), lambda torch, x, scale, shift: images(
        torch, torch.nn.functional.instance_norm, x, weight=scale, bias=shift)),
    Case("rms_norm", {"x": (2, 3, 4), "scale": (4,)},
         lambda x, scale: applied(nn.RMSNorm(), {"scale": scale}, x),
         lambda torch, x, scale: torch.nn.functional.rms_norm(x, (4,), scale, 1e-5)),
    Case("embedding", {"table": (5, 3)}, lambda table, labels: applied(
        nn.Embedding(5, 3), {"table": table}, labels), lambda torch, table, labels:
        torch.nn.functional.embedding(labels, table), {"labels": (5, 2, 4)}),
    recurrent("RNN", nn.RNN(4), 1), recurrent("GRU", nn.GRU(4), 3),
    recurrent("LSTM", nn.LSTM(4), 4),
    Case("attention", {"x": (2, 4, 6), **{f"w{k}": (6, 6) for k in "qkvo"}}, own_attention,
         attention),
    Case("cross_entropy", {"x": (3, 5)},
         lambda x, labels: nn.softmax_cross_entropy_with_integer_labels(x, labels, 0.1),
         lambda torch, x, labels: torch.nn.functional.cross_entropy(
             x, labels, label_smoothing=0.1, reduction="none"), LABELS),
    Case("weighted_cross_entropy", {"x": (3, 5)},
         lambda x, labels: nn.softmax_cross_entropy_with_integer_labels(
             x, labels, weights=fnp.arange(1.0, 6.0)),
         lambda torch, x, labels: torch.nn.functional.cross_entropy(
             x, labels, torch.arange(1.0, 6.0), reduction="none"), LABELS),
    Case("prelu", {"x": (3, 6), "slopes": (6,)}, nn.prelu,
         lambda torch, x, slopes: torch.nn.functional.prelu(x, slopes)),
    Case("nll", {"x": (3, 5)}, lambda x, labels: nn.nll(nn.log_softmax(x), labels),
         lambda torch, x, labels: torch.nn.functional.nll_loss(
             torch.log_softmax(x, -1), labels, reduction="none"), LABELS),
    Case("binary_cross_entropy", PAIR,
         lambda a, b: nn.sigmoid_binary_cross_entropy(3 * a, nn.sigmoid(b)),
         lambda torch, a, b: torch.nn.functional.binary_cross_entropy_with_logits(
             3 * a, torch.sigmoid(b), reduction="none")),
    Case("huber", PAIR, lambda a, b: nn.huber(2 * a, b, 0.7), lambda torch, a, b:
         torch.nn.functional.huber_loss(2 * a, b, delta=0.7, reduction="none")),
    Case("squared_error", PAIR, nn.squared_error, lambda torch, a, b:
         torch.nn.functional.mse_loss(a, b, reduction="none")),
    Case("absolute_error", PAIR, nn.absolute_error, lambda torch, a, b:
         torch.nn.functional.l1_loss(a, b, reduction="none")),
    Case("kl_divergence", PAIR, lambda a, b: nn.kl_divergence(nn.log_softmax(a), nn.softmax(b)),
         lambda torch, a, b: torch.nn.functional.kl_div(
             torch.log_softmax(a, -1), torch.softmax(b, -1), reduction="none").sum(-1)),
    Case("poisson_nll", PAIR, nn.poisson_nll, lambda torch, a, b:
         torch.nn.functional.poisson_nll_loss(a, b, reduction="none")),
    Case("cosine_similarity", PAIR, nn.cosine_similarity, lambda torch, a, b:
         torch.nn.functional.cosine_similarity(a, b)),
    Case("triplet", {**PAIR, "c": (3, 5)}, nn.triplet, lambda torch, a, b, c:
         torch.nn.functional.triplet_margin_loss(a, b, c, eps=0, reduction="none")),
    Case("ctc", {"x": (2, 7, 4)},
         lambda x, labels: nn.ctc(x, labels + 1, fnp.array([7, 6]), fnp.array([3, 2])),
         lambda torch, x, labels: torch.nn.functional.ctc_loss(
             torch.log_softmax(x, -1).transpose(0, 1), labels + 1, torch.tensor([7, 6]),
             torch.tensor([3, 2]), reduction="none"), {"labels": (3, 2, 3)}),
]
