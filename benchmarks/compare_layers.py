"""Layers, activations and losses beside torch's: results and gradients of the same weights.

    python -m benchmarks.compare_layers [--store tests/nn/torch_cases.json]

Prints the largest difference of each case, relative to the largest element, and exits with 1 where
one is above 1e-5.  --store writes torch's answers, which the tests compare with fgrad's.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch

from tests.nn.torch_cases import CASES

LIMIT = 1e-5


def difference(own, theirs):
    """The largest difference, relative to the largest element."""
    scale = max(np.max(np.abs(theirs), initial=0), 1e-6)
    return np.max(np.abs(own - theirs), initial=0) / scale


def compared(case):
    """(difference of the results, of the gradients, torch's answers)."""
    torch.manual_seed(0)
    theirs, their_grads = case.torch_answers(torch)
    own, grads = case.answers()
    assert own.shape == theirs.shape, (case.name, own.shape, theirs.shape)
    worst = max(difference(grads[k], their_grads[k]) for k in grads)
    return difference(own, theirs), worst, (theirs, their_grads)


def stored(answers):
    """Torch's answers as lists, with as many digits as single precision has."""
    result, grads = answers

    def numbers(a):
        return [float(f"{x:.7g}") for x in np.ravel(a)]
    return {"result": numbers(result), "grads": {k: numbers(g) for k, g in grads.items()}}


def main(argv):
    parser = argparse.ArgumentParser("python -m benchmarks.compare_layers", description=__doc__)
    parser.add_argument("--store", type=Path)
    options = parser.parse_args(argv)
    kept, failed = {}, 0
    print(f"{'case':24} {'result':>9} {'gradients':>9}")
    for case in CASES:
        result, grads, answers = compared(case)
        wrong = not max(result, grads) <= LIMIT
        failed += wrong
        print(f"{case.name:24} {result:9.1e} {grads:9.1e}" + ("  too far" if wrong else ""))
        kept[case.name] = stored(answers)
    if options.store:
        rows = [f"{json.dumps(name)}: {json.dumps(found, separators=(',', ':'))}"
                for name, found in kept.items()]
        options.store.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
