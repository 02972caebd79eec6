"""Data sets as NumPy arrays, and batches of them."""

from . import digits, idx, mnist
from .batches import Batches, batches
from .split import Split

__all__ = ["Batches", "Split", "batches", "digits", "idx", "mnist"]
