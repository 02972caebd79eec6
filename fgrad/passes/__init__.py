"""The passes of the compiler's middle: a Program becomes a Plan."""

from .pipeline import PIPELINE, plan, stages
from .target import CPU, Target
