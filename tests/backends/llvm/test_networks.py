"""Sorting networks: every vector of zeros and ones is sorted, so everything is (Knuth, 5.3.4)."""

import numpy as np
import pytest

from fgrad.backends.llvm import networks, quick_text

COUNTS = [2, 4, 6, 8, 12, 16, 24, 32]


def ran(x, count, lanes):
    """The rows of x, [rows, count * lanes], after a network, as its stages say it."""
    vectors = list(x.reshape(-1, count, lanes).swapaxes(0, 1))
    for stage in networks.stages(count, lanes):
        vectors = [vectors[first] if picks is None else
                   np.concatenate([vectors[first], vectors[second]], -1)[:, picks]
                   for first, second, picks in stage.taken]
        for i, j in stage.pairs:
            x, y = vectors[i], vectors[j]
            vectors[i], vectors[j] = np.minimum(x, y), np.maximum(x, y)
    return np.concatenate(vectors, -1)


@pytest.mark.parametrize("count, lanes", [(2, 2), (4, 2), (6, 2), (8, 2), (2, 4), (4, 4), (2, 8)])
def test_all_zeros_and_ones(count, lanes):
    size = count * lanes
    x = np.arange(1 << size, dtype=np.uint32)[:, None] >> np.arange(size, dtype=np.uint32) & 1
    x = x.astype(np.uint8)
    np.testing.assert_array_equal(ran(x, count, lanes), np.sort(x, -1))


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("count", COUNTS)
def test_random_numbers(count, lanes):
    rng = np.random.default_rng(count)
    x = np.concatenate([rng.integers(0, high, (300, count * lanes)) for high in (2, 7, 10**6)])
    np.testing.assert_array_equal(ran(x, count, lanes), np.sort(x, -1))


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("count", COUNTS)
def test_instructions(count, lanes):
    """No vector is compared twice in a step; there are no more comparisons than a bitonic network
    has, and few shuffles.
    """
    stages = networks.stages(count, lanes)
    for stage in stages:
        used = [v for pair in stage.pairs for v in pair]
        assert len(used) == len(set(used)) <= count
    comparisons, bits = sum(len(stage.pairs) for stage in stages), np.log2(count * lanes)
    assert comparisons <= count * (bits * (bits + 1) / 4 + 1)
    shuffles = sum(picks is not None for stage in stages for _, _, picks in stage.taken)
    assert shuffles <= 19 * count


def test_the_networks_that_are_written_are_among_these():
    assert set(quick_text.COUNTS) <= {1, *COUNTS}
