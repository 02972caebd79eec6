"""Checkpoints: the state of a training run in numbered files, of which a whole one is always there.

A checkpoint is one safetensors file, `step-000000000012.safetensors`.  It is written under another
name, reaches the disk, and then takes its name in one step, so a process may be killed at any
moment.  Relies on `safetensors.py`; `fgrad.train` relies on it.
"""

from __future__ import annotations

import operator
import os
import re

import numpy as np

from .. import tree as pytree
from ..errors import ArgumentError, FileError, MissingFileError, RangeError, bound_methods
from ..types import SCALARS
from .safetensors import load, save

NAME = re.compile(r"step-(\d{12,})\.safetensors")
LEFT = re.compile(r"\.step-\d{12,}\.safetensors\.[0-9a-f]+\.new")   # by a process that was killed
WIDE = {bool: np.bool_, int: np.int64, float: np.float64}           # so that no bit is lost


@bound_methods
class Checkpointer:
    """Saves pytrees by step number in a folder, and keeps the newest `keep` of them.

    A tree holds all that a run needs to go on: parameters, optimizer state, random key, epoch.
    Everything comes back bit for bit, Python ints (of 64 bits) and floats too.
    One process at a time may save into a folder; any number may restore.
    keep: None keeps all.  Raises RangeError for keep below 1, and FileError for a folder that
    cannot be made.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoints = Checkpointer(folder, keep=2)
    ...     for epoch in range(4):
    ...         _ = checkpoints.save(epoch, {"w": np.full(2, epoch / 3), "epoch": epoch})
    ...     checkpoints.steps(), checkpoints.restore(like={"w": np.zeros(2), "epoch": 0})
    ([2, 3], {'epoch': 3, 'w': array([1., 1.])})
    """

    def __init__(self, folder, keep=3):
        if keep is not None and operator.index(keep) < 1:
            raise RangeError("a Checkpointer keeps at least one checkpoint.", given=f"keep={keep}",
                             fix="keep=1, or keep=None for all")
        self.folder, self.keep = os.fspath(folder), keep
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise FileError(f"the folder {folder} cannot be made: {error.strerror or error}.",
                            fix="choose another folder") from None

    def __repr__(self):
        return f"Checkpointer({self.folder!r}, keep={self.keep}): steps {self.steps()}"

    def path(self, step):
        """The path of the checkpoint with this number, there or not."""
        return os.path.join(self.folder, f"step-{step:012d}.safetensors")

    def steps(self):
        """The numbers of the checkpoints that are there, in order."""
        found = (NAME.fullmatch(name) for name in os.listdir(self.folder))
        return sorted(int(m[1]) for m in found if m)

    def latest(self):
        """The largest number, or None when there is no checkpoint."""
        return max(self.steps(), default=None)

    def save(self, step, tree):
        """Writes a checkpoint, then removes those beyond `keep`; gives its path.

        step: an int of 0 or more; one that is there is replaced.  Raises what `fgrad.io.save`
        raises, and RangeError for a negative step; the checkpoints are then as they were.
        """
        step = operator.index(step)
        if step < 0:
            raise RangeError("the step of a checkpoint is not negative.", given=f"step={step}")
        save(self.path(step), pytree.map(widened, tree))
        self.tidy(step)
        return self.path(step)

    def tidy(self, step):
        """Removes what killed processes left, and the oldest checkpoints, never that of `step`."""
        left = [name for name in os.listdir(self.folder) if LEFT.fullmatch(name)]
        others = [s for s in self.steps() if s != step]
        old = others[:max(0, len(others) + 1 - self.keep)] if self.keep is not None else []
        for path in [*(os.path.join(self.folder, name) for name in left), *map(self.path, old)]:
            os.remove(path)

    def restore(self, like, step=None):
        """The tree of a checkpoint, the latest by default, in the structure of `like`.

        `like` has the shapes and dtypes that were saved; leaves come as NumPy arrays, or as Python
        numbers where `like` has some.  Raises MissingFileError when there is no such checkpoint,
        and DataError for one that does not fit `like`, naming the leaves.
        """
        step = self.latest() if step is None else operator.index(step)
        if step is None or not os.path.exists(self.path(step)):
            wanted = "a checkpoint" if step is None else f"the checkpoint of step {step}"
            raise MissingFileError(f"{self.folder} does not hold {wanted}.",
                                   given=f"steps {self.steps()}",
                                   fix="check the folder, or begin anew when latest() is None")
        found = load(self.path(step), like=pytree.map(widened, like))
        return pytree.map(lambda old, new: new.item() if type(old) in SCALARS else new, like, found)


def widened(leaf):
    """The leaf; a Python number as NumPy's widest."""
    if type(leaf) not in SCALARS:
        return leaf
    try:
        return WIDE[type(leaf)](leaf)
    except OverflowError:
        raise ArgumentError("a Python int in a checkpoint has 64 bits.", given=str(leaf)[:200],
                            fix="keep it as a float, or as several ints") from None
