"""The CPU backend: LLVM text from loop IR, objects from it, and functions in memory."""
