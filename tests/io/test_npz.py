"""Pytrees in .npz files: round trips with NumPy itself, and damaged files."""

import io
import struct
import zipfile

import numpy as np
import pytest

from fgrad import tree
from fgrad.errors import ArgumentError, DataError, MissingFileError
from fgrad.io import load_npz, save_npz

DTYPES = ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "params.npz"


def failure(path, **options):
    with pytest.raises(DataError) as caught:
        load_npz(path, **options)
    return str(caught.value)


def npy(shape, descr="<f8", data=b""):
    """The bytes of a .npy file."""
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}}}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + data


def zipped(path, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 3)])
@pytest.mark.parametrize("compress", [False, True])
def test_every_dtype_and_shape_comes_back(path, dtype, shape, compress):
    a = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    save_npz(path, {"file": {"a": a}}, compress=compress)
    out = load_npz(path)["file"]["a"]
    assert out.dtype == a.dtype and out.shape == shape and out.flags.writeable
    assert np.array_equal(out, a)
    assert np.array_equal(np.load(path)["file/a"], a)


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_what_numpy_writes_is_read(path, write):
    a, b = np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(4, dtype=">i4")
    write(path, a=a, b=b)
    out = load_npz(path)
    assert np.array_equal(out["a"], a) and np.array_equal(out["b"], b) and out["b"].dtype.isnative


def test_a_tree_comes_back_with_like(path):
    params = {"layers": [np.ones((2, 3), "f4"), (0.5, None)], "empty": {}, "n": 3}
    save_npz(path, params)
    out = load_npz(path, like=params)
    assert tree.structure(out) == tree.structure(params) and out["n"] == 3 and type(out["n"]) is int
    assert "different layers/0: f32[2,3], like has f32[3]" in failure(path, like={
        "layers": [np.ones(3, "f4"), (0.5, None)], "n": 3})


def test_a_single_array_is_a_tree(path):
    save_npz(path, np.arange(3))
    assert load_npz(path).tolist() == [0, 1, 2]


def test_objects_are_neither_saved_nor_loaded(path):
    with pytest.raises(ArgumentError, match="cannot be saved"):
        save_npz(path, {"a": np.array([None])})
    np.savez(path, a=np.array([{}], object))
    assert "a dtype that is not supported" in failure(path) and "a.npy: object" in failure(path)


def test_a_missing_file_and_a_folder_are_named(path, tmp_path):
    with pytest.raises(MissingFileError, match="does not exist"):
        load_npz(path)
    assert "is a folder" in failure(tmp_path)


def test_an_empty_file_says_what_was_expected(path):
    path.write_bytes(b"")
    message = failure(path)
    assert message.startswith(f"{path} is not a sound npz file: File is not a zip file.\n\n")
    assert message.endswith("\n\n  given      0 bytes\n  expected   a zip of .npy files\n"
                            "  fix        fetch or write it again")


@pytest.mark.parametrize("compress", [False, True])
def test_every_shorter_file_is_refused(path, compress):
    save_npz(path, {"a": np.arange(30), "b": [np.ones(2, np.float32)]}, compress=compress)
    data = path.read_bytes()
    for n in range(0, len(data), 7):
        path.write_bytes(data[:n])
        failure(path)


def test_a_changed_byte_is_noticed(path):
    save_npz(path, {"a": np.zeros(100)})
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert "Bad CRC-32" in failure(path)


@pytest.mark.parametrize("shape", [(2**40,), (2**31, 2**31, 2**31), (0, -1), (3,), (1,) * 40])
def test_a_header_that_does_not_fit_takes_no_memory(path, shape):
    zipped(path, {"a.npy": npy(shape, data=bytes(16))})
    assert "does not fit its size" in failure(path)


def test_a_member_that_claims_more_than_it_can_hold_is_refused(path):
    zipped(path, {"a.npy": npy((2,), data=bytes(16))})
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\1\2")
    data[at + 24:at + 28] = struct.pack("<I", 2**31)
    path.write_bytes(data)
    assert "larger than it can be" in failure(path)


@pytest.mark.parametrize("data", [
    b"", b"\x93NUMPY", b"not an array at all", b"\x93NUMPY\3\0" + bytes(20),
    b"\x93NUMPY\1\0\xff\xff{"])
def test_a_member_that_is_no_npy_file_is_named(path, data):
    zipped(path, {"a.npy": data})
    assert "'a.npy' is no .npy file" in failure(path)


def test_other_members_and_other_packings_are_refused(path):
    zipped(path, {"notes.txt": b"x"})
    assert "'notes.txt' is no array" in failure(path)
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    zipped(path, {"a.npy": buffer.getvalue()}, zipfile.ZIP_BZIP2)
    assert "packed in an unknown way" in failure(path)
