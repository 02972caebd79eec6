"""Code generation: from IR text to objects, by LLVM.

Text is parsed, verified, put through a short pass pipeline and emitted as an object.  Importing
this module imports llvmlite, so `target.py` does it only when something is compiled; it imports
nothing that takes locks when the process forks, as `logging` and `concurrent.futures` do.  Relies
on `processor`, which readies LLVM, on `host` for the machine and on `target`, which forks with
care.
"""

from __future__ import annotations

import ctypes
import os
import threading
from contextlib import contextmanager
from functools import cache

from ...errors import CheckError
from . import target
from .host import HOST
from .processor import llvm

LEVEL, QUICK = 2, 1        # of LLVM's optimisation: as a rule, and of long texts
LONG = 400_000             # characters from which a text is long: 10 to 45 % of its time are spared


def compile_text(text):
    """The object that LLVM makes of a module's text.

    The pipeline is short, because the text already holds vectors and few redundancies: inlining of
    what asks for it, removal of what is unused, variables put into registers, instcombine and
    simplifycfg.
    Raises CheckError where LLVM does not accept the text.
    """
    return bytes(emitted(text, is_object=True))


def assembly(text):
    """The target's assembly for a module's text, as `compile_text` would make it."""
    return emitted(text, is_object=False).decode()


@cache
def trim():
    """glibc's malloc_trim, which keeps so many free bytes; elsewhere nothing keeps so much."""
    library = ctypes.CDLL(None) if os.name == "posix" else None
    return getattr(library, "malloc_trim", lambda free: None)


def emitted(text, is_object):
    """Object or assembly of the text, as bytes."""
    level = LEVEL if len(text) < LONG else QUICK
    machine = target_machine(level)
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise CheckError(f"LLVM does not accept a generated module: {error}", where=None) from None
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(level))
    with compiling():
        unlocked("LLVMPY_RunNewModulePassManager")(short_pipeline(), module, builder)
        return emit(machine, module, is_object)


def short_pipeline():
    """The passes that are worth their time on text that already holds vectors."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    return passes


def target_machine(level=LEVEL):
    """A target machine for this host; constants are addressed relative to the code.

    level: QUICK asks nothing about aliases while it orders instructions, which in straight lines
    of thousands takes longer than all the rest, and is worth 2 % of a call.
    """
    return llvm.Target.from_triple(HOST.triple).create_target_machine(
        cpu=HOST.cpu, features=HOST.features, opt=level, reloc="pic", codemodel="small", jit=True)


def emit(machine, module, is_object):
    """The module as object or assembly bytes; the same as llvmlite's, without its lock."""
    message = ctypes.c_char_p()
    buffer = unlocked("LLVMPY_TargetMachineEmitToMemory")(
        machine, module, int(is_object), ctypes.byref(message))
    if not buffer:
        raise CheckError(f"LLVM cannot generate code: {message.value!r}", where=None)
    lib = llvm.ffi.lib
    try:
        return ctypes.string_at(lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer))
    finally:
        lib.LLVMPY_DisposeMemoryBuffer(buffer)


def unlocked(name):
    """A function of llvmlite's library without llvmlite's lock, so that threads compile at once.

    LLVM allows this for modules of different contexts, and `emitted` makes one for each.  An
    llvmlite that hides its functions differently keeps its lock: slower, with the same result.
    """
    function = getattr(llvm.ffi.lib, name)
    return getattr(function, "_cfn", function)


_work = threading.Condition()                    # guards _compiling
_compiling = 0                                   # threads within `compiling`


@contextmanager
def compiling():
    """Around the calls that run without llvmlite's lock.

    Within the block LLVM skips loop strength reduction, which takes 10-30 % of code generation:
    fgrad's addresses are row pointer + offset + constant already.  The option belongs to the whole
    process, so it is put back for others (numba) when no thread of ours compiles.
    """
    count_compiling(+1)
    try:
        yield
    finally:
        count_compiling(-1)


def count_compiling(step):
    global _compiling
    with _work:
        _compiling += step
        if _compiling == max(step, 0):           # the first came, or the last went
            llvm.set_option("", f"-disable-lsr={'true' if step > 0 else 'false'}")
        _work.notify_all()


def hold():
    """Waits until no other thread is within LLVM, and keeps it so while the process forks."""
    _work.acquire()
    _work.wait_for(lambda: _compiling == 0)
    llvm.ffi.lib._lock.__enter__()


def let_go():
    """In parent and child: gives back what `hold` took."""
    llvm.ffi.lib._lock.__exit__()
    _work.release()


if hasattr(llvm.ffi.lib, "_lock"):
    target.at_fork.append((hold, let_go, lambda: None))
