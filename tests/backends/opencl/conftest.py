"""The OpenCL device that the tests of this folder run on."""

import pytest

from fgrad.backends.opencl.device import find
from fgrad.errors import DeviceError


@pytest.fixture(scope="module")
def device():
    """The first device, or a skip that says why there is none."""
    try:
        return find("opencl")
    except DeviceError as error:
        pytest.skip(str(error))
