"""Data sets as NumPy arrays, and batches of them."""

from . import augment, cifar, digits, idx, mnist, tables, text
from .batches import Batches, batches
from .split import Split

__all__ = ["Batches", "Split", "augment", "batches", "cifar", "digits", "idx", "mnist", "tables",
           "text"]
__dir__ = __all__.copy     # dir() lists these and nothing else
