"""Objects in memory, put there by fgrad's own linker and by LLVM's."""

import ctypes
import math
import os
import struct
import subprocess
import sys

import numpy as np
import pytest

from fgrad.backends.llvm import codegen, link, orc, target
from fgrad.errors import CheckError

DATA = """
@table = internal constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5], align 64
@wide = internal constant <8 x float> <float 0.0, float 1.0, float 2.0, float 3.0,
                                       float 4.0, float 5.0, float 6.0, float 7.0>, align 4096
@count = internal global i64 40, align 128
@empty = internal global [1000 x i64] zeroinitializer, align 64
@seen = global i64 7
@where = global ptr @seen
@far = external global i64
declare double @sin(double)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define double @entry(i64 %n) {
  %at = getelementptr double, ptr @table, i64 %n
  %x = load double, ptr %at
  ret double %x
}
define double @sine(i64 %n) {
  %x = call double @entry(i64 %n)
  %y = call double @sin(double %x)
  ret double %y
}
define i64 @more(i64 %n) {
  %old = load i64, ptr @count
  %new = add i64 %old, %n
  store i64 %new, ptr @count
  %last = getelementptr i64, ptr @empty, i64 999
  store i64 %new, ptr %last
  %again = load i64, ptr %last
  ret i64 %again
}
define void @copy(ptr %to, i64 %n) {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr @wide, i64 %n, i1 false)
  ret void
}
define i64 @pointed() {
  %at = load ptr, ptr @where
  %x = load i64, ptr %at
  %y = load i64, ptr @far
  %z = add i64 %x, %y
  ret i64 %z
}
define i64 @chosen(i64 %n) {
  switch i64 %n, label %other [ i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %d
                                i64 4, label %e ]
a: ret i64 31
b: ret i64 4
c: call void @llvm.memcpy.p0.p0.i64(ptr @empty, ptr @wide, i64 8, i1 false)
   ret i64 159
d: ret i64 26
e: ret i64 5
other: ret i64 -1
}
"""
FAR = ctypes.c_int64(100)
ARM_TEXT = """target triple = "aarch64-unknown-linux-gnu"
@table = internal constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5], align 64
@shared = global i64 7
@where = global ptr @shared
declare double @sin(double)
define double @sine(i64 %n) {
  %at = getelementptr double, ptr @table, i64 %n
  %x = load double, ptr %at
  %y = call double @sin(double %x)
  ret double %y
}
define i64 @number() {
  %x = load i64, ptr @shared
  ret i64 %x
}
define double @first() {
  %x = load double, ptr @table
  ret double %x
}
"""

here = pytest.mark.skipif(not link.loads(codegen.compile_text("define void @f() {\n ret void\n}")),
                          reason="LLVM's loader is used on this platform")


def own(data, symbols):
    return link.Library(data, lambda name: symbols.get(name) or link.in_process(name))


@pytest.fixture(params=[pytest.param(own, marks=here), orc.Library], ids=["own", "llvm"])
def library(request):
    symbols = {"far": ctypes.addressof(FAR)}
    loaded = request.param(codegen.compile_text(DATA), symbols)
    yield loaded
    loaded.close()


def function(library, name, result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)(library.address(name))


def test_constants_are_where_the_code_looks_for_them(library):
    entry = function(library, "entry", ctypes.c_double, ctypes.c_int64)
    assert [entry(n) for n in range(4)] == [1.5, 2.5, 3.5, 4.5]


def test_code_calls_its_own_functions_and_those_of_the_process(library):
    sine = function(library, "sine", ctypes.c_double, ctypes.c_int64)
    assert sine(2) == math.sin(3.5)


def test_variables_start_as_written_or_as_zeros_and_change(library):
    more = function(library, "more", ctypes.c_int64, ctypes.c_int64)
    assert [more(2), more(5)] == [42, 47]


def test_memory_is_copied_by_the_process(library):
    to = np.full(9, -1, np.float32)
    function(library, "copy", None, ctypes.c_void_p, ctypes.c_int64)(to.ctypes.data, 32)
    np.testing.assert_array_equal(to, [*range(8), -1])


def test_pointers_in_data_and_variables_of_others_are_found(library):
    assert function(library, "pointed", ctypes.c_int64)() == 107
    assert ctypes.c_int64.from_address(library.address("seen")).value == 7


def test_jump_tables_jump(library):
    chosen = function(library, "chosen", ctypes.c_int64, ctypes.c_int64)
    assert [chosen(n) for n in (0, 1, 2, 3, 4, 5, -1)] == [31, 4, 159, 26, 5, -1, -1]


def test_what_the_object_does_not_define_has_no_address(library):
    with pytest.raises(CheckError, match="nothing cannot be linked"):
        library.address("nothing")


def kept(data=None):
    return own(data or codegen.compile_text(DATA), {"far": ctypes.addressof(FAR)})


def mapped(library):
    """(rights, bytes) of each part of a library's memory, as the system shows them."""
    rows = []
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            ends, rights = line.split()[:2]
            start, end = (int(x, 16) for x in ends.split("-"))
            start, end = max(start, library.memory), min(end, library.memory + library.size)
            if start < end:
                rows.append((rights[:3], end - start))
    return rows


@here
def test_nothing_is_writable_and_executable_at_once():
    library = kept()
    rights = {rights for rights, _ in mapped(library)}
    assert "r-x" in rights and "rw-" in rights and not any("wx" in r for r in rights)


@here
def test_sections_lie_as_aligned_as_they_ask():
    text = ("@a = global i8 1\n" + "".join(f"@x{n} = constant [3 x i8] c\"abc\", align {n}\n"
                                           for n in (1, 16, 64, 4096, 16384)))
    library = kept(codegen.compile_text(text))
    assert all(library.address(f"x{n}") % n == 0 for n in (1, 16, 64, 4096, 16384))
    assert ctypes.string_at(library.address("x16384"), 3) == b"abc"


@here
def test_local_names_and_names_of_others_have_no_address():
    for name in ("sin", "table"):
        with pytest.raises(CheckError, match=f"{name} cannot be linked"):
            kept().address(name)


@here
def test_closing_gives_the_memory_back_once():
    library = kept()
    assert mapped(library)
    start, size = library.memory, library.size
    library.close()
    library.close()
    library.memory, library.size = start, size
    rights = {rights for rights, _ in mapped(library)}
    library.memory = None
    assert "r-x" not in rights


@here
def test_an_object_that_is_none_is_refused():
    data = codegen.compile_text(DATA)
    assert link.loads(data)
    for other in (b"", b"\x7fELF", data[:63], b"MZ" + data[2:], data[:18] + b"\x03" + data[19:]):
        assert not link.loads(other)


@here
@pytest.mark.parametrize("length", [64, 100, 500, 1000, 2000])
def test_a_short_object_is_an_error_and_takes_no_memory(length):
    with pytest.raises(CheckError, match="cannot be"):
        kept(codegen.compile_text(DATA)[:length])


@here
def test_an_unknown_kind_of_reference_is_an_error(monkeypatch):
    monkeypatch.setitem(link.KINDS, link.X86, {})
    monkeypatch.setitem(link.KINDS, link.ARM, {})
    with pytest.raises(CheckError, match="does not know: type"):
        kept()


@here
def test_a_name_that_nobody_defines_is_named():
    text = "declare void @fg.nowhere()\ndefine void @f() {\n call void @fg.nowhere()\n ret void\n}"
    with pytest.raises(CheckError, match="nobody defines fg.nowhere"):
        target.load(codegen.compile_text(text))


@here
def test_what_does_not_reach_its_goal_is_an_error():
    found = link.read(codegen.compile_text(DATA))
    data = [k for k, s in enumerate(found.symbols) if s.name == "sin"]
    table = link.REFERENCE.pack(0, {link.X86: 2, link.ARM: 261}[found.machine], data[0], 0)
    layout = link.laid_out(found)
    addresses = [2**40] * len(found.symbols)
    with pytest.raises(CheckError, match="'sin' is too far"):
        link.fill(bytearray(64), table, 0, found, layout, 0, addresses)


UNWINDS = """
import ctypes
from fgrad.backends.llvm import codegen, target
text = '''declare void @pthread_exit(ptr)
define void @leave() uwtable {
  call void @pthread_exit(ptr null)
  ret void
}'''
leave = ctypes.CFUNCTYPE(None)(target.load(codegen.compile_text(text)).address("leave"))
create, join = (getattr(ctypes.CDLL(None), "pthread_" + name) for name in ("create", "join"))
thread = ctypes.c_void_p()
assert create(ctypes.byref(thread), None, leave, None) == 0
assert join(thread, None) == 0
print("left")
"""


@here
def test_a_thread_may_end_within_the_code():
    out = subprocess.run([sys.executable, "-c", UNWINDS], capture_output=True, text=True,
                         timeout=60)
    assert out.stdout == "left\n", out.stderr


@here
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_changes_only_its_own_variables():
    library = kept()
    more = function(library, "more", ctypes.c_int64, ctypes.c_int64)
    child = os.fork()
    if child == 0:
        os._exit(more(1000) != 1040)
    assert os.waitpid(child, 0)[1] == 0 and more(1) == 41


# ---------------------------------------------------------------------------- aarch64


def arm_object():
    """An aarch64 object, wherever this LLVM can make one."""
    llvm = codegen.llvm
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        found = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    except RuntimeError:
        pytest.skip("this LLVM knows one processor only")
    machine = found.create_target_machine(opt=2, reloc="pic", codemodel="small", jit=True)
    return link.read(machine.emit_object(llvm.parse_assembly(ARM_TEXT, llvm.create_context())))


def test_aarch64_objects_hold_only_references_that_the_linker_knows():
    found = arm_object()
    types = {row[1] for _, table in found.references for row in link.REFERENCE.iter_unpack(table)}
    assert len(types) > 3 and types <= link.KINDS[link.ARM].keys()


def linked_for_arm(base=0x7F1234561000, sin=0x7E0000000010):
    found = arm_object()
    layout = link.laid_out(found)
    memory, addresses = link.linked(found, layout, base, {"sin": sin}.__getitem__)
    return found, layout, memory, dict(zip((s.name for s in found.symbols), addresses)), base


def test_aarch64_calls_reach_what_lies_far_away_by_an_entry():
    found, layout, memory, addresses, _ = linked_for_arm()
    [entry] = [at for k, at in layout.entries.items() if found.symbols[k].name == "sin"]
    jump = struct.unpack_from("<IIQ", memory, entry)
    assert jump == (0x58000050, 0xD61F0200, addresses["sin"])
    words = struct.unpack_from(f"<{layout.readable // 4}I", memory)
    goals = [4 * (k + signed(word, 26)) for k, word in enumerate(words) if word >> 26 in (5, 37)]
    assert entry in goals


def test_aarch64_pages_and_places_within_them_meet():
    _, layout, memory, addresses, base = linked_for_arm()
    words = list(struct.unpack_from(f"<{layout.readable // 4}I", memory))
    start = (addresses["first"] - base) // 4
    found = places(words, start, base)
    assert addresses["first"] and any(memory[at - base:at - base + 8] == struct.pack("<d", 1.5)
                                      for at in found)


def places(words, start, base):
    """What pairs of adrp and ldr or add name from an instruction on."""
    pages = {}
    for k, word in enumerate(words[start:start + 4], start):
        if word & 0x9F000000 == 0x90000000:
            distance = signed(word >> 5 << 2 | word >> 29 & 3, 21)
            pages[word & 31] = ((base + 4 * k) >> 12) + distance << 12
        elif word >> 5 & 31 in pages and word & 0x3B000000 in (0x39000000, 0x11000000):
            scale = word >> 30 if word & 0x3B000000 == 0x39000000 else 0
            yield pages[word >> 5 & 31] + ((word >> 10 & 0xFFF) << scale)


def signed(word, bits):
    """The lowest bits of a word as a signed number."""
    low = word & (1 << bits) - 1
    return low - (1 << bits) if low >> bits - 1 else low
