"""The CIFAR reader: layout, several files, and files that are not as they should be."""

import gzip

import numpy as np
import pytest

from fgrad.data import cifar
from fgrad.errors import DataError, MissingFileError

RNG = np.random.default_rng(0)


def records(labels):
    """The bytes of a file with these labels, and its images [n,3,32,32]."""
    planes = RNG.integers(256, size=(len(labels), 3, 32, 32), dtype=np.uint8)
    return b"".join(bytes([label]) + p.tobytes() for label, p in zip(labels, planes)), planes


def failure(path):
    with pytest.raises(DataError) as caught:
        cifar.read(path)
    return str(caught.value)


def body(sentence, message):
    """The rows of the message, which begins with the sentence."""
    assert message.startswith(sentence + "\n")
    return message[message.index("\n  given" if "\n  given" in message else "\n  expected"):]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_planes_become_channels_last(tmp_path, pack):
    data, planes = records([3, 9, 0])
    path = tmp_path / "any-name"
    path.write_bytes(pack(data))
    images, labels = cifar.read(path)
    assert labels.tolist() == [3, 9, 0] and np.array_equal(images, planes.transpose(0, 2, 3, 1))
    assert images.flags.c_contiguous and images.flags.writeable and labels.flags.writeable


def test_a_folder_becomes_a_split(tmp_path):
    first, second, test = records([1, 2]), records([3]), records([4])
    (tmp_path / "data_batch_1.bin").write_bytes(first[0])
    (tmp_path / "data_batch_1.bin.gz").write_bytes(gzip.compress(first[0]))    # the same once more
    (tmp_path / "data_batch_2.bin.gz").write_bytes(gzip.compress(second[0]))
    (tmp_path / "test_batch.bin").write_bytes(test[0])
    split = cifar.load(tmp_path)
    assert repr(split) == "Split(CIFAR-10: 3 training and 1 test images of 32×32)"
    assert split.train_labels.tolist() == [1, 2, 3] and split.test_images.shape == (1, 32, 32, 3)


def test_an_incomplete_folder_lists_what_is_there(tmp_path):
    (tmp_path / "data_batch_1.bin").write_bytes(records([1])[0])
    with pytest.raises(MissingFileError) as caught:
        cifar.load(tmp_path)
    assert body(f"{tmp_path} does not hold test_batch*.bin.", str(caught.value)) == (
        "\n  given      a folder with data_batch_1.bin"
        "\n  expected   data_batch_1.bin …, test_batch.bin, each plain or .gz"
        "\n  fix        give the folder of the binary version")


def test_a_cut_off_file_counts_its_records(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(records([1, 2])[0][:-10])
    assert body(f"{path} is cut off.", failure(path)) == (
        "\n  given      1 records and 3063 bytes"
        "\n  expected   whole records of 3073 bytes"
        "\n  fix        fetch the file again")


@pytest.mark.parametrize("data, words", [
    (records([1, 10])[0], "bytes 01"),
    (b"\x80\x04 a pickle of the Python version" + bytes(4000), "a Python pickle"),
    (b"<html>404</html>", "an HTML page"),
    (b"\0" * 100, "bytes 00 00"),
])
def test_a_file_of_another_kind_is_told_by_its_looks(tmp_path, data, words):
    path = tmp_path / "a.bin"
    path.write_bytes(data)
    message = failure(path)
    assert message.startswith(f"{path} is not a CIFAR-10 binary file.\n") and words in message
    assert "  expected   records of 3073 bytes that begin with a label 0 … 9\n" in message


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_an_empty_file_says_so(tmp_path, pack):
    path = tmp_path / "a.bin"
    path.write_bytes(pack(b""))
    assert body(f"{path} is empty.", failure(path)) == (
        "\n  expected   records of 3073 bytes\n  fix        fetch the file again")


def test_a_damaged_gzip_file_says_so(tmp_path):
    path = tmp_path / "a.bin.gz"
    path.write_bytes(gzip.compress(records([1])[0])[:-20])
    assert failure(path).startswith(f"{path} is a damaged gzip file: ")
