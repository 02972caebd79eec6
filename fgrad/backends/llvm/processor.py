"""The processor as LLVM knows it.

Importing this module imports llvmlite; `host.py` does it where nobody has kept the answer, and
`codegen.py` relies on it too.
"""

from __future__ import annotations

import llvmlite
import llvmlite.binding as llvm

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


def described():
    """The fields of a `host.Host` for the processor of this process."""
    features, triple = llvm.get_host_cpu_features(), llvm.get_process_triple()
    if features.get("avx512f"):
        vector_bytes, registers = 64, 32
    elif features.get("avx2"):
        vector_bytes, registers = 32, 16
    else:
        vector_bytes = 16
        registers = 32 if triple.startswith(("aarch64", "arm64")) else 16
    cpu, flat = llvm.get_host_cpu_name(), features.flatten()
    identity = "|".join(map(str, (llvmlite.__version__, llvm.llvm_version_info, triple, cpu, flat)))
    return cpu, flat, triple, vector_bytes, registers, identity
