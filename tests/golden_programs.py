"""The functions behind tests/golden: their lines are printed there, so this file changes rarely."""

import fgrad.numpy as fnp
from fgrad import grad


def loss(w, b, x, y):
    h = fnp.tanh(x @ w + b)
    e = (h - y) ** 2
    return fnp.mean(e)


def softmax(x):
    e = fnp.exp(x - fnp.max(x, axis=1, keepdims=True))
    return e / fnp.sum(e, axis=1, keepdims=True)


def logsumexp(x):
    m = fnp.max(x, axis=1, keepdims=True)
    return fnp.squeeze(m, 1) + fnp.log(fnp.sum(fnp.exp(x - m), axis=1))


def layernorm(x, g, b):
    c = x - fnp.mean(x, axis=1, keepdims=True)
    v = fnp.mean(c * c, axis=1, keepdims=True)
    return c / fnp.sqrt(v + 1e-5) * g + b


def mlp(params, x, y):
    h = fnp.maximum(x @ params["w1"] + params["b1"], 0)
    out = h @ params["w2"] + params["b2"]
    return fnp.mean((out - y) ** 2)


def attention(q, k, v):
    s = fnp.einsum("hid,hjd->hij", q, k) * 0.5
    e = fnp.exp(s - fnp.max(s, axis=2, keepdims=True))
    p = e / fnp.sum(e, axis=2, keepdims=True)
    return fnp.einsum("hij,hjd->hid", p, v)


loss_gradient = grad(loss, (0, 1))
mlp_gradient = grad(mlp)
