"""fgrad: function transformations for Python, compiled for CPUs and OpenCL devices.

    import fgrad
    import fgrad.numpy as fnp

    fgrad.grad(f)        the derivative of a function            value_and_grad vjp jvp linearize
    fgrad.vmap(f)        the function over one more axis         jacfwd jacrev hessian
    fgrad.jit(f)         the function compiled                   custom_jvp custom_vjp stop_gradient
    fgrad.show(f, x)     the program, at every stage             make_ir eval_shape check_grads
    fgrad.debug          print, nans, checks while it runs       pure_callback io_callback
    fgrad.device         where jitted functions run              devices device_put
    fgrad.lax            scan cond switch while_loop fori_loop   checkpoint hvp linear_transpose

Arrays: `fgrad.numpy`, `fgrad.random`.  Models: `fgrad.nn`, `fgrad.optim`,
`fgrad.data`, `fgrad.io`, `fgrad.train`.  Pictures: `fgrad.viz`.
"""

import importlib as _importlib
import typing as _typing

from . import numpy, random, tree
from .callbacks import io_callback, pure_callback
from .compile import clear_caches, devices
from .control import checkpoint, checkpoint_name, checkpoint_policies
from .core import Array
from .custom import custom_jvp, custom_vjp, stop_gradient
from .device import device, device_put
from .errors import (
    ArgumentError, AxisError, AxisNameError, CheckError, ConcretizationError, DataError,
    DeviceError, DonationError, DownloadError, DtypeError, FgradError, FgradWarning, GradientError,
    KeyReuseWarning, LeakError, MissingFileError, MissingRuleError, MutationError, NanError,
    NumpyError, ParseError, PositionError, RandomKeyError, RangeError, ShapeError, TreeError)
from .gradient_check import check_grads
from .inspect import explain, show
from .jit import jit
from .transforms import (
    eval_shape, grad, hessian, hvp, jacfwd, jacrev, jvp, linear_transpose, linearize, make_ir,
    make_jaxpr, value_and_grad, vjp, vmap)
from .tree import pytree, static
from .types import BF16 as bfloat16
from .types import ArrayType, default_dtype, strict_promotion

if _typing.TYPE_CHECKING:                        # for editors; at run time see __getattr__
    from . import data, debug, io, lax, nn, optim, scipy, train, viz

__version__ = "0.1.0"

_LATER = ("data", "debug", "io", "lax", "nn", "optim", "scipy", "train", "viz")


def __getattr__(name):
    """A part of `_LATER`, loaded at first use: most programs need few, and importing all of them
    takes longer than all the rest.
    """
    if name in _LATER:
        return _importlib.import_module(f"fgrad.{name}")
    raise AttributeError(f"module 'fgrad' has no attribute {name!r}")


def __dir__():
    """The names of the package, parts that are not loaded yet among them."""
    return sorted({*globals(), *_LATER})
