"""From text to objects to addresses."""

import ctypes
import gc
import os
import subprocess
import sys

import pytest

import fgrad
from fgrad.backends.llvm import codegen, target
from fgrad.backends.llvm.host import HOST
from fgrad.errors import CheckError

ADD = """
define i64 @f(i64 %x) {{
  %y = call i64 @inner(i64 %x)
  ret i64 %y
}}
define internal i64 @inner(i64 %x) alwaysinline {{
  %y = add i64 %x, {n}
  ret i64 %y
}}
"""


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("FGRAD_CACHE", str(tmp_path / "cache"))


def function(library, name="f"):
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library.address(name))


def test_importing_fgrad_imports_no_llvmlite():
    program = "import sys, fgrad, fgrad.backends.cache; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_host_is_described():
    host = HOST
    assert host.vector_bytes in (16, 32, 64) and host.registers in (16, 32)
    assert host.vector_bytes < 64 or "+avx512f" in host.features
    assert host.triple and host.cpu


def test_a_compiled_function_runs():
    assert function(target.load(target.compile_text(ADD.format(n=5))))(1) == 6


def test_many_libraries_may_define_the_same_names():
    libraries = [target.load(target.compile_text(ADD.format(n=n))) for n in range(20)]
    assert [function(library)(100) for library in libraries] == list(range(100, 120))
    for library in libraries[::2]:
        library.close()
    assert [function(library)(100) for library in libraries[1::2]] == list(range(101, 120, 2))


def test_code_stays_when_the_library_is_dropped():
    f = function(target.load(target.compile_text(ADD.format(n=7))))
    assert f(0) == 7


def test_code_of_forgotten_functions_is_given_back():
    def run(k):
        f = fgrad.jit(lambda x: x * k + 0.5)
        assert [f(1.0).item() for _ in range(3)] == [k + 0.5] * 3
        del f
        fgrad.clear_caches()
        gc.collect()
    run(2.25)
    before = len(target._loaded)
    for k in range(5):
        run(k + 3.25)
    assert len(target._loaded) <= before


def test_what_is_forgotten_may_call_its_code_once_more():
    class Late:
        def __init__(self):
            self.itself, self.function = self, fgrad.jit(lambda x: x * 2.125)
            assert [self.function(4.0).item() for _ in range(3)] == [8.5] * 3

        def __del__(self):
            other = fgrad.jit(lambda x: x * 3.375)             # another library is loaded
            seen.append(other(8.0).item() + self.function(4.0).item())
    seen = []
    Late()
    fgrad.clear_caches()
    gc.collect()
    assert seen == [27 + 8.5]


def test_objects_use_the_process_and_added_symbols():
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    double = kind(lambda x: 2 * x)
    target.add_symbol("test.double", ctypes.cast(double, ctypes.c_void_p).value)
    text = """
    declare i64 @test.double(i64)
    declare i64 @labs(i64)
    define i64 @f(i64 %x) {
      %y = call i64 @test.double(i64 %x)
      %z = call i64 @labs(i64 %y)
      ret i64 %z
    }
    """
    assert function(target.load(target.compile_text(text)))(-21) == 42


def test_a_missing_name_says_which():
    library = target.load(target.compile_text(ADD.format(n=1)))
    with pytest.raises(CheckError, match="nothing"):
        library.address("nothing")
    text = """
    declare void @test.nowhere()
    define void @g() {
      call void @test.nowhere()
      ret void
    }
    """
    with pytest.raises(CheckError, match="linked"):
        target.load(target.compile_text(text)).address("g")


@pytest.mark.parametrize("text", ["nonsense", "define i64 @f(i64 %x) {\n ret i64 %y\n}",
                                  "define i64 @f() {\n %a = add i32 1, 2\n ret i64 %a\n}"])
def test_bad_text_is_refused(text):
    with pytest.raises(CheckError, match="LLVM does not accept"):
        target.compile_text(text)


def test_unused_internal_functions_vanish():
    assert "inner" not in target.assembly(ADD.format(n=1))
    assert "f:" in target.assembly(ADD.format(n=1))


def test_strength_reduction_is_off_only_while_we_compile(monkeypatch):
    settings = []
    monkeypatch.setattr(codegen.llvm, "set_option", lambda name, option: settings.append(option))
    with codegen.compiling():
        with codegen.compiling():
            pass
    assert settings == ["-disable-lsr=true", "-disable-lsr=false"]


FORKS = """
import os, sys, threading
from fgrad.backends.llvm import target

def work(stop, n=0):
    while not stop():
        n += 1
        target.load(target.compile_text(sys.argv[1].replace("ADDED", str(n)))).address("f")

done = []
others = [threading.Thread(target=work, args=(lambda: done,)) for _ in range(2)]
for other in others:
    other.start()
for _ in range(25):
    child = os.fork()
    if child == 0:
        work(iter([False, True]).__next__)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
done.append(True)
for other in others:
    other.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_what_compiles_imports_nothing_that_takes_locks_at_a_fork():
    """A fork held the lock of logging, and waited for the thread that was about to import it."""
    code = """
import os
from fgrad.backends.llvm import target
os.register_at_fork = lambda before=None, **_: before and print(before)
target.codegen().compile_text('')
target.orc()
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_compiles_though_other_threads_compiled_when_it_was_forked():
    text = ADD.format(n="ADDED")
    subprocess.run([sys.executable, "-c", FORKS, text], check=True, timeout=60)
