"""What a user sees: the whole message of the error that a line of code raises."""

import linecache

import numpy as np

import fgrad.numpy as fnp
from fgrad.errors import FgradError
from tests.messages import without_carets


def message(text, **names):
    """The message of the error that the lines of `text` raise, as if they stood in user.py."""
    linecache.cache["user.py"] = (len(text), None, text.splitlines(keepends=True), "user.py")
    try:
        exec(compile(text, "user.py", "exec"), {"np": np, "fnp": fnp, **names})
    except FgradError as error:
        return without_carets(str(error))
    raise AssertionError(f"nothing was raised by: {text}")
