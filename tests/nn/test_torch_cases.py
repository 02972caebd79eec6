"""Layers, activations and losses give what torch gives; its answers are stored.

`python -m benchmarks.compare_layers --store tests/nn/torch_cases.json` renews them.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.nn.torch_cases import CASES

STORED = json.loads(Path(__file__).with_name("torch_cases.json").read_text())


def close(got, want):
    want = np.reshape(np.array(want, "float32"), got.shape)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * max(np.abs(want).max(), 1e-6))


def test_every_case_is_stored():
    assert [case.name for case in CASES] == list(STORED)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_result_and_gradients_are_those_of_torch(case):
    out, grads = case.answers()
    close(out, STORED[case.name]["result"])
    assert set(grads) == set(STORED[case.name]["grads"])
    for name, grad in grads.items():
        close(grad, STORED[case.name]["grads"][name])
