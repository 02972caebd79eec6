"""Pytrees in files: safetensors, npz, checkpoints, and parameters that come from torch."""

from .. import numpy                             # gives arrays their operators
from ..errors import at_home, bound
from .checkpoint import Checkpointer
from .files import write_whole
from .npz import load_npz, save_npz
from .safetensors import load, save
from .torch import from_torch_state_dict

__all__ = ["Checkpointer", "from_torch_state_dict", "load", "load_npz", "save", "save_npz",
           "write_whole"]
__dir__ = __all__.copy     # dir() lists these and nothing else
bound(globals(), __all__, at_home)
