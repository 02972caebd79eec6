"""The CPU backend: LLVM text from loop IR, compiled in memory by llvmlite."""
