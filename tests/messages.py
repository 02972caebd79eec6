"""The whole message of an error, without what changes when the test file is edited."""

import re

import pytest


def message(kind, function, *args, **kwargs):
    """The text of the error of class `kind` that the call raises; line numbers become N."""
    with pytest.raises(kind) as caught:
        function(*args, **kwargs)
    return re.sub(r"(\w+\.py):\d+", r"\1:N", str(caught.value))
