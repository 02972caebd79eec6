"""The IDX reader: what it reads, and what it says of files that are not as they should be."""

import gzip
import struct

import numpy as np
import pytest

from fgrad.data import idx
from fgrad.errors import DataError, MissingFileError


def packed(code, shape, data):
    """The bytes of an IDX file."""
    return bytes([0, 0, code, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + data


@pytest.fixture
def write(tmp_path):
    """Writes a file and gives its path."""
    def to(data, name="images-idx"):
        path = tmp_path / name
        path.write_bytes(data)
        return path
    return to


def failure(path):
    with pytest.raises(DataError) as caught:
        idx.read(path)
    return str(caught.value)


@pytest.mark.parametrize("code, dtype", [(8, "u1"), (9, "i1"), (11, "i2"), (12, "i4"), (13, "f4"),
                                         (14, "f8")])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 3, 2), (0,), (0, 5), ()])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_every_element_type_and_shape_is_read_in_native_order(write, code, dtype, shape, pack):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    out = idx.read(write(pack(packed(code, shape, values.astype(f">{dtype}").tobytes()))))
    assert out.dtype == np.dtype(dtype) and out.dtype.isnative
    assert out.shape == shape and out.flags.writeable
    assert np.array_equal(out, values)


def test_gzip_is_seen_from_the_content_and_not_from_the_name(write):
    data = packed(8, (2,), b"\1\2")
    assert idx.read(write(data, "labels.gz")).tolist() == [1, 2]
    assert idx.read(write(gzip.compress(data), "labels")).tolist() == [1, 2]


def test_a_missing_file_is_also_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing-here does not exist"):
        idx.read(tmp_path / "nothing-here")
    assert issubclass(MissingFileError, DataError)


def test_a_folder_is_not_a_file(tmp_path):
    assert "is a folder" in failure(tmp_path)


def test_an_empty_file_is_named_so(write):
    assert "is empty" in failure(write(b""))
    assert "is empty" in failure(write(gzip.compress(b"")))


@pytest.mark.parametrize("start, words", [
    (b"\x89PNG\r\n\x1a\n0000", "a PNG image"),
    (b"\xff\xd8\xff\xe0abcd", "a JPEG image"),
    (b"<!DOCTYPE html>\n<html>", "an HTML page"),
    (b"\n <html><body>404", "an HTML page"),
    (b"PK\x03\x04abcd", "a zip archive"),
    (b"\x93NUMPY\x01\x00", "a NumPy file"),
    (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
    (b"label,pixel1,pixel2\n", "text: 'label,pixel1,pixel2"),
    (b"\0\0\x07\x01\0\0\0\1a", "bytes 00 00 07 01 00 00 00 01"),
    (b"\1\0\x08\x01\0\0\0\1a", "bytes 01 00 08 01"),
    (b"\0\0\x08", "bytes 00 00 08"),
    (gzip.compress(b"twice", mtime=0), "gzip data (packed twice?)"),
])
def test_a_foreign_file_is_told_by_what_it_looks_like(write, start, words):
    pack = gzip.compress if words.startswith("gzip") else bytes
    message = failure(write(pack(start)))
    assert "is not an IDX file" in message and words in message


def test_a_header_that_is_cut_off_says_how_long_it_should_be(write):
    message = failure(write(packed(8, (2, 3), b"")[:-3]))
    assert "is cut off in its header" in message
    assert "9 bytes" in message and "12 bytes of header for 2 axes" in message


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_missing_elements_are_counted(write, pack):
    message = failure(write(pack(packed(8, (2, 3), b"\0" * 5))))
    assert "5 bytes of elements" in message
    assert "uint8[2,3], 6 bytes of elements" in message


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_bytes_behind_the_last_element_are_an_error(write, pack):
    message = failure(write(pack(packed(11, (2,), b"\0" * 5))))
    assert "goes on behind its last element" in message and "int16[2], 4 bytes" in message


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_header_that_asks_for_more_than_the_file_can_hold_takes_no_memory(write, pack):
    path = write(pack(packed(14, (2**32 - 1, 2**32 - 1, 1000), b"\0" * 100)))
    assert "is too small for what its header asks for" in failure(path)


def test_a_packed_file_is_bounded_by_what_deflate_can_reach(write):
    path = write(gzip.compress(packed(8, (2**20,), bytes(2**20))))
    assert path.stat().st_size < 1200
    assert idx.read(path).shape == (2**20,)


def test_an_empty_array_with_impossible_other_axes_is_refused(write):
    message = failure(write(packed(8, (0, 2**32 - 1, 2**32 - 1), b"")))
    assert "a shape that no array can have" in message


def test_too_many_axes_are_refused(write):
    assert "says that it has 200 axes" in failure(write(packed(8, (1,) * 200, b"\0")))


def test_a_gzip_file_that_is_cut_off_is_damaged(write):
    data = gzip.compress(packed(8, (500,), np.random.default_rng(0).bytes(500)))
    message = failure(write(data[:300]))
    assert "is a damaged gzip file" in message and "300 bytes" in message


def test_a_gzip_file_with_a_changed_byte_is_damaged(write):
    data = bytearray(gzip.compress(packed(8, (500,), np.random.default_rng(0).bytes(500))))
    data[100] ^= 0x55
    assert "is a damaged gzip file" in failure(write(bytes(data)))


def test_the_whole_message_of_a_file_that_is_cut_off(write):
    path = write(packed(8, (2, 3), b"\0" * 4))
    lines = failure(path).splitlines()
    assert lines[0] == f"{path} is too small for what its header asks for."
    assert "idx.read(path)" in lines[2]
    assert lines[4:] == [
        "  given      room for at most 4 bytes of elements",
        "  expected   uint8[2,3], 6 bytes of elements",
        "  fix        fetch the file again: it is cut off, or its header is wrong"]
