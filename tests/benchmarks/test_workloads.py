"""Every workload of the tables at its own size, compiled: what NumPy's version gives, or numbers.

Arrays that no cache holds are fetched ahead, read by stretches and stored past the cache, which
small programs do not show.
"""

import numpy as np
import pytest

import fgrad
from benchmarks import workload, workloads


@pytest.mark.parametrize("name", [w.name for w in workloads.tabled() if not w.full])
def test_a_workload_gives_the_answer_of_numpy(name):
    found = workloads.find(name)
    got = workload.answer(
        found, workload.prepared(found, "jax", fgrad, fgrad.numpy.array).first())
    want = workload.reference(found)
    if want is None:
        assert all(np.isfinite(values).all() for _, values in got)
    else:
        assert not workload.disagreement(found, got, want)
