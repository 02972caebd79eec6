"""The command line, `python -m fgrad`."""

import subprocess
import sys
from pathlib import Path

import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import __main__ as command_line
from fgrad import bench, profiling
from fgrad.types import F32, I64, ArrayType

MODEL = """\
import dataclasses
import fgrad.numpy as fnp
from side import scale

@dataclasses.dataclass(frozen=True)
class Model:
    width: int = 2
    @staticmethod
    def double(x):
        return x * 2.0

def layer(params, x):
    return fnp.tanh(x @ params["w"] + params["b"]) * scale
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A user's file, which imports another one beside it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "side.py").write_text("scale = 3.0\n")
    file = tmp_path / "a_model.py"
    file.write_text(MODEL)
    yield file
    for name in ("a_model", "side"):
        sys.modules.pop(name, None)


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """A cache folder with one entry."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FGRAD_CACHE", str(folder))
    command_line.cache.disk().put("abc", b"1234")
    return folder


def printed(capsys, *words):
    """The lines that a command prints; its exit status must be 0."""
    assert command_line.main(list(words)) == 0
    return capsys.readouterr().out.splitlines()


def refused(capsys, *words):
    """The message of a command that fails; its exit status must be 1."""
    assert command_line.main(list(words)) == 1
    return capsys.readouterr().err


# ---------------------------------------------------------------------------- doctor, devices

def test_doctor_names_versions_threads_cache_and_devices(capsys, cached, monkeypatch):
    monkeypatch.setenv("FGRAD_THREADS", "3")
    lines = printed(capsys, "doctor")
    first = {line.split()[0]: line for line in lines if line.strip()}
    assert fgrad.__version__ in first["fgrad"]
    assert " 3 " in first["threads"]
    assert str(cached) in first["cache"] and "of 512.0 MB" in first["cache"]
    assert {"python", "numpy", "llvmlite", "pyopencl", "native", "devices", "cpu"} <= set(first)


def test_doctor_says_why_the_native_call_is_off(capsys, monkeypatch):
    monkeypatch.setenv("FGRAD_NATIVE_CALL", "0")
    assert any("off: FGRAD_NATIVE_CALL=0" in line for line in printed(capsys, "doctor"))


def test_doctor_says_that_the_cache_is_off(capsys, monkeypatch):
    monkeypatch.setenv("FGRAD_CACHE", "0")
    lines = printed(capsys, "doctor")
    assert any(line.startswith("cache") and "off: FGRAD_CACHE=0" in line for line in lines)


def test_doctor_says_that_the_cache_folder_is_open_to_others(capsys, cached):
    cached.chmod(0o777)
    assert any("chmod 700" in line for line in printed(capsys, "doctor"))


def test_doctor_says_that_the_default_device_and_the_cache_do_not_work(
        capsys, monkeypatch, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("FGRAD_DEVICE", "foo")
    monkeypatch.setenv("FGRAD_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("FGRAD_NANS", "1")
    first = {line.split()[0]: line for line in printed(capsys, "doctor") if line.strip()}
    assert "does not work: FGRAD_DEVICE=foo: there is no device 'foo'" in first["default"]
    assert f"off: {tmp_path / 'file' / 'cache'} cannot be written" in first["cache"]
    assert " on " in first["nans"] and " off " in first["strict"]


def test_the_version_is_an_option(capsys):
    with pytest.raises(SystemExit) as ended:
        command_line.main(["--version"])
    assert not ended.value.code and capsys.readouterr().out == f"fgrad {fgrad.__version__}\n"


def test_doctor_works_without_llvmlite_and_says_so():
    script = ("import runpy, sys; sys.modules['llvmlite'] = None; sys.argv = ['fgrad', 'doctor'];"
              "runpy.run_module('fgrad', run_name='__main__')")
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert "cpu          not available: this kind of device cannot be used" in out.stdout


def test_devices_lists_the_cpu_first(capsys):
    assert printed(capsys, "devices")[0].startswith("cpu ")


def test_devices_says_why_opencl_is_missing(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    assert "opencl       not available: " in "\n".join(printed(capsys, "devices"))


# ---------------------------------------------------------------------------- cache

def test_cache_lists_entries_and_their_sizes(capsys, cached):
    entry, total = printed(capsys, "cache")
    assert entry.split() == ["abc", "60"]                # 56 bytes of header
    assert total == f"1 file, 0.0 MB of 512.0 MB, in {cached}"
    assert printed(capsys, "cache", "ls") == [entry, total]


def test_cache_clear_removes_the_entries(capsys, cached):
    assert printed(capsys, "cache", "clear") == [f"removed 1 file, 0.0 MB, from {cached}"]
    assert command_line.cache.disk().entries() == []


def test_cache_path_prints_the_folder(capsys, cached):
    assert printed(capsys, "cache", "path") == [str(cached)]


@pytest.mark.parametrize("action", ["ls", "clear", "path"])
def test_cache_commands_say_that_there_is_none(capsys, monkeypatch, action):
    monkeypatch.setenv("FGRAD_CACHE", "0")
    (line,) = printed(capsys, "cache", action)
    assert line.startswith("the cache is off")


# ---------------------------------------------------------------------------- show

def test_show_prints_the_program_of_a_function_in_a_file(capsys, model):
    lines = printed(capsys, "show", f"{model}:layer", "--args", "{'w': f32[3,2], 'b': f32[2]}",
                    "f32[8,3]")
    assert lines[0] == "layer(params_b: f32[2], params_w: f32[3,2], x: f32[8,3]) -> f32[8,2]"
    assert "a_model.py:13" in lines[1]


def test_show_prints_every_stage(capsys, model):
    for stage in [s for s in command_line.STAGES if s != "opencl"]:
        assert printed(capsys, "show", f"{model}:Model.double", "--args", "f32[8]",
                       "--stage", stage)


def test_show_prints_the_stage_of_another_device(capsys, model):
    lines = printed(capsys, "show", f"{model}:Model.double", "--args", "f32[8]", "--stage", "loops",
                    "--device", "reference")
    assert lines[0] == "plan double(x: f32[8]) -> a: f32[8]"


def test_show_of_a_function_that_is_not_there_lists_those_that_are(capsys, model):
    message = refused(capsys, "show", f"{model}:lair")
    assert "defines no lair" in message and "Model, layer" in message


def test_show_without_a_function_says_what_to_write(capsys, model):
    assert "FILE:FUNCTION" in refused(capsys, "show", str(model))


def test_show_of_a_file_that_is_not_there_says_so(capsys):
    message = refused(capsys, "show", "nowhere.py:f")
    assert message.startswith("fgrad.MissingFileError: there is no file nowhere.py.")


def test_show_with_too_few_arguments_prints_the_parameters(capsys, model):
    assert "layer(params, x)" in refused(capsys, "show", f"{model}:layer", "--args", "f32[8]")


def test_show_prints_the_users_error_without_our_frames(capsys, model):
    message = refused(capsys, "show", f"{model}:layer", "--args", "{'w': f32[4,2], 'b': f32[2]}",
                      "f32[8,3]")
    assert message.startswith("fgrad.ShapeError") and "a_model.py:13" in message
    assert "Traceback" not in message


@pytest.mark.parametrize("text, value", [
    ("f32[8,3]", ArrayType(F32, (8, 3))), ("f32[]", ArrayType(F32, ())),
    ("i64[ 2 , 0 ]", ArrayType(I64, (2, 0))),
    ("-0.5", -0.5), ("'relu'", "relu"), ("None", None), ("True", True),
    ("{'w': f32[2], 'rest': [(f32[], 1)]}",
     {"w": ArrayType(F32, (2,)), "rest": [(ArrayType(F32, ()), 1)]})])
def test_an_argument_is_read_from_its_text(text, value):
    assert command_line.argument(text) == value


@pytest.mark.parametrize("text", ["g32[8]", "f32[", "__import__('os')", "x", "", "f32[8] f32[8]"])
def test_what_is_no_argument_is_refused(text):
    with pytest.raises(fgrad.FgradError, match="is no argument"):
        command_line.argument(text)


# ---------------------------------------------------------------------------- the command line

def test_every_command_has_help(capsys):
    for words in ([], ["doctor"], ["devices"], ["cache"], ["show"]):
        with pytest.raises(SystemExit) as stop:
            command_line.main([*words, "--help"])
        assert stop.value.code == 0 and "usage: python -m fgrad" in capsys.readouterr().out


def test_the_version_is_that_of_the_package():
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    assert f'version = "{fgrad.__version__}"' in text


def test_python_m_fgrad_runs():
    out = subprocess.run([sys.executable, "-m", "fgrad", "devices"], capture_output=True,
                         text=True)
    assert out.returncode == 0 and out.stdout.startswith("cpu ")


def test_output_may_be_cut_off_by_head():
    out = subprocess.run(f'"{sys.executable}" -m fgrad doctor | head -n 1', shell=True,
                         capture_output=True, text=True)
    assert out.stdout.startswith("fgrad") and "BrokenPipe" not in out.stderr


def test_bench_prints_how_near_each_program_comes(capsys, monkeypatch):
    def small():
        yield "doubled", lambda x: x * 2, (fnp.ones(1000),)
        yield "sorted", fnp.sort, (fnp.ones(5000),)
    monkeypatch.setattr(profiling, "SECONDS", 0.0)
    monkeypatch.setattr(bench, "CALLS", 10)
    monkeypatch.setattr(bench, "programs", small)
    first, empty, head, *rows = printed(capsys, "bench")
    assert "GFLOP/s of f32 multiply-adds" in first and "GB/s of copies" in first and not empty
    assert head.split() == ["time", "GFLOP/s", "GB/s", "limit"]
    assert [r.split()[-1] for r in rows] == ["array", "doubled", "sorted"]
    assert "%" in rows[1] and "%" not in rows[2] and "%" not in rows[0]


def test_the_programs_of_bench_can_be_compiled():
    found = list(bench.programs())
    assert len(found) == len({what for what, _, _ in found}) >= 7
    for _, function, args in found:
        fgrad.jit(function).lower(*fgrad.tree.map(lambda x: ArrayType(x.dtype, x.shape), args))
