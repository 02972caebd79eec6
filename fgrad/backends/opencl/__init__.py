"""The OpenCL backend: GPUs and other accelerators, and CPUs through PoCL, by way of pyopencl.

`device.py` finds devices and owns their memory, programs and queue; `contract.py` writes the text
of matrix products.  pyopencl is imported when the first device is asked for, never before.
"""
