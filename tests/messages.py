"""The whole message of an error, without what changes when the test file is edited."""

import re

import pytest


def message(kind, function, *args, **kwargs):
    """The text of the error of class `kind` that the call raises; line numbers become N."""
    with pytest.raises(kind) as caught:
        function(*args, **kwargs)
    return re.sub(r"(\w+\.py):\d+", r"\1:N", without_carets(str(caught.value)))


def without_carets(text):
    """The text without the lines that underline: before Python 3.11 there are none."""
    return re.sub(r"\n +\^+(?=\n|$)", "", text)
