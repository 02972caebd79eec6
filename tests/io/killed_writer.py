"""Trains and checkpoints without pause in a child process that is killed, again and again.

Run by test_checkpoint.py: `killed_writer.py FOLDER KILLS SEED`.  Prints how many kills left a
half-written file, how many steps were taken, and whether the parameters are those of a run that
nobody killed.
"""

import os
import random
import signal
import sys
import time

import numpy as np

import fgrad
from fgrad import optim, tree
from fgrad.io import Checkpointer

ADAM = optim.adam(1e-2)


@fgrad.jit
def advance(params, state, key):
    """One step of Adam on noise."""
    key, now = fgrad.random.split(key)
    target = fgrad.random.normal(now, params["w"].shape)
    grads = fgrad.grad(lambda p: fgrad.numpy.mean((p["w"] * p["scale"] - target) ** 2))(params)
    updates, state = ADAM.update(grads, state, params)
    return optim.apply_updates(params, updates), state, key


def begin():
    """The state of a run before its first step."""
    params = {"w": np.zeros((200, 300), np.float32), "scale": np.ones(300, np.float32)}
    return {"params": params, "state": ADAM.init(params), "key": fgrad.random.key(7), "epoch": 0,
            "rate": 0.1}


def step(run):
    """The state one step on."""
    params, state, key = advance(run["params"], run["state"], run["key"])
    return {"params": params, "state": state, "key": key, "epoch": run["epoch"] + 1,
            "rate": run["rate"] * 1.01}


def resumed(checkpoints):
    return begin() if checkpoints.latest() is None else checkpoints.restore(like=begin())


def write_for_ever(folder):
    """What the child does until it is killed."""
    checkpoints = Checkpointer(folder, keep=2)
    run = resumed(checkpoints)
    while True:
        run = step(run)
        checkpoints.save(run["epoch"], run)


def same(first, second):
    """Are all leaves equal, bit for bit?"""
    pairs = zip(tree.leaves(first), tree.leaves(second), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


def main(folder, kills, seed):
    pause = random.Random(seed)
    step(begin())                                        # compiled once, for all children
    half_written, last = 0, 0
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            write_for_ever(folder)
        time.sleep(pause.uniform(0.005, 0.15))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        half_written += any(name.endswith(".new") for name in os.listdir(folder))
        checkpoints = Checkpointer(folder, keep=2)
        run = resumed(checkpoints)                       # reads all of it
        assert run["epoch"] == (checkpoints.latest() or 0) >= last, "a checkpoint was lost"
        last = run["epoch"]
    expected = begin()
    for _ in range(last):
        expected = step(expected)
    print(half_written, last, same(run, expected))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
