"""The heap: blocks overlap nobody, free neighbours are one block again, pages go back."""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

from fgrad import aligned, jit
from fgrad.backends.llvm import heap, native_call, target
from fgrad.core import Array

linux = pytest.mark.skipif(sys.platform != "linux", reason="large pages are asked for on Linux")
LARGE = aligned.LARGE


class Heap:
    """A heap of its own, called from Python."""

    def __init__(self, text=None):
        library = target.load(target.compile_text(text or heap.text()))
        pointer, size = ctypes.c_void_p, ctypes.c_int64
        self.library = library
        self.new = ctypes.CFUNCTYPE(pointer, size)(library.address("fg.heap.new"))
        self.free = ctypes.CFUNCTYPE(None, pointer)(library.address("fg.heap.free"))
        self.forget = ctypes.CFUNCTYPE(None)(library.address("fg.heap.forget"))


def memory(address, size):
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


@pytest.mark.parametrize("text", [heap.text(), heap.text(False)], ids=["here", "elsewhere"])
def test_blocks_lie_at_lines_and_overlap_nobody(text):
    own, rng, held = Heap(text), np.random.default_rng(1), {}
    sizes = [0, 1, 63, 64, 4096, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE + 77, 1 << 21, 5 << 20]
    for turn in range(400):
        if held and rng.random() < 0.45:
            address = list(held)[rng.integers(len(held))]
            size, mark = held.pop(address)
            assert (memory(address, size) == mark).all()
            own.free(address)
        else:
            size = sizes[rng.integers(len(sizes))]
            address, mark = own.new(size), turn % 251
            assert address % 64 == 0
            memory(address - 48, size + 48)[:] = mark        # the caller's part of the head, too
            held[address] = size, mark
    for address, (size, mark) in held.items():
        assert (memory(address, size) == mark).all()
        own.free(address)


@linux
def test_free_neighbours_are_one_block_again():
    own = Heap()
    whole = heap.SPAN - (1 << 16)
    first = own.new(whole)
    own.free(first)
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1], [2, 0, 1]):
        blocks = [own.new(8 * LARGE) for _ in range(3)]
        assert blocks == sorted(blocks) and blocks[0] == first
        for k in order:
            own.free(blocks[k])
        assert own.new(whole) == first
        own.free(first)


@linux
def test_the_first_hole_that_is_large_enough_is_taken():
    own = Heap()
    a, b, c, d = (own.new(size * LARGE) for size in (2, 1, 4, 1))
    own.free(a)
    own.free(c)
    assert own.new(3 * LARGE) == c
    assert own.new(LARGE) == a
    own.free(b), own.free(d)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@linux
def test_pages_of_much_free_memory_go_back_to_the_system():
    own, size = Heap(), 3 * heap.TRIM
    block = own.new(size)
    memory(block, size)[:] = 1
    before = resident()
    own.free(block)
    assert before - resident() > size - (4 << 20)
    again = own.new(size)
    assert again == block and not memory(again, size)[1 << 21:-(1 << 21)].any()
    own.free(again)


@linux
def test_a_block_with_a_span_of_its_own_takes_no_page_beyond_its_end():
    own, size = Heap(), heap.SPAN + (1 << 21) + 5000
    block = own.new(size)
    before = resident()
    memory(block, size)[:] = 1
    assert resident() - before < size + (1 << 19)
    own.free(block)


def test_what_nobody_has_is_null():
    own = Heap()
    assert own.new(1 << 60) is None
    assert own.new(LARGE)


@linux
def test_a_child_begins_a_new_list_only_where_another_thread_was_at_work():
    text = heap.text() + """
define void @interrupt() {
  call void @hold()
  ret void
}
"""
    own = Heap(text)
    first = own.new(LARGE)
    own.free(first)
    own.forget()
    assert own.new(LARGE) == first
    own.free(first)
    ctypes.CFUNCTYPE(None)(own.library.address("interrupt"))()
    own.forget()
    other = own.new(LARGE)
    assert other != first
    memory(other, LARGE)[:] = 7
    own.free(first)
    own.free(other)


@pytest.mark.skipif(not native_call.probe(), reason="calls begin in Python here")
def test_copies_and_results_have_memory_of_the_heap():
    native_call.native()
    x = aligned.copied(np.arange(float(LARGE)))
    assert native_call.owns(x.base) and x.flags.writeable and (x == np.arange(float(LARGE))).all()
    for dtype in (bool, "i1", "u2", "i8", "f2", "c16"):
        y = aligned.empty((3, LARGE), dtype)
        assert native_call.owns(y.base) and y.dtype == dtype and y.shape == (3, LARGE)
    assert not native_call.owns(aligned.empty((LARGE,), "U2").base)
    f = jit(lambda x: x + 1)
    for _ in range(3):
        z = f(x)
    assert isinstance(z, Array) and native_call.owns(z.np.base)


@pytest.mark.skipif(not native_call.probe(), reason="calls begin in Python here")
@pytest.mark.parametrize("disk, heaps", [("cache", [False, True]), ("0", [False, False])])
def test_arrays_before_all_compiling_have_it_where_the_disk_has_its_code(tmp_path, disk, heaps):
    program = """if True:
        import sys
        import numpy as np, fgrad, fgrad.numpy as fnp
        before = fnp.array(np.ones(99_999))
        f = fgrad.jit(lambda x: x + 1)
        for _ in range(3):
            f(before)
        from fgrad.backends.llvm import native_call
        sys.stdout.write(str(native_call.owns(before.np.base)))
    """
    env = os.environ | {"FGRAD_CACHE": disk if disk == "0" else str(tmp_path / disk)}
    for has_heap in heaps:
        run = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True,
                             text=True, check=True, timeout=60)
        assert run.stdout == str(has_heap)


def test_small_arrays_bring_no_heap():
    program = """if True:
        import sys
        import numpy as np, fgrad.numpy as fnp
        fnp.array(np.ones(9999))
        sys.stdout.write(str("llvmlite" in sys.modules))
    """
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                         check=True, timeout=60)
    assert run.stdout == "False"
