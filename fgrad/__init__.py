"""fgrad: function transformations for Python, compiled for CPUs and OpenCL devices.

    import fgrad
    import fgrad.numpy as fnp

    fgrad.grad(f)        the derivative of a function            value_and_grad vjp jvp linearize
    fgrad.vmap(f)        the function over one more axis         jacfwd jacrev hessian
    fgrad.jit(f)         the function compiled                   custom_jvp custom_vjp stop_gradient
    fgrad.show(f, x)     the program, at every stage             make_ir eval_shape check_grads
    fgrad.debug          print, nans, checks while it runs       pure_callback io_callback
    fgrad.device         where jitted functions run              devices device_put
    fgrad.flush_denormals()   within a block numbers next to zero are zero
    fgrad.lax            scan cond switch while_loop fori_loop   checkpoint hvp linear_transpose

Arrays: `fgrad.numpy`, `fgrad.random`.  Models: `fgrad.nn`, `fgrad.optim`,
`fgrad.data`, `fgrad.io`, `fgrad.train`.  Pictures: `fgrad.viz`.
"""

from . import later as _later

TYPE_CHECKING = False      # as typing has it, which takes longer to import than all of this
if TYPE_CHECKING:          # for editors; at run time see _NAMES
    from . import data, debug, flatten_util, image, io, lax, nn, numpy, optim, random, scipy, train
    from . import tree, tree_util, viz
    from .bf16 import bfloat16
    from .callbacks import io_callback, pure_callback
    from .compile import clear_caches, devices
    from .control import checkpoint, checkpoint_name, checkpoint_policies
    from .control import checkpoint as remat
    from .core import Value as Array
    from .custom import custom_jvp, custom_vjp, stop_gradient
    from .denormals import flush_denormals
    from .errors import (
        ArgumentError, AxisError, AxisNameError, CheckError, ConcretizationError, DataError,
        DeviceError, DonationError, DownloadError, DtypeError, FgradError, FgradWarning, FileError,
        GradientError, KeyReuseWarning, LeakError, MissingFileError, MissingRuleError,
        MutationError, NanError, NumpyError, ParseError, PositionError, RandomKeyError, RangeError,
        ShapeError, TreeError)
    from .gradient_check import check_grads
    from .inspect import explain, profile, show
    from .jitted import disable_jit, jit
    from .placing import block_until_ready, device, device_get, device_put
    from .segments import segment_max, segment_min, segment_prod, segment_sum
    from .transforms import (
        eval_shape, grad, hessian, hvp, jacfwd, jacrev, jvp, linear_transpose, linearize, make_ir,
        make_jaxpr, value_and_grad, vjp, vmap)
    from .transforms import jacrev as jacobian
    from .tree import pytree, static
    from .types import ArrayType, ShapeDtypeStruct, default_dtype, strict_promotion

__version__ = "0.1.0"

_NAMES = {                 # module → what it gives; all of it is loaded at first use
    "data": "", "debug": "", "flatten_util": "", "image": "", "io": "", "lax": "", "nn": "",
    "numpy": "", "optim": "", "random": "", "scipy": "", "train": "", "tree_util": "", "viz": "",
    "bf16": "bfloat16",
    "callbacks": "io_callback pure_callback",
    "compile": "clear_caches devices",
    "control": "checkpoint checkpoint_name checkpoint_policies remat=checkpoint",
    "core": "Array=Value",
    "custom": "custom_jvp custom_vjp stop_gradient",
    "denormals": "flush_denormals",
    "errors": """ArgumentError AxisError AxisNameError CheckError ConcretizationError DataError
        DeviceError DonationError DownloadError DtypeError FgradError FgradWarning FileError
        GradientError KeyReuseWarning LeakError MissingFileError MissingRuleError MutationError
        NanError NumpyError ParseError PositionError RandomKeyError RangeError ShapeError
        TreeError""",
    "gradient_check": "check_grads",
    "inspect": "explain profile show",
    "jitted": "disable_jit jit",
    "placing": "block_until_ready device device_get device_put",
    "segments": "segment_max segment_min segment_prod segment_sum",
    "transforms": """eval_shape grad hessian hvp jacfwd jacrev jvp linear_transpose linearize
        make_ir make_jaxpr value_and_grad vjp vmap jacobian=jacrev""",
    "tree": "tree pytree static",
    "types": "ArrayType ShapeDtypeStruct default_dtype strict_promotion",
}
if not TYPE_CHECKING:      # `numpy` comes before all else: it gives arrays operators and methods
    __getattr__, __dir__ = _later.names(
        __name__, _NAMES, first="fgrad.numpy",
        made=lambda value, module: _later.lazily("fgrad.errors", "at_home")()(value, module))
del TYPE_CHECKING
