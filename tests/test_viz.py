"""Pictures: PNG files hold the pixels, SVG files are well formed and say what they show."""

import struct
import xml.etree.ElementTree as ElementTree
import zlib

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import viz


def decoded(data):
    """The pixels of a PNG file as `png` writes them; every checksum is looked at."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, found = 8, {}
    while at < len(data):
        (length,) = struct.unpack(">I", data[at:at + 4])
        kind, content = data[at + 4:at + 8], data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(
            kind + content)
        found[kind], at = content, at + 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", found[b"IHDR"][:10])
    channels = {0: 1, 2: 3}[colour]
    rows = np.frombuffer(zlib.decompress(found[b"IDAT"]), np.uint8).reshape(height, -1)
    assert depth == 8 and not rows[:, 0].any()
    return rows[:, 1:].reshape((height, width) if channels == 1 else (height, width, 3))


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 7, 3), (1, 1, 3)])
def test_a_png_file_holds_the_pixels(shape, tmp_path):
    pixels = np.random.default_rng(0).integers(256, size=shape).astype(np.uint8)
    viz.save_png(tmp_path / "a.png", pixels)
    np.testing.assert_array_equal(decoded((tmp_path / "a.png").read_bytes()), pixels)


def test_floats_from_0_to_1_are_pixels_and_what_lies_outside_is_cut():
    pixels = fnp.array([[0.0, 0.5, 1.0], [-3.0, float("nan"), 7.0]])
    assert decoded(viz.png(pixels)).tolist() == [[0, 128, 255], [0, 0, 255]]


@pytest.mark.parametrize("shape", [(3,), (2, 2, 4), (0, 3), (2, 2, 2, 3)])
def test_what_is_no_image_is_refused(shape):
    with pytest.raises(fgrad.ShapeError, match="one image"):
        viz.png(np.zeros(shape))


def test_whole_numbers_that_are_no_bytes_are_refused():
    with pytest.raises(fgrad.DtypeError, match="uint8"):
        viz.png(np.zeros((2, 2), int))


def test_tiles_put_images_into_rows_with_white_between():
    sheet = viz.tiles(np.arange(3, dtype=np.uint8).reshape(3, 1, 1), columns=2, scale=2)
    w = 255
    assert sheet.tolist() == [[w, w, w, w, w, w, w], [w, 0, 0, w, 1, 1, w], [w, 0, 0, w, 1, 1, w],
                              [w, w, w, w, w, w, w], [w, 2, 2, w, w, w, w], [w, 2, 2, w, w, w, w],
                              [w, w, w, w, w, w, w]]
    assert viz.tiles(np.zeros((5, 2, 3, 3))).shape == (7, 13, 3)


def test_signed_of_zeros_is_white():
    assert (viz.signed(np.zeros((2, 2))) == 255).all()


def test_a_plot_is_well_formed_and_names_its_parts(tmp_path):
    x = np.linspace(-1, 1, 9)
    plot = viz.Plot("a < b", x="time", y="height")
    plot.image(np.zeros((2, 2, 3)), -1, 1, -1, 1).band(x, x - 1, x + 1, "range")
    plot.line(x, x ** 2, "line").points(fnp.asarray(x), fnp.asarray(x) ** 3)
    plot.save(tmp_path / "a.svg")
    found = ElementTree.parse(tmp_path / "a.svg").getroot()
    words = [e.text for e in found.iter() if e.tag.endswith("text")]
    assert {"a < b", "time", "height", "range", "line", "-2"} <= set(words)
    kinds = [e.tag.split("}")[1] for e in found.iter()]
    assert kinds.count("circle") == 9 and kinds.count("polyline") == 1 and "image" in kinds


@pytest.mark.parametrize("x, y", [([], []), ([1.0], [2.0]), ([0, np.nan, 1], [0, 1, np.inf])])
def test_few_and_infinite_numbers_are_drawn(x, y):
    text = viz.Plot().line(x, y).points(x, y).svg()
    ElementTree.fromstring(text)
    assert "nan" not in text and "inf" not in text


def test_a_plot_wants_as_many_x_as_y():
    with pytest.raises(fgrad.ShapeError, match="as many x as y"):
        viz.Plot().line([1, 2], [1])
