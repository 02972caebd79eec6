"""The machine and LLVM: from IR text to objects, and from objects to addresses.

Text is parsed, verified, put through a short pass pipeline and emitted as an object; an object is
loaded into a library of its own, so that many libraries may define the same names.  Objects are
loaded with ORC: 0.15 ms for a small one in a new process, where MCJIT takes 0.65 ms (Linux,
llvmlite 0.50).  Importing this module imports llvmlite, so only the compile step of the backend and
the modules of this folder that run native code import it.  Relies on `cache.py`.
"""

from __future__ import annotations

import ctypes
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import llvmlite
import llvmlite.binding as llvm

from ...errors import CheckError
from .. import cache

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


@dataclass(frozen=True)
class Host:
    """What code generation needs to know of the machine: `registers` are vector registers."""
    cpu: str
    features: str
    triple: str
    vector_bytes: int
    registers: int
    is_arm: bool


def host():
    """The machine this process runs on."""
    features, triple = llvm.get_host_cpu_features(), llvm.get_process_triple()
    is_arm = triple.startswith(("aarch64", "arm64"))
    if features.get("avx512f"):
        vector_bytes, registers = 64, 32
    elif features.get("avx2"):
        vector_bytes, registers = 32, 16
    else:
        vector_bytes, registers = 16, 32 if is_arm else 16
    cpu = llvm.get_host_cpu_name()
    return Host(cpu, features.flatten(), triple, vector_bytes, registers, is_arm)


HOST = host()
IDENTITY = "|".join(map(str, (llvmlite.__version__, llvm.llvm_version_info, HOST.triple, HOST.cpu,
                              HOST.features)))   # what an object depends on besides its text

# ---------------------------------------------------------------------------- text to object


def compile_text(text, *, level=2, gvn=False, vectorize=False):
    """The object that LLVM makes of a module's text.

    The pipeline is short, because the text already holds vectors and few redundancies: inlining of
    what asks for it, removal of what is unused, instcombine, simplifycfg, and GVN where asked for.
    `vectorize` runs LLVM's whole pipeline for `level` instead, for irregular loops: 3 times slower.
    Raises CheckError where LLVM does not accept the text.
    """
    return bytes(emitted(text, level, gvn, vectorize, is_object=True))


def assembly(text, *, level=2, gvn=False, vectorize=False):
    """The target's assembly for a module's text, as `compile_text` would make it."""
    return emitted(text, level, gvn, vectorize, is_object=False).decode()


def compile_texts(texts, **options):
    """The objects of several texts, compiled at once by as many threads as there are processors."""
    workers = min(len(texts), os.cpu_count() or 1)
    if workers < 2:
        return [compile_text(text, **options) for text in texts]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda text: compile_text(text, **options), texts))


def object_key(text, **options):
    """The key on disk of the object of a text."""
    return cache.key(IDENTITY, sorted(options.items()), text)


def objects(texts, **options):
    """The objects of several texts, from the disk cache where it has them."""
    disk = cache.disk()
    keys = [object_key(text, **options) for text in texts]
    found = [disk.get(key) for key in keys]
    missing = [n for n, data in enumerate(found) if data is None]
    for n, data in zip(missing, compile_texts([texts[n] for n in missing], **options)):
        found[n] = data
        disk.put(keys[n], data)
    return found


def emitted(text, level, gvn, vectorize, is_object):
    """Object or assembly of the text, as bytes."""
    machine = target_machine(level)
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise CheckError(f"LLVM does not accept a generated module: {error}", where=None) from None
    options = llvm.create_pipeline_tuning_options(level)
    options.loop_vectorization = options.slp_vectorization = vectorize
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager() if vectorize else short_pipeline(gvn)
    with compiling():
        unlocked("LLVMPY_RunNewModulePassManager")(passes, module, builder)
        return emit(machine, module, is_object)


def short_pipeline(gvn):
    """The passes that are worth their time on text that already holds vectors."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    if gvn:
        passes.add_new_gvn_pass()
    return passes


def target_machine(level):
    """A target machine for this host; constants are addressed relative to the code."""
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


loading = threading.RLock()                      # guards what is loaded, see below
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


def before_fork():
    """Waits until no other thread is within LLVM, and keeps it so: a child inherits held locks."""
    loading.acquire()
    _work.acquire()
    _work.wait_for(lambda: _compiling == 0)
    llvm.ffi.lib._lock.__enter__()


def after_fork():
    """In parent and child: gives back what before_fork took."""
    llvm.ffi.lib._lock.__exit__()
    _work.release()
    loading.release()


if hasattr(os, "register_at_fork") and hasattr(llvm.ffi.lib, "_lock"):
    os.register_at_fork(before=before_fork, after_in_parent=after_fork, after_in_child=after_fork)

# ---------------------------------------------------------------------------- object to addresses

_linker = None                                   # the process's one LLJIT, made at first use
_symbols = {}                                    # name → address, see add_symbol
_loaded = {}                                     # name → Library: code stays until it is closed
_count = 0


class Library:
    """A loaded object.  Its code stays in memory until `close`, however many addresses are held."""

    def __init__(self, linker, name, tracker):
        self.linker, self.name = linker, name
        self.trackers = [tracker]                # what keeps the code; owned by this object
        self.addresses = {}

    def address(self, symbol):
        """The address of a function or variable that the object defines.

        Raises CheckError where it does not, or where the object needs a name that nobody defines;
        in the second case LLVM names it on stderr.
        """
        with loading:
            if symbol not in self.addresses:
                self.look_up(symbol)
            return self.addresses[symbol]

    def look_up(self, symbol):
        try:
            tracker = self.linker.lookup(self.name, symbol)
        except RuntimeError as error:
            raise CheckError(f"{symbol} cannot be linked: {error}", where=None) from None
        self.trackers.append(tracker)
        self.addresses[symbol] = tracker[symbol]

    def close(self):
        """Frees the code.  Nobody may hold an address of it, or be running it."""
        _loaded.pop(self.name, None)
        self.addresses.clear()
        self.trackers.clear()


def load(object_bytes, symbols=None):
    """The Library of an object.

    What the object does not define is taken from `symbols` (name → address) and `add_symbol`, then
    from the process, when the first address is asked for.
    """
    global _linker, _count
    with loading:
        if _linker is None:
            _linker = llvm.create_lljit_compiler(target_machine(2))
        _count += 1
        name = f"fgrad.{_count}"
        builder = llvm.JITLibraryBuilder().add_object_img(object_bytes).add_current_process()
        for symbol, address in {**_symbols, **(symbols or {})}.items():
            builder.import_symbol(symbol, address)
        _loaded[name] = Library(_linker, name, builder.link(_linker, name))
        return _loaded[name]


def add_symbol(name, address):
    """Makes the address known under a name to every object that is loaded from now on."""
    with loading:
        _symbols[name] = address
