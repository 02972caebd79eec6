"""Random programs for a processor whose caches hold little: kernels are those of large arrays.

What is stored, fetched ahead, written past the caches or computed row by row depends on what the
caches hold; with small ones that happens for arrays that are quick to check.
"""

from unittest.mock import patch

import pytest
from hypothesis import given

import fgrad
from fgrad.backends.llvm import host, module
from fgrad.backends.llvm.tiles import Machine
from fgrad.core import Array
from fgrad.jitted import jit

from tests.properties.test_compiled import assert_within
from tests.strategies import WIDE, examples, programs


@pytest.fixture(scope="module", autouse=True, params=[1 << 12, 1 << 14], ids="{} bytes".format)
def small_caches(request):
    with (patch.object(host, "last_cache", lambda: request.param),
          patch.object(Machine, "l2", property(lambda self: request.param // 4)),
          patch.dict("os.environ", FGRAD_CACHE="0")):
        forget()
        yield
    forget()


def forget():
    """What is known of this processor, and compiled for it, is made again."""
    module.host_target.cache_clear()
    fgrad.clear_caches()


@examples(40)
@given(programs(sizes=WIDE, most=20_000, host=False))
def test_jit_gives_what_the_function_gives(p):
    f = jit(p.function)
    assert_within(f(*p.arrays), p(*map(Array, p.arrays)), p.errors, "jit")


@examples(25)
@given(programs(("float32", "float32", "float64", "int32", "bool"), host=False, steps=9,
                sizes=(1, 3, 8, 129, 1000, 4099), most=40_000))
def test_jit_gives_what_the_function_gives_for_long_rows(p):
    f = jit(p.function)
    assert_within(f(*p.arrays), p(*map(Array, p.arrays)), p.errors, "jit")
