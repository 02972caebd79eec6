"""Tables in CSV files, as dicts of columns and as matrices.

Fields are split by the standard library's csv, so quoted ones may hold delimiters and line ends.
A column of whole numbers becomes i64, one of numbers f64, any other one an array of str.
"""

from __future__ import annotations

import csv
import io

import numpy as np

from ..errors import ArgumentError, DataError, bound
from ..io.files import open_file
from .idx import look

MISSING = ("", "NA", "N/A", "nan", "NaN", "null", "?")
DELIMITERS = ",;\t|"
CONVERTERS = {"int": np.int64, "float": np.float64, "text": str}


def read_csv(path, *, header=True, delimiter=None, missing=MISSING, types=None):
    """The columns of a CSV file by name: i64[n], f64[n] or str arrays.

    header: the first line holds the names; without it they are "0", "1", ….
    delimiter: one character; None takes that of , ; tab | which the first line has most of.
    missing: fields that stand for no value: NaN among numbers, which are f64 then, "" in text.
    types: {"column": "int", "float" or "text"} for columns whose kind shall not be guessed.
    Raises MissingFileError; DataError, naming the line, for a file that is empty, no text, has rows
    of unequal length, an open quote, one name twice, or a field that is not of the type asked for.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rooms.csv")
    ...     _ = path.write_text('name,rooms\\n"Oak, 3",4\\nElm 1,\\n')
    ...     read_csv(path)
    {'name': array(['Oak, 3', 'Elm 1'], dtype='<U6'), 'rooms': array([ 4., nan])}
    """
    content = read_text(path)
    rows = split_rows(path, content, delimiter)
    if header:
        (_, names), *rows = rows
        names = [name.strip() for name in names]
    else:
        names = [str(k) for k in range(len(rows[0][1]))]
    check_names(path, names, types or {})
    check_widths(path, names, rows)
    fields = zip(*[row for _, row in rows]) if rows else [()] * len(names)
    lines = [line for line, _ in rows]
    missing = frozenset(missing)
    return {name: column(path, name, values, lines, missing, (types or {}).get(name))
            for name, values in zip(names, fields)}


def matrix(columns, names=None):
    """f64[n,k]: the columns of these names side by side; all columns of numbers without `names`.

    Raises ArgumentError for a name that is not there, or a column of text.

    >>> matrix({"a": np.array([1, 2]), "kind": np.array(["x", "y"]), "b": np.array([0.5, np.nan])})
    array([[1. , 0.5],
           [2. , nan]])
    """
    if names is None:
        names = [name for name, c in columns.items() if c.dtype.kind in "if"]
    for name in names:
        if name not in columns or columns[name].dtype.kind not in "if":
            how = "is not there" if name not in columns else "holds text"
            raise ArgumentError(f"the column {name!r} {how}.", given=", ".join(columns),
                                fix="np.unique(column, return_inverse=True) numbers its classes")
    if not names:
        raise ArgumentError("there is no column of numbers.", given=", ".join(columns))
    return np.stack([columns[name].astype(np.float64) for name in names], axis=1)


# ---------------------------------------------------------------------------- from bytes to rows

def read_text(path):
    """The text of a UTF-8 file, without its byte order mark; line ends as they are.

    Raises MissingFileError, and DataError for a file that is empty or no UTF-8 text.
    """
    with open_file(path) as file:
        data = file.read()
    if not data:
        raise DataError(f"{path} is empty.", expected="text", fix="fetch the file again")
    try:
        content = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = error.start
        raise DataError(f"{path} is not UTF-8 text.",
                        given=f"{look(data[:64])}; byte {start} is {data[start]:02x}",
                        fix="convert the file to UTF-8, or unpack it first") from None
    if "\0" in content:
        raise DataError(f"{path} is not text.", given=f"a zero byte; {look(data[:64])}",
                        fix="give a text file in UTF-8")
    return content


def split_rows(path, content, delimiter):
    """[(line number, fields)] of all lines that are not blank; at least one."""
    first = content.split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=first.count) if delimiter is None else delimiter
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise ArgumentError("a delimiter is one character.", given=repr(delimiter))
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True,
                        skipinitialspace=True)
    rows, line = [], 1
    try:
        for fields in reader:
            if fields:
                rows.append((line, fields))
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {line}: {error}.", given=f"delimiter {delimiter!r}",
                        fix=["close the quote that begins there",
                             "or fetch the file again: it may be cut off"]) from None
    if not rows:
        raise DataError(f"{path} holds blank lines only.", expected="rows of fields")
    return rows


def check_names(path, names, types):
    """Raises unless the names differ, and `types` speaks of them."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{path} has more than one column {twice[0]!r}.",
                        given=", ".join(names)[:300],
                        fix="header=False where the first line holds data")
    for name, kind in types.items():
        if name not in names or kind not in CONVERTERS:
            raise ArgumentError(f"types has {name!r}: {kind!r}.",
                                given=f"columns {', '.join(names)}"[:300],
                                expected="names of columns, each with 'int', 'float' or 'text'")


def check_widths(path, names, rows):
    """Raises DataError for the first row with fewer or more fields than there are names."""
    for line, fields in rows:
        if len(fields) != len(names):
            raise DataError(f"{path}, line {line}: {len(fields)} fields where "
                            f"{len(names)} are expected.",
                            given=str(fields)[:200], expected=", ".join(names)[:200],
                            fix=["delimiter=… where another one was meant", "or mend the line"])


def column(path, name, values, lines, missing, kind):
    """The array of one column, of a kind given or guessed."""
    values = [v.strip() for v in values]
    absent = [v in missing for v in values]
    if kind == "text":
        return np.array(values, str)
    kinds = [kind] if kind else ["int", "float"]
    for guess in kinds:
        found, wrong = numbers(values, absent, guess)
        if found is not None:
            return found
    if kind:
        what = "is missing" if absent[wrong] else f"is not of type {kind!r}"
        raise DataError(f"{path}, line {lines[wrong]}: the field of {name!r} {what}.",
                        given=repr(values[wrong])[:200],
                        fix="types={…: 'float'} allows missing values, 'text' anything")
    return np.array(["" if gone else v for v, gone in zip(values, absent)], str)


def numbers(values, absent, kind):
    """(array, None), or (None, index of the first field that is no number of this kind)."""
    if kind == "int" and (any(absent) or not values):
        return None, absent.index(True) if any(absent) else None
    convert, out = (int if kind == "int" else float), []
    for k, (value, gone) in enumerate(zip(values, absent)):
        try:
            out.append(np.nan if gone else convert(value))
        except ValueError:
            return None, k
        if kind == "int" and not -2**63 <= out[-1] < 2**63 or "_" in value:
            return None, k
    if kind == "float" and absent and all(absent):
        return None, 0
    return np.array(out, CONVERTERS[kind]), None


bound(globals())
