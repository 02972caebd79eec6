"""Training side by side: the same network, weights, batches and optimizer in fgrad, torch and jax.

    python -m benchmarks.compare_training mnist --data DIR --epochs 3 [--impl fgrad,torch,jax]
    python -m benchmarks.compare_training cifar --data DIR --epochs 4 --examples 20000

Prints seconds per epoch and test accuracy of each, every library in a process of its own, one after
the other.  The networks are those of examples/mnist_cnn.py, without dropout, whose draws no two
libraries share, and of examples/cifar_resnet.py.  fgrad makes the weights and the batches for all.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import fgrad
import fgrad.numpy as fnp
from fgrad import data, nn, optim

from . import implementations, starts

ROOT = Path(__file__).parent.parent
CNN = nn.Sequential(
    nn.Conv(32, (5, 5), bias=False), nn.BatchNorm(), nn.relu, nn.MaxPool((2, 2)),
    nn.Conv(64, (3, 3), bias=False), nn.BatchNorm(), nn.relu, nn.MaxPool((2, 2)),
    nn.Flatten(), nn.Dense(10))


# ---------------------------------------------------------------------------- the tasks

def conv(features, size=3, stride=1):
    return nn.Conv(features, (size, size), stride=stride, padding=size // 2, bias=False,
                   kernel_init=nn.init.he_normal())


def residual(features, stride=1):
    body = nn.Sequential(conv(features, stride=stride), nn.BatchNorm(), nn.relu,
                         conv(features), nn.BatchNorm())
    shortcut = nn.Sequential(conv(features, 1, stride), nn.BatchNorm()) if stride > 1 else None
    return [nn.Residual(body, shortcut), nn.relu]


RESNET = nn.Sequential(conv(16), nn.BatchNorm(), nn.relu, *residual(16), *residual(32, 2),
                       *residual(64, 2), nn.GlobalAvgPool(), nn.Dense(10))


class Task:
    """Data, network and learning rates of one comparison; batches are the same in every process."""

    def __init__(self, options):
        self.epochs, self.size = options.epochs, options.batch
        load = {"mnist": data.mnist.load, "cifar": data.cifar.load}[options.task]
        split = load(options.data)
        count = options.examples or len(split.train_images)
        self.train = split.train_images[:count], split.train_labels[:count]
        self.test = split.test_images, split.test_labels
        self.is_cnn = options.task == "mnist"
        self.model = CNN if self.is_cnn else RESNET
        mean, std = data.augment.statistics(self.train[0])
        self.prepared = functools.partial(data.augment.normalise, mean=mean, std=std)
        self.steps = self.epochs * (count // self.size)
        self.params, self.state = self.model.init(fgrad.random.key(0), self.shaped(self.train[0]))
        peak = 2e-3 if self.is_cnn else 0.2
        schedule = (lambda k: 0.5 * peak * (1 + math.cos(math.pi / self.steps * k)))
        if not self.is_cnn:
            one_cycle = optim.cosine_onecycle_schedule(self.steps, peak, pct_start=0.25)
            schedule = (lambda k: float(one_cycle(fnp.asarray(k))))
        self.rates = np.array([schedule(k) for k in range(self.steps)], "float32")

    def shaped(self, images):
        """Images as f32[n,h,w,c], normalised."""
        x = np.asarray(self.prepared(images), "float32")
        return x if x.ndim == 4 else x[..., None]

    def batches(self, epoch):
        moves = [data.augment.crop, data.augment.flip] if not self.is_cnn else []
        found = data.batches(*self.train, size=self.size, seed=(0, epoch),
                             transforms=data.augment.on(*moves) if moves else ())
        for images, labels in found:
            yield self.shaped(images), np.asarray(labels, "int32")

    def tests(self):
        for images, labels in data.batches(*self.test, size=500, shuffle=False, drop_last=False):
            yield self.shaped(images), np.asarray(labels, "int32")


def run(task, step, predict):
    """[(seconds, loss, accuracy)] per epoch; step(x, y, k) → loss, predict(x) → labels."""
    k, rows = 0, []
    for epoch in range(1, task.epochs + 1):
        ready = list(task.batches(epoch))
        losses, start = [], time.perf_counter()
        for x, y in ready:
            losses.append(step(x, y, k))
            k += 1
        losses = [float(v) for v in losses]
        seconds = time.perf_counter() - start
        right = sum(int(np.sum(np.asarray(predict(x)) == y)) for x, y in task.tests())
        rows.append((seconds, float(np.mean(losses)), right / len(task.test[1])))
        print(json.dumps(rows[-1]), flush=True)
    return rows


# ---------------------------------------------------------------------------- fgrad

def fgrad_steps(task):
    kernels = fgrad.tree.map(lambda p: p.ndim > 1, task.params)
    rates = fnp.asarray(task.rates)
    rate = lambda k: rates[k]
    optimizer = optim.adam(rate) if task.is_cnn else optim.chain(
        optim.add_decayed_weights(5e-4, mask=kernels), optim.sgd(rate, 0.9, nesterov=True))
    now = {"params": task.params, "state": task.state, "memory": optimizer.init(task.params)}

    def loss(params, state, x, y):
        logits, state = task.model.apply(params, state, x, train=True)
        return fnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, y)), state

    @fgrad.jit
    def update(params, state, memory, x, y):
        (value, state), grads = fgrad.value_and_grad(loss, has_aux=True)(params, state, x, y)
        updates, memory = optimizer.update(grads, memory, params)
        return optim.apply_updates(params, updates), state, memory, value

    predict = fgrad.jit(lambda p, s, x: fnp.argmax(task.model.apply(p, s, x)[0], axis=-1))

    def step(x, y, k):
        now["params"], now["state"], now["memory"], value = update(*now.values(), x, y)
        return value
    return step, lambda x: predict(now["params"], now["state"], x)


# ---------------------------------------------------------------------------- torch

def torch_steps(task):
    torch = importlib.import_module("torch")
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    network = torch_network(torch, task)
    kernels = [p for p in network.parameters() if p.ndim > 1]
    rest = [p for p in network.parameters() if p.ndim <= 1]
    if task.is_cnn:
        optimizer = torch.optim.Adam(network.parameters(), lr=1.0, fused=True)
    else:
        groups = [{"params": kernels, "weight_decay": 5e-4}, {"params": rest, "weight_decay": 0.0}]
        optimizer = torch.optim.SGD(groups, lr=1.0, momentum=0.9, nesterov=True)

    def images(x):
        return torch.from_numpy(x).permute(0, 3, 1, 2)      # channels last in memory

    def step(x, y, k):
        network.train()
        for group in optimizer.param_groups:
            group["lr"] = float(task.rates[k])
        optimizer.zero_grad()
        labels = torch.from_numpy(y).long()
        loss = torch.nn.functional.cross_entropy(network(images(x)), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def predict(x):
        network.eval()
        with torch.inference_mode():
            return network(images(x)).argmax(-1).numpy()
    return step, predict


def torch_network(torch, task):
    """The same network as a Module with the same weights."""
    module = torch_module(torch, task.model, task.params)
    return module.to(memory_format=torch.channels_last)


def torch_module(torch, layer, params):
    """A layer of fgrad as a Module of torch."""
    modules = torch.nn
    match layer:
        case nn.Sequential():
            shape = {}
            return modules.Sequential(*[torch_module(torch, each, params.get(name, shape))
                                        for name, each in zip(layer.names, layer.layers)])
        case nn.Residual():
            return torch_residual(torch, layer, params)
        case nn.Conv():
            w = torch.tensor(np.asarray(params["w"])).permute(3, 2, 0, 1).contiguous()
            made = modules.Conv2d(w.shape[1], w.shape[0], layer.kernel, layer.stride,
                                  layer.kernel[0] // 2, bias=False)
            made.weight.data = w
            return made
        case nn.BatchNorm():
            return modules.BatchNorm2d(params["scale"].shape[0])
        case nn.MaxPool():
            return modules.MaxPool2d(2)
        case nn.GlobalAvgPool():
            return modules.Sequential(modules.AdaptiveAvgPool2d(1), modules.Flatten())
        case nn.Flatten():
            return Flattened(torch)
        case nn.Dense():
            w, b = (torch.tensor(np.asarray(params[k])) for k in ("w", "b"))
            made = modules.Linear(*w.shape)
            made.weight.data, made.bias.data = w.T.contiguous(), b
            return made
        case _:
            return modules.ReLU()


def Flattened(torch):
    """Flatten in the order of channels last, as fgrad's weights expect."""
    class Flat(torch.nn.Module):
        def forward(self, x):
            return x.permute(0, 2, 3, 1).flatten(1)
    return Flat()


def torch_residual(torch, layer, params):
    class Residual(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch_module(torch, layer.layer, params["layer"])
            self.side = torch_module(torch, layer.shortcut, params["shortcut"]) \
                if layer.shortcut else torch.nn.Identity()

        def forward(self, x):
            return self.body(x) + self.side(x)
    return Residual()


# ---------------------------------------------------------------------------- jax

def jax_steps(task):
    """The CNN in jax, with Adam of optax."""
    jax, optax = importlib.import_module("jax"), importlib.import_module("optax")
    jnp = importlib.import_module("jax.numpy")
    rates = jnp.asarray(task.rates)
    optimizer = optax.adam(lambda k: rates[k])
    params = fgrad.tree.map(lambda a: jnp.asarray(np.asarray(a)), task.params)
    window = (1, 2, 2, 1)

    def normed(x, p):
        mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
        return (x - mean) / jnp.sqrt(variance + 1e-5) * p["scale"] + p["shift"]

    def network(params, x):
        for k in "12":
            x = jax.lax.conv_general_dilated(x, params[f"conv{k}"]["w"], (1, 1), "SAME",
                                             dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jnp.maximum(normed(x, params[f"batchnorm{k}"]), 0)
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")
        return x.reshape(len(x), -1) @ params["dense1"]["w"] + params["dense1"]["b"]

    def loss(params, x, y):
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(network(params, x), y))

    @jax.jit
    def update(params, memory, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, memory = optimizer.update(grads, memory, params)
        return optax.apply_updates(params, updates), memory, value
    now = {"params": params, "memory": optimizer.init(params)}
    predict = jax.jit(lambda p, x: jnp.argmax(network(p, x), -1))   # by the batch's own statistics

    def step(x, y, k):
        now["params"], now["memory"], value = update(*now.values(), x, y)
        return value
    return step, lambda x: predict(now["params"], x)


STEPS = {"fgrad": fgrad_steps, "torch": torch_steps, "jax": jax_steps}


# ---------------------------------------------------------------------------- the command

def parse(argv):
    parser = argparse.ArgumentParser("python -m benchmarks.compare_training", description=__doc__)
    add = parser.add_argument
    add("task", choices=["mnist", "cifar"])
    add("--data", required=True, help="folder of MNIST's, or CIFAR-10's, files")
    add("--impl", default="fgrad,torch")
    add("--epochs", type=int, default=3)
    add("--batch", type=int, default=64)
    add("--examples", type=int, default=0, help="train on the first so many only")
    add("--threads", type=int, default=os.cpu_count())
    add("--python", nargs="+", default=[], metavar="IMPL=PATH")
    add("--one", choices=list(STEPS), help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv):
    options = parse(argv)
    if options.one:
        implementations.hold_to(options.threads)
        task = Task(options)
        run(task, *STEPS[options.one](task))
        return
    names = options.impl.split(",")
    pythons = starts.pythons(dict(pair.split("=", 1) for pair in options.python), names)
    print(f"{'':8}{'seconds an epoch':>24}{'test accuracy after each':>40}")
    for name in names:
        done = subprocess.run([pythons[name], "-m", "benchmarks.compare_training", *argv,
                               "--one", name], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                              env=implementations.environment(options.threads, ""), check=True)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
        seconds = " ".join(f"{row[0]:.1f}" for row in rows)
        accuracy = " ".join(f"{row[2]:.4f}" for row in rows)
        print(f"{name:8}{seconds:>24}{accuracy:>40}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
