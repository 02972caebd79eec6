"""Objects of texts: made once, beside what goes on, and kept on disk."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import pytest

from fgrad import config
from fgrad.backends import cache
from fgrad.backends.llvm import codegen, objects, target
from fgrad.errors import CheckError

FUNCTION = """
define i64 @f(i64 %x) {{
  %y = add i64 %x, {n}
  ret i64 %y
}}
"""


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("FGRAD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(config, "processors", lambda: 3)


@pytest.fixture
def made(monkeypatch):
    """The texts that LLVM has compiled since."""
    found, compile_text = [], codegen.compile_text

    def noted(text):
        found.append(text)
        return compile_text(text)
    monkeypatch.setattr(codegen, "compile_text", noted)
    return found


def texts(count, first=0):
    return [FUNCTION.format(n=first + n) for n in range(count)]


def plus(data, x):
    function = target.load(data).address("f")
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(function)(x)


def ended():
    """Waits until no thread makes anything."""
    while objects._helpers:
        time.sleep(0.001)


@pytest.mark.parametrize("processors", [1, 2, 8])
def test_several_texts_compile_as_one_by_one(monkeypatch, processors):
    monkeypatch.setattr(config, "processors", lambda: processors)
    assert objects.of(texts(9)) == [target.compile_text(text) for text in texts(9)]
    assert objects.of([]) == []


def test_objects_come_from_the_disk_the_second_time(made):
    first = objects.of(texts(3))
    assert objects.of(texts(3)) == first and objects.of(texts(1)) == first[:1]
    objects.begin(texts(3))
    ended()
    assert len(made) == 3 and len(cache.disk().entries()) == 3 and not objects._jobs


@pytest.mark.parametrize("cached", [True, False])
def test_what_is_begun_is_made_once(monkeypatch, made, cached):
    if not cached:
        monkeypatch.setenv("FGRAD_CACHE", "0")
    objects.begin(texts(2, 20))
    objects.begin(texts(3, 20))
    ended()
    assert len(made) == 3
    found = objects.of(texts(4, 20))
    assert [plus(data, 1) for data in found] == [21, 22, 23, 24]
    assert len(made) == 4 and not objects._jobs and not objects._waiting


def test_with_one_processor_nothing_is_begun(monkeypatch, made):
    monkeypatch.setattr(config, "processors", lambda: 1)
    objects.begin(texts(2))
    assert objects._helpers == 0 and not made
    assert len(objects.of(texts(2))) == 2 and len(made) == 2


def test_many_threads_ask_for_the_same_objects(made):
    found = []
    others = [threading.Thread(target=lambda: found.append(objects.of(texts(8, 40))))
              for _ in range(6)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert all(each == found[0] for each in found) and len(found) == 6
    assert set(made) == set(texts(8, 40)) and not objects._jobs


def test_an_error_is_raised_where_the_object_is_asked_for_and_not_kept(made):
    objects.begin(["no module"])
    ended()
    for _ in range(2):
        with pytest.raises(CheckError, match="LLVM does not accept"):
            objects.of(["no module", *texts(1)])
    assert made.count("no module") == 2 and made.count(texts(1)[0]) == 1
    assert not objects._jobs


def test_threads_take_turns_quickly_only_while_objects_are_made(monkeypatch):
    usual, seen, compile_text = sys.getswitchinterval(), [], codegen.compile_text

    def noted(text):
        seen.append(sys.getswitchinterval())
        return compile_text(text)
    monkeypatch.setattr(codegen, "compile_text", noted)
    objects.begin(texts(4, 60))
    ended()
    assert seen == [pytest.approx(objects.SWITCH)] * 4 and sys.getswitchinterval() == usual


def test_a_system_without_more_threads_gets_the_objects_too(monkeypatch):
    def refused(self):
        raise RuntimeError("can't start new thread")
    monkeypatch.setattr(threading.Thread, "start", refused)
    objects.begin(texts(2, 80))
    assert objects._helpers == 0
    assert plus(objects.of(texts(2, 80))[1], 0) == 81


FORKS = """
import os, sys
from fgrad import config
config.processors = lambda: 4
from fgrad.backends.llvm import objects
for turn in range(20):
    texts = [sys.argv[1].replace("ADDED", str(8 * turn + n)) for n in range(8)]
    objects.begin(texts)
    child = os.fork()
    found = objects.of(texts)
    assert len(found) == 8 and not objects._jobs
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_makes_what_its_parent_had_begun():
    subprocess.run([sys.executable, "-c", FORKS, FUNCTION.format(n="ADDED")], check=True,
                   timeout=60)


def test_a_long_text_is_optimised_less(monkeypatch):
    levels, machine = [], codegen.target_machine

    def noted(level):
        levels.append(level)
        return machine(level)
    monkeypatch.setattr(codegen, "target_machine", noted)
    text, = texts(1, first=5)
    long = text + f"; {'of thousands of lines ' * 60}\n" * (codegen.LONG // 1000)
    assert len(text) < codegen.LONG < len(long)
    assert [plus(codegen.compile_text(each), 2) for each in (text, long)] == [7, 7]
    assert levels == [codegen.LEVEL, codegen.QUICK]
