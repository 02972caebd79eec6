"""The command line: `python -m fgrad doctor | devices | cache | show | bench`, `--version`.

Each command is a function that gives the lines to print.  Relies on everything below; nothing
relies on it.  Modules that import llvmlite are loaded when a command needs them, so that `doctor`
can also say that llvmlite is missing.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import platform
import re
import sys
import tempfile
from pathlib import Path

from . import config
from .backends import base, cache
from .compile import devices
from .errors import ArgumentError, DeviceError, FgradError, MissingFileError
from .inspect import STAGES, show
from .text import columns, counted, dimmed, is_coloured
from .types import LONG, ArrayType

TYPE = re.compile(rf"\b({'|'.join(LONG)})\[([\d,\s]*)\]")


# ---------------------------------------------------------------------------- doctor

def doctor(options):
    """What this installation is made of, and what of it works."""
    rows = [("fgrad", f"{sys.modules[__package__].__version__}, {Path(__file__).parent}"),
            ("python", f"{platform.python_version()}, {sys.executable}"),
            ("machine", f"{platform.system()} {platform.machine()}"),
            *((name, version(name)) for name in ("numpy", "llvmlite", "pyopencl")),
            ("threads", f"{config.threads()} (FGRAD_THREADS changes it)"),
            ("native call", native_call()),
            ("cache", cache_state(cache.disk())),
            ("default", default_device(config.device())),
            ("nans", f"{on_or_off(config.nans())} (FGRAD_NANS changes it)"),
            ("strict", f"{on_or_off(config.strict_promotion())} (FGRAD_STRICT changes it)")]
    return [*columns(rows, gap="   "), "", "devices", *indented(repr(devices()))]


def version(name):
    """The version of an installed package, or that it is missing."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        optional = name == "pyopencl"
        return f"not installed ({'optional: ' if optional else ''}pip install {name})"


def native_call():
    """Do jitted functions and operators begin in machine code, and if not, why?"""
    if not config.native_call():
        return "off: FGRAD_NATIVE_CALL=0"
    try:
        holds = importlib.import_module("fgrad.backends.llvm.native_call").layouts_hold()
    except ImportError as error:
        return f"off: {error}"
    return "on" if holds else ("off: this Python or NumPy lays out its objects in another way; "
                               "calls go through Python, which takes longer and gives the same")


def cache_state(disk):
    """The folder for compiled code, and how full it is."""
    if disk.folder is None:
        return "off: FGRAD_CACHE=0, or no home folder"
    if cache.private(disk.folder) is False:
        return f"off: {disk.folder} belongs to another user, or others may write to it (chmod 700)"
    try:
        os.makedirs(disk.folder, mode=0o700, exist_ok=True)
        tempfile.TemporaryFile(dir=disk.folder).close()
    except OSError as error:
        return f"off: {disk.folder} cannot be written ({error.strerror or error})"
    return f"{disk.folder}, {megabytes(disk.size)} of {megabytes(disk.limit)}"


def default_device(name):
    """The device where jitted functions run unless told otherwise, and whether there is one."""
    try:
        base.find(name).devices()
    except DeviceError as error:
        return f"does not work: FGRAD_DEVICE={name}: {error.sentence}"
    return f"{name} (FGRAD_DEVICE changes it)"


def on_or_off(switch):
    """A switch in words."""
    return "on" if switch else "off"


def megabytes(count):
    """Bytes in words."""
    return f"{count / 1e6:.1f} MB"


def indented(text):
    return ["  " + line for line in text.splitlines()]


# ---------------------------------------------------------------------------- devices, cache

def list_devices(options):
    """The devices of this machine, and why a kind of them is missing."""
    return repr(devices()).splitlines()


def cache_command(options):
    """What `cache path`, `cache ls` and `cache clear` print."""
    disk = cache.disk()
    if disk.folder is None:
        return ["the cache is off: FGRAD_CACHE=0, or no home folder"]
    if options.action == "path":
        return [disk.folder]
    entries = disk.entries()
    size, count = megabytes(sum(e.size for e in entries)), counted(len(entries), "file")
    if options.action == "clear":
        disk.clear()
        return [f"removed {count}, {size}, from {disk.folder}"]
    total = f"{count}, {size} of {megabytes(disk.limit)}, in {disk.folder}"
    return [*(f"{e.key}  {e.size:>10,}" for e in entries), total]


def bench(options):
    """What `bench` prints, line by line as it is measured."""
    return importlib.import_module("fgrad.bench").bench(options)


# ---------------------------------------------------------------------------- show

def show_command(options):
    """The program of FILE:FUNCTION for arguments of these types, at a stage."""
    function, args = loaded(options.function), list(map(argument, options.args))
    try:
        inspect.signature(function).bind(*args)
    except TypeError as error:
        name = options.function.rpartition(":")[2]
        raise ArgumentError(f"these arguments do not fit {options.function}: {error}.", where=None,
                            given=f"--args {' '.join(options.args)}",
                            expected=f"{name}{inspect.signature(function)}") from None
    shown = show(function, *args, stage=options.stage, device=options.device)
    return [dimmed(shown) if is_coloured(sys.stdout) else shown]


def loaded(where):
    """The function that FILE:FUNCTION names; the file is run as a module, its folder importable."""
    file, _, name = where.rpartition(":")
    if not file:
        raise ArgumentError(f"{where} names no function.", where=None,
                            expected="FILE:FUNCTION, as in model.py:loss")
    path = Path(file).resolve()
    if not path.is_file():
        raise MissingFileError(f"there is no file {file}.", given=where, where=None)
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module              # dataclasses and pytrees look their module up
    spec.loader.exec_module(module)
    return member(module, name, file)


def member(module, name, file):
    """A function of the module; a dotted name goes on into a class or an object."""
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            functions = sorted(n for n, x in vars(module).items() if callable(x) and n[0] != "_")
            raise ArgumentError(f"{file} defines no {name}.", where=None,
                                expected=", ".join(functions))
        found = getattr(found, part)
    return found


def argument(text):
    """An argument from its text: types stand for arrays, in dicts, tuples and lists too.

    >>> argument("{'w': f32[3,2], 'b': f32[]}"), argument("0.1")
    ({'w': f32[3,2], 'b': f32[]}, 0.1)
    """
    written = TYPE.sub(lambda m: f"__type__({m[0]!r})", text)    # an expression of Python
    try:
        return value(ast.parse(written.strip(), mode="eval").body)
    except (SyntaxError, ValueError):
        raise ArgumentError(f"{text} is no argument.", where=None,
                            expected="a type such as f32[8,3], a number, a string, "
                                     "or dicts, tuples, lists of them") from None


def value(node):
    """The value of an expression of types, literals and containers; nothing is evaluated."""
    match node:
        case ast.Call(func=ast.Name(id="__type__"), args=[ast.Constant(value=text)]):
            return array_type(text)
        case ast.Dict(keys=keys, values=values):
            return {value(k): value(v) for k, v in zip(keys, values)}
        case ast.Tuple(elts=parts):
            return tuple(map(value, parts))
        case ast.List(elts=parts):
            return list(map(value, parts))
    return ast.literal_eval(node)


def array_type(text):
    """The ArrayType that prints as this text."""
    dtype, sizes = TYPE.fullmatch(text).groups()
    return ArrayType(LONG[dtype], tuple(int(n) for n in sizes.split(",") if n.strip()))


# ---------------------------------------------------------------------------- the command line

def parser():
    """The options of every command."""
    top = argparse.ArgumentParser(prog="python -m fgrad",
                                  description="Looks into an installation of fgrad.")
    top.add_argument("--version", action="version",
                     version=f"fgrad {sys.modules[__package__].__version__}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name, run, help, **rest):
        made = commands.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".",
                                   formatter_class=argparse.RawDescriptionHelpFormatter, **rest)
        made.set_defaults(run=run)
        return made

    command("doctor", doctor, "versions, devices, threads, cache: what works, and what does not")
    command("devices", list_devices, "the devices, and why a kind of them is missing")
    command("bench", bench, "what the processor does at best, and how near programs come to it")
    kept = command("cache", cache_command, "the folder of compiled code",
                   epilog="FGRAD_CACHE=DIR moves it, FGRAD_CACHE=0 switches it off, "
                          "FGRAD_CACHE_MB limits it.")
    kept.add_argument("action", nargs="?", default="ls", choices=("ls", "clear", "path"),
                      help="list the entries (default), remove them, or print the folder's path")
    shown = command("show", show_command, "the program of a function, at a stage of compilation",
                    epilog='example:\n  python -m fgrad show model.py:loss '
                           '--args "f32[8,3]" "{\'w\': f32[3,2]}" --stage loops')
    shown.add_argument("function", metavar="FILE:FUNCTION",
                       help="model.py:loss; the file is run as a module")
    shown.add_argument("--args", nargs="*", default=[], metavar="ARG",
                       help="one per argument: a type such as f32[8,3], a number, a string, "
                            "or a dict, tuple or list of them, quoted for the shell")
    shown.add_argument("--stage", default="ir", choices=STAGES, help="default: ir")
    shown.add_argument("--device", help="cpu, opencl, opencl:1, …; default: FGRAD_DEVICE or cpu")
    return top


def main(argv=None):
    """Runs one command; the exit status: 0, or 1 where an error was printed."""
    options = parser().parse_args(argv)
    try:
        for line in options.run(options):
            print(line, flush=True)
    except BrokenPipeError:                      # `… | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except FgradError as error:
        print(f"{type(error).__module__}.{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
