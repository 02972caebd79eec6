"""The workloads on an OpenCL device: what is measured and written, not how fast anything is."""

import pytest

import fgrad
from benchmarks import gpu

NAMES = ["matmul_64", "mlp_step_64"]
OPENCL = any(d.name.startswith("opencl") for d in fgrad.devices())


@pytest.mark.skipif(not OPENCL, reason="no OpenCL device")
def test_workloads_run_on_a_device_and_give_the_answers_of_the_processor(monkeypatch):
    monkeypatch.setattr(gpu, "LEAST", 1e-4)
    found = {device: {row["name"]: row for row in gpu.measured("fgrad", NAMES, device)}
             for device in ("opencl", "cpu")}
    assert [*found["opencl"]] == NAMES and gpu.problems(found) == []
    assert all(row["seconds"] > 0 for row in found["opencl"].values())


def test_the_table_names_what_is_fastest_and_what_went_wrong():
    found = {"fgrad": {"a": {"seconds": 2e-3, "answer": [([1], [1.0])]},
                       "jit_add1": {"seconds": 1e-6, "answer": [([1], [1.0])]}},
             "torch": {"a": {"problem": "RuntimeError: no"},
                       "jit_add1": {"seconds": 4e-6, "answer": [([1], [2.0])]}}}
    assert gpu.table(found, ["fgrad", "torch"]) == [
        "| workload | fgrad | torch | ÷ torch |", "| --- | ---: | ---: | ---: |",
        "| a | **2.00 ms** |  |  |", "| jit_add1 | **1.00 µs** | 4.00 µs | 4.00 |"]
    assert gpu.problems(found) == [
        "torch: a: RuntimeError: no",
        "torch: jit_add1: off by 1.0e+00 of the largest element of fgrad"]
