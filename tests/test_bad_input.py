"""Whole messages about what is missing on the machine: files, devices, OpenCL."""

import os
import subprocess
import sys
from pathlib import Path

from fgrad.data import idx
from fgrad.errors import MissingFileError

from tests.messages import message


def said(tmp_path, script, **environment):
    """What a script prints, run as a file `script.py`."""
    file = tmp_path / "script.py"
    file.write_text(script)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), **environment}
    return subprocess.run(
        [sys.executable, file], env=env, capture_output=True, text=True, check=True
    ).stdout


def test_a_missing_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def read():
        return idx.read("nowhere/train-images")
    assert message(MissingFileError, read) == f"""\
nowhere/train-images does not exist.

    test_bad_input.py:N    return idx.read("nowhere/train-images")

  given      working folder {tmp_path}
  fix        check the path"""


def test_no_opencl(tmp_path):
    assert said(tmp_path, """\
import sys
sys.modules["pyopencl"] = None
import fgrad
try:
    fgrad.jit(lambda x: x + 1, device="opencl")(1.0)
except fgrad.FgradError as error:
    print(error)
print(fgrad.devices()[0].name, str(fgrad.devices()).splitlines()[-1], sep=chr(10))
""") == """\
The OpenCL backend needs pyopencl, which cannot be imported.

    script.py:5    fgrad.jit(lambda x: x + 1, device="opencl")(1.0)

  given      import of pyopencl halted; None in sys.modules
  fix        pip install "fgrad[opencl]"
cpu
opencl       not available: The OpenCL backend needs pyopencl, which cannot be imported.
"""


def test_an_unknown_device_in_the_environment(tmp_path):
    assert said(tmp_path, """\
import fgrad
try:
    fgrad.jit(lambda x: x + 1)(1.0)
except fgrad.FgradError as error:
    print(error)
""", FGRAD_DEVICE="tpu:0") == """\
there is no device 'tpu:0'.

    script.py:3    fgrad.jit(lambda x: x + 1)(1.0)

  given      FGRAD_DEVICE=tpu:0
  expected   cpu, gpu, opencl, reference
  fix        fgrad.devices() lists the devices of this machine
"""
