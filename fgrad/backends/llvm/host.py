"""The machine that code is generated for, known without LLVM where an earlier process asked LLVM.

LLVM names the processor and its features; importing llvmlite for that takes longer than loading a
program from disk.  So the answer is kept on disk, under what the system says of the processor and
of llvmlite's files: another machine, kernel setting or llvmlite is another key.  Where the system
does not say (no /proc/cpuinfo) LLVM is asked every time.  Relies on the disk cache; every module of
this folder that needs the machine relies on it.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections import namedtuple
from contextlib import suppress
from functools import lru_cache
from importlib.machinery import PathFinder

from ...later import lazily
from .. import cache

processor = lazily("fgrad.backends.llvm.processor")      # imports llvmlite

CPUINFO = "/proc/cpuinfo"
LAST_CACHE = "/sys/devices/system/cpu/cpu0/cache/index3/size"
USUAL_CACHE = 32 << 20                           # bytes
STREAMS = {"znver3": 4}                          # 37 GB/s from four places, 25 from one
SHOWN = 8192                                     # bytes that hold the first processor's lines
LASTING = {b"vendor_id", b"cpu family", b"model", b"model name", b"stepping", b"flags",   # x86
           b"CPU implementer", b"CPU architecture", b"CPU variant", b"CPU part", b"CPU revision",
           b"Features"}                          # the lines that do not change while it runs


class Host(namedtuple("Host", "cpu features triple vector_bytes registers identity")):
    """What code generation needs to know of the machine: `registers` are vector registers.

    identity: what an object depends on besides its text, LLVM's version included.
    """
    __slots__ = ()

    @property
    def converts_f16(self):
        """Has it instructions from f16 to f32 and back?  x86 has since 2012."""
        return not self.triple.startswith(("x86_64", "i")) or "+f16c" in self.features

    @property
    def intel(self):
        """Is it one of Intel's with AVX-512?  AMD's are the others that have it."""
        return self.vector_bytes == 64 and not self.cpu.startswith("znver")

    @property
    def gathers(self):
        """Does an instruction look up the lanes of a vector sooner than loads do one by one?"""
        return self.intel


def host():
    """The machine this process runs on."""
    lines, files = processor_lines(), llvmlite_files()
    if not lines or not files:
        return Host(*processor().described())
    name = cache.key("host", Host._fields, sys.platform, lines, files)
    data = cache.disk().get(name)
    if data is not None:
        return Host(*marshal.loads(data))
    found = processor().described()
    cache.disk().put(name, marshal.dumps(found))
    return Host(*found)


def processor_lines():
    """What the system says of the first processor and will say again; empty where it does not."""
    try:
        with open(CPUINFO, "rb", buffering=0) as file:
            shown = file.read(SHOWN)
    except OSError:
        return []
    first = shown.partition(b"\n\n")[0].splitlines()
    return [line for line in first if line.partition(b":")[0].strip() in LASTING]


def llvmlite_files():
    """(path, size, time of change) of the files of llvmlite's that LLVM and its version are in."""
    if sys.modules.get("llvmlite", sys) is None:       # it may not be imported
        return []
    spec = PathFinder.find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        return []
    with suppress(OSError):
        root, *_ = spec.submodule_search_locations
        with os.scandir(os.path.join(root, "binding")) as found:
            files = [item.path for item in found if "llvmlite" in item.name]
        return [(path, at.st_size, at.st_mtime_ns) for path in sorted(files)
                for at in [os.stat(path)]]
    return []


@lru_cache(maxsize=None)
def last_cache():
    """Bytes of the processor's last cache; as much as many have where the system does not say."""
    try:
        with open(LAST_CACHE) as file:
            number = file.read().strip()
        return int(number.rstrip("KM")) * {"K": 1 << 10, "M": 1 << 20}.get(number[-1:], 1)
    except (OSError, ValueError):
        return USUAL_CACHE


def streams():
    """From how many places at once memory is read the fastest; 1 where it makes no difference."""
    return STREAMS.get(HOST.cpu, 1)


HOST = host()
IDENTITY = HOST.identity
