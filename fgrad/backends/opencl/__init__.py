"""The OpenCL backend: GPUs and other accelerators, and CPUs through PoCL, by way of pyopencl.

`device.py` finds devices and owns their memory, programs and queue.  `emit.py` writes kernels of
the loop IR as OpenCL C, for a GPU `groups.py`, with `instructions.py` for expressions and
`names.py` for the user's words; `contract.py` writes tiled matrix products, for a GPU `tiles.py`,
into which `product.py` puts operands and epilogues.
`backend.py` makes a program and launches of a Plan, and `arrays.py` holds the arrays that stay on a
device.  pyopencl is imported when the first device is asked for, never before.
"""
