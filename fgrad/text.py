"""Columns and colours of printed programs.

Relies on nothing; everything that prints relies on it.  Colour appears on terminals only, and never
where the environment has NO_COLOR; plain text loses nothing.

>>> print("\\n".join(columns([("a: f32[]", "= tanh x"), ("bc: f32[8]", "= neg a")])))
a: f32[]   = tanh x
bc: f32[8] = neg a
"""

from __future__ import annotations

import itertools
import os
import re


def columns(rows, gap=" ", indent=""):
    """The rows as lines, each column as wide as its widest cell; nothing trails."""
    every = itertools.zip_longest(*rows, fillvalue="")
    widths = [max(map(len, column), default=0) for column in every]
    lines = [gap.join(f"{cell:{n}}" for cell, n in zip(row, widths)) for row in rows]
    return [(indent + line).rstrip() for line in lines]


def is_coloured(stream):
    """Should text written to this stream have colours?"""
    if "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return False
    return bool(getattr(stream, "isatty", lambda: False)())


def dimmed(text):
    """A printed program, of which what stands behind a │ is dim."""
    return re.sub("│.*", "\x1b[2m\\g<0>\x1b[0m", text)


def counted(n, word, plural=None):
    """A number and its noun, whose plural has an s more unless it is given.

    >>> counted(1, "trace"), counted(2, "trace"), counted(2, "axis", "axes")
    ('1 trace', '2 traces', '2 axes')
    """
    return f"{n} {word}" if n == 1 else f"{n} {plural or word + 's'}"


def noun_of(x):
    """What an object is, with its article.

    >>> noun_of(1), noun_of("a"), noun_of(None)
    ('an int', 'a str', 'None')
    """
    word = type(x).__name__
    if x is None:
        return "None"
    return f"an {word}" if word[0].lower() in "aeiou" else f"a {word}"


def identifier(name):
    """The name with everything that no identifier may hold made `_`.

    >>> identifier("params['dense'][0]"), identifier("<lambda>")
    ('params_dense_0', 'lambda')
    """
    word = re.sub(r"\W+", "_", name).strip("_") or "f"
    return "_" + word if word[0].isdigit() else word


def letters():
    """a, b, …, z, a1, b1, …"""
    for k in itertools.count():
        for letter in "abcdefghijklmnopqrstuvwxyz":
            yield f"{letter}{k or ''}"


class Names:
    """Gives each thing a name of its own: x, x2, x3."""

    def __init__(self, reserved=()):
        self.used, self.counts, self.free = set(reserved), {}, letters()

    def unique(self, name):
        """`name` with the first number that makes it new."""
        if name not in self.used:
            self.used.add(name)
            return name
        k = self.counts.get(name, 1) + 1
        while f"{name}{k}" in self.used:
            k += 1
        self.counts[name] = k
        self.used.add(f"{name}{k}")
        return f"{name}{k}"

    def letter(self):
        """The next letter that is no name yet."""
        return self.unique(next(c for c in self.free if c not in self.used))
