"""The whole message of an error, without what changes when the test file is edited."""

import re
import sys

import pytest

COLUMNS = sys.version_info >= (3, 11)      # does Python know the columns of a line?
ENTRANCES = "errors.py", "numpy/methods.py", "numpy/native_operators.py"
ENTRANCE = re.compile(rf'  File ".*/fgrad/(?:{"|".join(ENTRANCES)})", line .*\n(?:    .*\n)?')


def message(kind, function, *args, **kwargs):
    """The text of the error of class `kind` that the call raises; line numbers become N."""
    with pytest.raises(kind) as caught:
        function(*args, **kwargs)
    return re.sub(r"(\w+\.py):\d+", r"\1:N", without_carets(str(caught.value)))


def without_carets(text):
    """The text without the lines that underline: before Python 3.11 there are none."""
    return re.sub(r"\n +\^+(?=\n|$)", "", text)


def without_columns(text):
    """What is left of a text before Python 3.11, where a line is known, and not the place in it."""
    return re.sub(r"write \w+\(", "write f(", without_carets(text))


def without_entrance(text):
    """A traceback without the frame in which fgrad was entered: before Python 3.11 it stays."""
    return text if COLUMNS else ENTRANCE.sub("", text)
