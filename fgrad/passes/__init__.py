"""The passes of the compiler's middle, in order."""

from .pipeline import plan
from .target import CPU, Target
