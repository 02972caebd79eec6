"""Loading and downloading MNIST's four files; mirrors are folders here, so no network is used."""

import gzip
import hashlib
import struct

import numpy as np
import pytest

from fgrad.data import mnist
from fgrad.errors import DataError, DownloadError, MissingFileError

IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


def idx_bytes(a):
    return bytes([0, 0, 8, a.ndim]) + struct.pack(f">{a.ndim}I", *a.shape) + a.tobytes()


def contents(images=IMAGES, labels=np.array([7, 2], np.uint8)):
    """Name → bytes of the four files, packed."""
    return {f"{name}.gz": gzip.compress(idx_bytes(images if part.endswith("images") else labels))
            for part, name in mnist.FILES.items()}


def fill(folder, files):
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def check(split):
    assert np.array_equal(split.train_images, IMAGES) and split.test_labels.tolist() == [7, 2]


def test_packed_files_load(tmp_path):
    check(mnist.load(fill(tmp_path, contents())))


def test_plain_files_load_under_both_spellings(tmp_path):
    plain = {n.removesuffix(".gz"): gzip.decompress(d) for n, d in contents().items()}
    check(mnist.load(fill(tmp_path / "a", plain)))
    dotted = {n.replace("-idx", ".idx"): d for n, d in plain.items()}
    check(mnist.load(fill(tmp_path / "b", dotted)))


def test_a_missing_file_is_named_with_what_was_found(tmp_path):
    files = contents()
    del files["t10k-labels-idx1-ubyte.gz"]
    with pytest.raises(MissingFileError) as caught:
        mnist.load(fill(tmp_path, files))
    message = str(caught.value)
    assert "does not hold t10k-labels-idx1-ubyte." in message
    assert "a folder with t10k-images-idx3-ubyte.gz, train-images-idx3-ubyte.gz" in message
    assert all(f"{name} (or {name}.gz)" in message for name in mnist.FILES.values())


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="is no folder"):
        mnist.load(tmp_path / "nowhere")


@pytest.mark.parametrize("images, labels", [
    (IMAGES, np.array([1, 2, 3], np.uint8)),
    (IMAGES[0], np.array([1, 2, 3], np.uint8)),
    (IMAGES, IMAGES),
])
def test_files_that_do_not_fit_together_are_refused(tmp_path, images, labels):
    with pytest.raises(DataError, match="do not fit together"):
        mnist.load(fill(tmp_path, contents(images, labels)))


def test_images_of_two_sizes_are_refused(tmp_path):
    other = contents(IMAGES.reshape(2, 4, 3))
    files = contents() | {n: d for n, d in other.items() if n.startswith("t10k-images")}
    with pytest.raises(DataError, match="differ in size"):
        mnist.load(fill(tmp_path, files))


# ---------------------------------------------------------------------------- download

@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A folder that stands for a server with four small files."""
    files = contents()
    folder = fill(tmp_path / "mirror", files)
    published = {n: (len(d), hashlib.sha256(d).hexdigest()) for n, d in files.items()}
    monkeypatch.setattr(mnist, "PUBLISHED", published)
    mirrors = (tmp_path / "gone").as_uri() + "/", folder.as_uri() + "/"
    monkeypatch.setattr(mnist, "MIRRORS", mirrors)
    return folder


def test_the_published_sums_are_those_of_the_four_files():
    assert list(mnist.PUBLISHED) == [f"{name}.gz" for name in mnist.FILES.values()]
    assert all(len(sha256) == 64 for _, sha256 in mnist.PUBLISHED.values())


def test_download_takes_the_first_mirror_that_answers(mirror, tmp_path):
    lines = []
    folder = mnist.download(tmp_path / "new" / "mnist", report=lines.append)
    check(mnist.load(folder))
    assert len(lines) == 4 and "train-images-idx3-ubyte.gz" in lines[0]
    assert sorted(p.name for p in folder.iterdir()) == sorted(mnist.PUBLISHED)


def test_files_that_are_there_are_kept_and_damaged_ones_fetched_again(mirror, tmp_path):
    folder = mnist.download(tmp_path / "new")
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(b"damaged")
    lines = []
    mnist.download(folder, report=lines.append)
    assert len(lines) == 1 and "t10k-labels" in lines[0]
    check(mnist.load(folder))


@pytest.mark.parametrize("change, words", [
    (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "the right size, but another SHA-256"),
    (lambda data: data[:20], "20 bytes, gzip data"),
    (lambda data: b"<html>" + data, "more than"),
])
def test_a_wrong_file_is_never_kept(mirror, tmp_path, change, words):
    name = "train-images-idx3-ubyte.gz"
    (mirror / name).write_bytes(change((mirror / name).read_bytes()))
    with pytest.raises(DownloadError) as caught:
        mnist.download(tmp_path / "new")
    assert words in str(caught.value) and "SHA-256" in str(caught.value)
    assert list((tmp_path / "new").iterdir()) == []


def test_without_a_network_every_mirror_is_named(mirror, tmp_path, monkeypatch):
    closed = "http://127.0.0.1:9/mnist/"                         # the discard port: nobody listens
    monkeypatch.setattr(mnist, "MIRRORS", (closed,))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(OSError) as caught:
        mnist.download(tmp_path / "new")
    assert isinstance(caught.value, DownloadError)
    assert closed + "train-images-idx3-ubyte.gz: " in str(caught.value)
    assert "check the network" in str(caught.value)


def test_downloads_are_cached_where_the_user_keeps_caches(mirror, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert mnist.download() == tmp_path / "cache" / "fgrad" / "mnist"
