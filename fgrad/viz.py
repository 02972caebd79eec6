"""Pictures without further packages: images as PNG, lines and points over axes as SVG.

For looking at what was learned: filters, samples, boundaries, fits.  Relies on NumPy and
`io/files.py`; `train/curves.py` and the examples rely on it.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from html import escape

import numpy as np

from .errors import DtypeError, ShapeError, bound, bound_methods
from .io.files import check_suffix, write_whole

__all__ = ["Plot", "png", "save_png", "signed", "tiles"]
__dir__ = __all__.copy     # dir() lists these and nothing else

COLOURS = "#1f6fb2", "#d1495b", "#3a9d5d", "#e08e1a", "#7b4fa3", "#4a4a4a"


# ---------------------------------------------------------------------------- images

def save_png(path, pixels):
    """Writes an image as a PNG file: [h,w] grey or [h,w,3] colours, u8, or floats 0 … 1.

    Raises ShapeError, DtypeError, ArgumentError for a path that tells another format, and
    MissingFileError when the folder does not exist.
    Source: the PNG specification (ISO/IEC 15948); rows are stored without a filter.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "grey.png")
    ...     save_png(path, np.zeros((2, 3)))
    ...     path.read_bytes()[1:4]
    b'PNG'
    """
    check_suffix(path, ".png")
    write_whole(path, [png(pixels)])


def png(pixels):
    """The bytes of the PNG file of an image; see `save_png`.

    >>> len(png(np.zeros((1, 1), np.uint8)))
    67
    """
    pixels = as_bytes(pixels)
    if pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (3,)) or pixels.size == 0:
        raise ShapeError("a PNG file holds one image.", given=f"shape {pixels.shape}",
                         expected="[height,width] or [height,width,3]",
                         fix="viz.tiles(images) puts a batch into one sheet")
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def chunk(kind, content):
    """One piece of a PNG file: its length, kind, content and checksum."""
    return (struct.pack(">I", len(content)) + kind + content
            + struct.pack(">I", zlib.crc32(kind + content)))


def as_bytes(pixels):
    """u8 of u8, of booleans, or of floats 0 … 1, which are kept in that range."""
    pixels = np.asarray(pixels)
    if pixels.dtype == np.uint8:
        return np.ascontiguousarray(pixels)
    if pixels.dtype.kind not in "fb":
        raise DtypeError("pixels are uint8, or floats from 0 to 1.", given=str(pixels.dtype))
    return np.rint(255 * np.clip(np.nan_to_num(pixels), 0, 1)).astype(np.uint8)


def tiles(images, columns=None, scale=1, space=1):
    """A batch of images in one sheet, row by row: [n,h,w] → u8[H,W], [n,h,w,3] → u8[H,W,3].

    columns: about as many as rows by default.  scale: pixels of the sheet per pixel, each way.
    space: white pixels between images.  Raises ShapeError for what is no batch of images.

    >>> tiles(np.zeros((4, 2, 2)), scale=3, space=1).shape
    (15, 15)
    """
    images = as_bytes(images)
    if images.ndim not in (3, 4) or images.size == 0:
        raise ShapeError("tiles takes a batch of images.", given=f"shape {images.shape}",
                         expected="[n,height,width] or [n,height,width,3]")
    images = images.repeat(scale, axis=1).repeat(scale, axis=2)
    n, height, width = images.shape[:3]
    columns = columns or math.ceil(math.sqrt(n))
    rows = -(-n // columns)
    sheet = np.full((rows * (height + space) + space, columns * (width + space) + space,
                     *images.shape[3:]), 255, np.uint8)
    for k, image in enumerate(images):
        top, left = (k // columns * (height + space) + space, k % columns * (width + space) + space)
        sheet[top:top + height, left:left + width] = image
    return sheet


def signed(values):
    """Numbers as colours: blue is negative, white zero, red positive; f[*s] → u8[*s,3].

    The largest magnitude has the full colour.

    >>> signed(np.array([-2.0, 0.0, 1.0])).tolist()
    [[0, 0, 255], [255, 255, 255], [255, 128, 128]]
    """
    values = np.asarray(values, np.float64)
    part = values / max(np.abs(values).max(initial=0), 1e-300)
    return as_bytes(np.stack([1 + np.minimum(part, 0), 1 - np.abs(part),
                              1 - np.maximum(part, 0)], axis=-1))


# ---------------------------------------------------------------------------- plots

@bound_methods
class Plot:
    """Lines, points, bands and images over two axes, as an SVG file.  Notebooks show it.

    Each method adds a layer and gives the plot, so that calls can be chained.  Numbers that are
    not finite are left out; colours are taken in turn unless given.

    >>> import pathlib, tempfile
    >>> x = np.linspace(0, 1, 5)
    >>> plot = Plot("a square", x="x", y="x²").line(x, x ** 2, "true").points(x, x ** 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot.save(pathlib.Path(folder, "square.svg"))
    """

    def __init__(self, title="", *, x="", y="", size=(480, 320)):
        self.title, self.names, self.size = title, (x, y), size
        self.layers, self.legend = [], []        # (x, y, place → SVG); (label, colour)
        self.taken = 0                           # colours that were taken in turn

    def line(self, x, y, label=None, *, colour=None, width=1.8):
        """A line through the points (x, y): f[n], f[n]."""
        colour = self.coloured(colour, label)
        return self.add(x, y, lambda at: f'<polyline points="{" ".join(at)}" fill="none" '
                                         f'stroke="{colour}" stroke-width="{width}"/>')

    def points(self, x, y, label=None, *, colour=None, radius=2.5):
        """A dot at each (x, y): f[n], f[n]."""
        colour = self.coloured(colour, label)
        return self.add(x, y, lambda at: "".join(
            f'<circle cx="{p.split(",")[0]}" cy="{p.split(",")[1]}" r="{radius}" fill="{colour}"/>'
            for p in at))

    def band(self, x, low, high, label=None, *, colour=None):
        """The area between two lines: f[n], f[n], f[n]."""
        colour = self.coloured(colour, label)
        x, low, high = (np.asarray(v, np.float64) for v in (x, low, high))
        return self.add(np.concatenate([x, x[::-1]]), np.concatenate([low, high[::-1]]),
                        lambda at: f'<polygon points="{" ".join(at)}" fill="{colour}" '
                                   'fill-opacity="0.25"/>')

    def image(self, pixels, left, right, bottom, top):
        """An image behind what is drawn later, over [left, right] × [bottom, top]; row 0 on top."""
        data = base64.b64encode(png(pixels)).decode()

        def drawn(at):
            (x, y), (x2, y2) = (map(float, p.split(",")) for p in at)
            return (f'<image x="{x}" y="{y}" width="{x2 - x:.1f}" height="{y2 - y:.1f}" '
                    f'preserveAspectRatio="none" href="data:image/png;base64,{data}"/>')
        return self.add([left, right], [top, bottom], drawn)

    def coloured(self, colour, label):
        """The colour given, or the next in turn; labels go into the legend."""
        if colour is None:
            colour, self.taken = COLOURS[self.taken % len(COLOURS)], self.taken + 1
        if label is not None:
            self.legend.append((label, colour))
        return colour

    def add(self, x, y, drawn):
        """One more layer.  Raises ShapeError unless x and y are f[n]."""
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        if x.ndim != 1 or x.shape != y.shape:
            raise ShapeError("a plot takes as many x as y, along one axis.",
                             given=f"x of shape {x.shape}, y of shape {y.shape}",
                             expected="f[n], f[n]")
        finite = np.isfinite(x) & np.isfinite(y)
        self.layers.append((x[finite], y[finite], drawn))
        return self

    def limits(self, k):
        """(lowest, highest) of axis k, 0 for x and 1 for y, with a little room."""
        values = np.concatenate([np.zeros(0), *[layer[k] for layer in self.layers]])
        low, high = (values.min(), values.max()) if values.size else (0.0, 1.0)
        room = 0.04 * (high - low) or 0.5
        return low - room, high + room

    def svg(self):
        """The text of the SVG file."""
        (width, height), (left, top, right, bottom) = self.size, (56, 30, 14, 42)
        (x0, x1), (y0, y1) = self.limits(0), self.limits(1)
        across = lambda x: left + (width - left - right) * (x - x0) / (x1 - x0)
        down = lambda y: top + (height - top - bottom) * (y1 - y) / (y1 - y0)
        out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
               f'width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
               '<rect width="100%" height="100%" fill="white"/>',
               f'<text x="{left}" y="18" font-weight="bold">{escape(self.title)}</text>']
        for x, y, drawn in self.layers:
            out.append(drawn([f"{across(a):.1f},{down(b):.1f}" for a, b in zip(x, y)]))
        out.append(f'<path d="M{left},{top} V{height - bottom} H{width - right}" fill="none" '
                   'stroke="#555"/>')
        for v in ticks(x0, x1):
            out.append(f'<text x="{across(v):.1f}" y="{height - bottom + 14}" '
                       f'text-anchor="middle">{v:g}</text>')
        for v in ticks(y0, y1):
            out.append(f'<text x="{left - 6}" y="{down(v) + 4:.1f}" text-anchor="end">{v:g}</text>')
        middle = (left + width - right) / 2, (top + height - bottom) / 2
        turned = f'transform="translate(14,{middle[1]}) rotate(-90)"'
        out.append(f'<text x="{middle[0]}" y="{height - 10}" text-anchor="middle">'
                   f'{escape(self.names[0])}</text>'
                   f'<text text-anchor="middle" {turned}>{escape(self.names[1])}</text>')
        for k, (label, colour) in enumerate(self.legend):
            out.append(f'<text x="{width - right}" y="{top + 12 + 14 * k}" text-anchor="end" '
                       f'fill="{colour}">{escape(label)}</text>')
        return "\n".join([*out, "</svg>", ""])

    _repr_svg_ = svg

    def save(self, path):
        """Writes the SVG file, whole or not at all.  Raises ArgumentError for another suffix."""
        check_suffix(path, ".svg")
        write_whole(path, [self.svg().encode()])


def ticks(low, high):
    """The round numbers from `low` to `high`.

    >>> ticks(-0.1, 1.1)
    [0.0, 0.5, 1.0]
    """
    return [v for v in round_numbers(low, high) if low <= v <= high]


def round_numbers(low, high):
    """Three to seven round numbers, evenly spaced, from at most `low` to at least `high`.

    >>> round_numbers(0.13, 0.87)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-300):
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    raw = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(s * unit for s in (1, 2, 5, 10) if s * unit >= raw * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(k * step, 12) if unit > 1e-6 else k * step for k in range(first, last + 1)]


bound(globals())
