"""Rows of tiles whose sums are stored while the next row is multiplied: products as without."""

from unittest.mock import patch

import numpy as np
import pytest

import fgrad
from fgrad.backends.llvm import late_tiles
from fgrad.backends.llvm.contract_emit import emit

from tests.backends.llvm.test_contract import MACHINE, TYPES, Buffers, check

LANES = MACHINE.lanes("float")


@pytest.fixture(autouse=True)
def any_processor():
    """Also one whose registers are too few."""
    with patch.object(late_tiles, "SPARE", -99):
        yield


def late(planned):
    """The plan of a product whose epilogue moves much memory; it has rows of tiles that wait."""
    made = planned.but(moved=late_tiles.MOVED)
    assert late_tiles.is_late(made)
    return made


@pytest.mark.parametrize("forms", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("rows", [25, 26, 28, 60, 61, 127])
def test_products_agree_with_numpy(rows, forms):
    check(rows, 4 * LANES, 64, forms, epilogue=True, change=late)


@pytest.mark.parametrize("depth", [32, 33, 40, 63, 129])
def test_steps_may_be_left_over(depth):
    check(40, 4 * LANES, depth, "tn", epilogue=True, change=late)


@pytest.mark.parametrize("vectors", [1, 2, 3, 5, 7, 8, 13])
def test_rows_may_have_any_number_of_vectors(vectors):
    check(50, vectors * LANES, 70, "tn", epilogue=True, change=late)


@pytest.mark.parametrize("forms", ["nn", "tn"])
def test_batches_wait_for_no_other(forms):
    check(45, 4 * LANES, 40, forms, batch=3, epilogue=True, change=late)


def in_blocks(planned):
    """The same of a product whose sums wait for the last of several blocks of steps."""
    made = planned.but(kc=planned.depth // 2 + 1, moved=1 << 30)
    assert late_tiles.is_late(made) and made.blocks > 1
    return made


@pytest.mark.parametrize("forms", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("rows, depth", [(25, 80), (26, 81), (61, 90), (127, 96)])
def test_sums_may_have_waited_for_the_last_block(rows, depth, forms):
    check(rows, 4 * LANES, depth, forms, epilogue=True, change=in_blocks)


@pytest.mark.parametrize("vectors", [1, 3, 5])
def test_rows_of_sums_that_have_waited_may_have_any_number_of_vectors(vectors):
    check(50, vectors * LANES, 150, "tn", epilogue=True, change=in_blocks)


def test_parts_and_batches_of_blocks_wait_for_no_other():
    planned = check(1500, 8 * LANES, 70, "tn", workers=2, epilogue=True, change=in_blocks)
    assert planned.grid == (1, 2, 1, 1)
    check(45, 4 * LANES, 70, "nn", batch=3, pulled=True, epilogue=True, change=in_blocks)
    check(45, 4 * LANES, 70, "nn", "float64", epilogue=True,
          change=lambda planned: in_blocks(planned).but(mc=2 * planned.tile.rows))


@pytest.mark.parametrize("workers", [2, 3])
def test_parts_wait_for_no_other(workers):
    planned = check(1500, 8 * LANES, 70, "tn", workers=workers, epilogue=True, change=late)
    assert planned.parts > 1


def test_operands_may_be_computed():
    check(45, 4 * LANES, 40, "tn", pulled=True, epilogue=True, change=late)


def test_doubles_agree_with_numpy():
    check(45, 2 * LANES, 70, "tn", "float64", epilogue=True, change=late)


def test_what_becomes_of_sums_is_written_between_the_steps():
    planned = check(45, 4 * LANES, 70, "tn", epilogue=True, change=late)
    product = Buffers(TYPES["float32"], (45 * 70, 70 * 4 * LANES, 45 * 4 * LANES), 4 * LANES)
    text = emit(planned, product, "product").functions["product"]
    assert text.index("fmuladd") < text.index("fcmp ogt") < text.rindex("fmuladd")


@pytest.mark.parametrize("change", [
    {"moved": late_tiles.MOVED - 1}, {"epilogue": False}, {"rows": 6}, {"depth": 7}, {"sums": 1},
    {"columns": 4 * LANES + 1}, {"grid": (1, 1, 1, 2)}, {"kc": 32, "columns": 1 << 14}])
def test_others_wait_for_nothing(change):
    planned = late(check(45, 4 * LANES, 64, "tn", epilogue=True))
    assert not late_tiles.is_late(planned.but(**change))


def test_tiles_that_leave_no_registers_wait_for_nothing():
    planned = late(check(45, 4 * LANES, 64, "tn", epilogue=True))
    sums = planned.tile.rows * planned.tile.vectors
    with patch.object(late_tiles, "SPARE", MACHINE.registers - sums + 1):
        assert not late_tiles.is_late(planned)


def test_a_step_of_an_optimizer_agrees_with_numpy():
    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal((64, n)).astype(np.float32) for n in (600, 256))
    w, m, v = (rng.random((600, 256), np.float32) for _ in range(3))

    def step(w, m, v, x, g):
        d = x.T @ g
        m, v = 0.9 * m + 0.1 * d, 0.999 * v + 0.001 * d * d
        return w - 0.001 * m / (v ** 0.5 + 1e-8), m, v
    for found, expected in zip(fgrad.jit(step)(w, m, v, x, g), step(w, m, v, x, g)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
