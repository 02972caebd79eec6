"""The disk cache: what is stored comes back, or nothing does."""

import os
import stat
import subprocess
import sys
import warnings

import pytest

from fgrad import config, errors
from fgrad.backends import cache
from fgrad.backends.cache import DiskCache
from fgrad.errors import FgradWarning

WRITER = """
import sys
from fgrad.backends.cache import DiskCache

disk = DiskCache(sys.argv[1])
for n in range(100):
    disk.put("shared", sys.argv[2].encode() * 5000)
    data = disk.get("shared")
    assert data is not None and len(set(data)) == 1 and len(data) == 5000, data
"""


@pytest.fixture
def disk(tmp_path):
    return DiskCache(tmp_path / "cache", megabytes=1)


@pytest.fixture
def notices():
    errors.NOTICED.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 100])
def test_what_is_put_is_got(disk, data):
    assert disk.get("a") is None
    disk.put("a", data)
    assert disk.get("a") == data
    assert DiskCache(disk.folder).get("a") == data


def test_the_folder_is_private_and_holds_no_temporary_files(disk):
    disk.put("a", b"1")
    assert stat.S_IMODE(os.stat(disk.folder).st_mode) == 0o700
    assert os.listdir(disk.folder) == ["a.entry"]


@pytest.mark.parametrize("damage", [
    lambda content: content[:-1],
    lambda content: content[:10],
    lambda content: b"",
    lambda content: content + b"x",
    lambda content: b"X" + content[1:],
    lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    lambda content: content[:8] + b"\xff" + content[9:],
])
def test_a_damaged_entry_is_removed_and_missing(disk, damage):
    disk.put("a", b"some machine code")
    path = disk.path("a")
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(damage(content))
    assert disk.get("a") is None
    assert not os.path.exists(path)
    disk.put("a", b"some machine code")
    assert disk.get("a") == b"some machine code"


def test_entries_are_listed_and_cleared(disk):
    disk.put("a", b"1")
    disk.put("b", b"12")
    os.utime(disk.path("b"), (5, 5))
    assert [entry.key for entry in disk.entries()] == ["b", "a"]
    assert disk.size == sum(entry.size for entry in disk.entries()) > 3
    disk.clear()
    assert disk.entries() == [] and disk.size == 0


def test_trimming_removes_the_least_recently_used(disk):
    for n in range(15):
        disk.put(f"k{n}", bytes(100_000))
        os.utime(disk.path(f"k{n}"), (n, n))
    assert disk.get("k0") is not None                      # marks it as used now
    disk.trim()
    kept = {entry.key for entry in disk.entries()}
    assert disk.size <= 0.8 * disk.limit
    assert "k0" in kept and "k14" in kept and "k1" not in kept


def test_trimming_removes_orphaned_temporary_files(disk):
    disk.put("a", b"1")
    for name, age in (("old.part", 1), ("new.part", None)):
        path = os.path.join(disk.folder, name)
        open(path, "wb").close()
        if age is not None:
            os.utime(path, (age, age))
    disk.trim()
    assert sorted(os.listdir(disk.folder)) == ["a.entry", "new.part"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no POSIX permissions")
def test_a_folder_others_may_write_to_is_ignored_with_one_notice(disk, notices):
    os.mkdir(disk.folder)
    os.chmod(disk.folder, 0o777)
    disk.put("a", b"1")
    disk.put("a", b"1")
    assert disk.get("a") is None and disk.entries() == [] and os.listdir(disk.folder) == []
    [notice] = notices
    assert notice.category is FgradWarning and "belongs to another user" in str(notice.message)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no POSIX permissions")
def test_a_folder_of_another_user_is_ignored(disk, notices, monkeypatch):
    disk.put("a", b"1")
    monkeypatch.setattr(os, "getuid", lambda: 12345678)
    assert DiskCache(disk.folder).get("a") is None
    assert len(notices) == 1


def test_a_folder_that_cannot_be_made_gives_one_notice(tmp_path, notices):
    (tmp_path / "file").write_text("not a folder")
    disk = DiskCache(tmp_path / "file" / "cache")
    disk.put("a", b"1")
    disk.put("b", b"1")
    assert disk.get("a") is None
    [notice] = notices
    assert "cannot be written" in str(notice.message)


def test_a_full_disk_gives_one_notice_and_leaves_nothing(disk, notices, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    disk.put("before", b"1")
    monkeypatch.setattr(os, "replace", full)
    disk.put("a", b"1")
    disk.put("b", b"1")
    assert len(notices) == 1 and "No space left" in str(notices[0].message)
    assert os.listdir(disk.folder) == ["before.entry"] and disk.get("before") == b"1"


def test_no_folder_stores_nothing():
    disk = DiskCache(None)
    disk.put("a", b"1")
    assert disk.get("a") is None and disk.entries() == [] and disk.size == 0
    disk.clear()


def test_processes_may_write_one_key_at_once(tmp_path):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "cache"), letter])
               for letter in "abc"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]


def test_keys_depend_on_every_part_and_on_where_parts_end():
    keys = {cache.key("ab", "c"), cache.key("a", "bc"), cache.key("abc"), cache.key(b"ab", "d"),
            cache.key("ab", "c", 1), cache.key("ab", "c", 2)}
    assert len(keys) == 6
    assert cache.key("ab", "c") == cache.key(b"ab", "c")
    assert cache.sources() == cache.sources()


def test_the_environment_chooses_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("FGRAD_CACHE", str(tmp_path))
    monkeypatch.setenv("FGRAD_CACHE_MB", "2")
    assert cache.disk().folder == str(tmp_path) and cache.disk().limit == 2_000_000
    assert cache.disk() is cache.disk()
    monkeypatch.setenv("FGRAD_CACHE_MB", "many")
    with pytest.warns(UserWarning, match="FGRAD_CACHE_MB=many is not a number of megabytes"):
        assert cache.disk().limit == 512_000_000
    monkeypatch.setenv("FGRAD_CACHE", "0")
    assert cache.disk().folder is None
    monkeypatch.delenv("FGRAD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert config.cache_folder() == str(tmp_path / "fgrad")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert config.cache_folder() == str(tmp_path / "home" / ".cache" / "fgrad")
