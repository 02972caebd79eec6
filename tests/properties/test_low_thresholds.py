"""Random programs for a compiler that takes them for large: its thresholds are low.

Long sums are cut into stretches, values stored that are read often, blocks of rows computed at
once: where arrays have so many elements that the oracles would take minutes.  With thresholds of a
few elements the same happens to small arrays.
"""

import contextlib
import importlib
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

import fgrad
from fgrad.core import Array
from fgrad.jitted import jit

from tests.properties.test_compiled import assert_within
from tests.strategies import WIDE, examples, programs

BACKEND = ("fetches", "late_rows", "late_tiles", "module", "radix", "values")
LOW = {                    # module → its thresholds, in groups that are lowered together
    "stretches": [{"STRETCH": 16, "LONG": 32}, {"STRETCH": 5, "LONG": 11, "MANY": 2}],
    "parts": [{"ROWS": 3}, {"COLUMNS": (32, 16), "WRITTEN_OUT": 2}, {"APART": 16}],
    "recompute": [{"OFTEN": 2, "MANY": 8}, {"SOME": 4, "PARTS": 2}, {"KEPT": 16, "ROOT": 1},
                  {"AGAIN": 2, "GATHERED": 2, "CHEAP": 1}, {"SOME": 4, "AGAIN": 2, "SPARED": 1},
                  {"MANY": 8, "GATHERED": 2}],
    "reduction_forms": [{"NEAR": 8, "SHORT": 4, "DEEP": 8}, {"PLACES": 9, "CHEAP": 400}],
    "stored": [{"WRITE": 32, "READS": 4}, {"DEPTH": 6, "DEPTH_SHARED": 3}, {"PLACES": 2}],
    "computed_places": [{"BLOCK": 4, "FEWEST": 2, "MORE": 2, "WORK": 1}],
    "tails": [{"LEAST": 2, "FEWEST": 2, "LONG": 4, "MANY": 2, "WITHIN": 1},
              {"BLOCK": 4, "BLOCKS": 1}],
    "across": [{"LEAST": 2, "LONG": 3}, {"ROOM": 256, "BLOCKS": 1}],
    "borders": [{"OFTEN": 2, "LONG": 2, "RUN": 1}, {"PIECES": 3, "CHUNK": 2}],
    "short_loops": [{"SHORT": 3, "COPIES": 4}, {"FEW": 2, "LONG": 1}],
    "jam": [{"NEAR": 64, "FROM_MEMORY": 1}, {"NODES": 400, "VECTORS": 1}],
    "join_loops": [{"SHARED": 1.0}],
    "schedule": [{"WINDOW": 4}, {"READS": 2, "SHARED": 1.0}],
    "calls": [{"OFTEN": 1}, {"TWICE": 0}],
    "fourier": [{"LARGEST": 4}, {"NEAR": 4}, {"LONGEST": 4}],
    "matrices": [{"STACK": 2, "LU": 4}],
    "matrix_loops": [{"BLOCK": 2}],
    "series": [{"BLOCK": 16}],
    "tables": [{"PARTS": 1}, {"MOST": 4}],
    "turns": [{"FINEST": 2}],
    "updates": [{"PART": 1}],
    "product": [{"SMALL": 4}, {"TINY": 1, "WINDOW": 2}],
    "simplify": [{"COMBINED": 2}, {"WRITTEN_OUT": 2}],
    "levels": [{"KEEP": 1}, {"KEEP": 100}],
    "pull": [{"DEEP": 2, "COUNTED": 3, "MOVED": 9}],
    "fuse": [{"SIZE": 30}, {"LOOKBACK": 1}],
    "findings": [{"PACKED_ONCE": 2, "PROLOGUE": 100}, {"FEW": 100, "LONG": 2}],
    "fetches": [{"LARGE": 64, "SHORT": 8}],
    "late_rows": [{"LEAST": 64}],
    "late_tiles": [{"MOVED": 1, "SEVERAL": 0, "SPARE": -99, "EACH": 2, "LEAST": 64,
                    "FROM_MEMORY": 1}],
    "module": [{"FEW": 0, "LONG": 8}],
    "radix": [{"MANY": 16, "LEAST": 1}],
    "values": [{"FEW": 1, "NEAR": 16, "HELD": 64}],
}
GROUPS = [(name, k) for name, groups in LOW.items() for k in range(len(groups))]


def module_of(name):
    return importlib.import_module(
        f"fgrad.{'backends.llvm' if name in BACKEND else 'passes'}.{name}")


@contextlib.contextmanager
def lowered(groups):
    """While it is entered, these thresholds are low, and nothing is known from before."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.dict("os.environ", FGRAD_CACHE="0"))
        for name, k in groups:
            stack.enter_context(patch.multiple(module_of(name), **LOW[name][k]))
        fgrad.clear_caches()
        try:
            yield
        finally:
            fgrad.clear_caches()


def assert_jit_agrees(p, groups):
    with lowered(groups):
        assert_within(jit(p.function)(*p.arrays), p(*map(Array, p.arrays)), p.errors, "jit")


subsets = st.lists(st.sampled_from(GROUPS), min_size=1, unique=True)


@examples(60)
@given(programs(host=False), subsets)
def test_jit_gives_what_the_function_gives(p, groups):
    assert_jit_agrees(p, groups)


@examples(40)
@given(programs(sizes=WIDE, most=20_000, host=False), subsets)
def test_jit_gives_what_the_function_gives_for_long_rows(p, groups):
    assert_jit_agrees(p, groups)


def test_every_threshold_is_there():
    for name, groups in LOW.items():
        assert all(hasattr(module_of(name), word) for group in groups for word in group), name
