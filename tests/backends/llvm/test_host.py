"""What is known of the machine, with and without asking LLVM."""

import os
import sys

import pytest

from fgrad.backends import cache
from fgrad.backends.llvm import host, processor


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """A list that gets an element whenever LLVM is asked; the cache of compiled code is empty."""
    monkeypatch.setenv("FGRAD_CACHE", str(tmp_path / "cache"))
    times, described = [], processor.described
    monkeypatch.setattr(processor, "described", lambda: times.append(1) or described())
    return times


def said(monkeypatch, tmp_path, lines):
    """Makes the system say these lines of its processor."""
    file = tmp_path / "cpuinfo"
    file.write_text("\n".join(lines) + "\n\nprocessor : 1\nflags : others\n")
    monkeypatch.setattr(host, "CPUINFO", str(file))


def test_the_machine_is_what_llvm_says():
    assert host.HOST == host.Host(*processor.described())
    assert host.IDENTITY.endswith(host.HOST.features) and host.HOST.cpu in host.IDENTITY


def test_llvm_is_asked_once(asked, monkeypatch, tmp_path):
    said(monkeypatch, tmp_path, ["flags : a b"])
    first, second = host.host(), host.host()
    assert len(asked) == 1 and first == second == host.HOST


def test_another_processor_is_asked_for_anew(asked, monkeypatch, tmp_path):
    for count, lines in enumerate((["flags : a b"], ["flags : a"], ["Features : a"]), 1):
        said(monkeypatch, tmp_path, lines)
        host.host()
        assert len(asked) == count


def test_what_changes_while_a_machine_runs_is_no_matter(asked, monkeypatch, tmp_path):
    for speed in ("1000.0", "2700.0"):
        said(monkeypatch, tmp_path, ["processor : 0", f"cpu MHz : {speed}", "flags : a b"])
        assert host.processor_lines() == [b"flags : a b"]
        host.host()
    assert len(asked) == 1


def test_another_llvmlite_is_asked_anew(asked, monkeypatch, tmp_path):
    said(monkeypatch, tmp_path, ["flags : a b"])
    files = host.llvmlite_files()
    assert files and all(os.path.isfile(path) for path, _, _ in files)
    host.host()
    monkeypatch.setattr(host, "llvmlite_files", lambda: [(p, n + 1, t) for p, n, t in files])
    host.host()
    assert len(asked) == 2


@pytest.mark.parametrize("lines", [None, ["nothing : known"]])
def test_where_the_system_does_not_say_llvm_is_asked_every_time(asked, monkeypatch, tmp_path,
                                                                lines):
    if lines is None:
        monkeypatch.setattr(host, "CPUINFO", str(tmp_path / "none"))
    else:
        said(monkeypatch, tmp_path, lines)
    assert host.host() == host.host() == host.HOST
    assert len(asked) == 2 and cache.disk().entries() == []


def test_a_damaged_description_is_made_anew(asked, monkeypatch, tmp_path):
    said(monkeypatch, tmp_path, ["flags : a b"])
    host.host()
    [file] = (tmp_path / "cache").iterdir()
    file.write_bytes(file.read_bytes()[:-3])
    assert host.host() == host.HOST and len(asked) == 2


def test_an_llvmlite_that_may_not_be_imported_has_no_files(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    assert host.llvmlite_files() == []
