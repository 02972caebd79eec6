"""CSV files: types, quotes, missing values, and files that are not as they should be."""

import numpy as np
import pytest

from fgrad.data import tables
from fgrad.errors import ArgumentError, DataError, MissingFileError


@pytest.fixture
def write(tmp_path):
    def to(data):
        path = tmp_path / "t.csv"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path
    return to


def failure(path, **options):
    with pytest.raises(DataError) as caught:
        tables.read_csv(path, **options)
    return str(caught.value)


def rows(message):
    """The message without the user's line."""
    first, *_, last = message.split("\n\n")
    return first + "\n" + last


def test_columns_get_the_narrowest_type(write):
    out = tables.read_csv(write("a,b,c,d\n1,1.5,x,\n-2,nan,3,7\n"))
    assert [(c.dtype.kind, c.tolist()) for c in out.values()][0] == ("i", [1, -2])
    assert out["b"].dtype == np.float64 and np.isnan(out["b"][1])
    assert out["c"].tolist() == ["x", "3"]
    assert out["d"].dtype == np.float64 and np.isnan(out["d"][0]) and out["d"][1] == 7


@pytest.mark.parametrize("delimiter", list(",;\t|"))
def test_the_delimiter_is_seen_in_the_first_line(write, delimiter):
    out = tables.read_csv(write(delimiter.join("ab") + "\n" + delimiter.join("12") + "\n"))
    assert {k: v.tolist() for k, v in out.items()} == {"a": [1], "b": [2]}


def test_quoted_fields_hold_delimiters_quotes_and_line_ends(write):
    out = tables.read_csv(write('"the, name",n\r\n"say ""hi""",1\r\n"two\r\nlines",2\r\n'))
    assert out["the, name"].tolist() == ['say "hi"', "two\r\nlines"] and out["n"].tolist() == [1, 2]


def test_without_a_header_columns_are_numbered(write):
    assert {k: v.tolist() for k, v in tables.read_csv(write("1,a\n2,b"), header=False).items()} == {
        "0": [1, 2], "1": ["a", "b"]}


def test_a_byte_order_mark_and_blank_lines_are_passed_over(write):
    out = tables.read_csv(write(b"\xef\xbb\xbfa,b\n\n1,2\n\n\n"))
    assert list(out) == ["a", "b"] and out["a"].tolist() == [1]


def test_a_header_alone_is_a_table_without_rows(write):
    out = tables.read_csv(write("a,b\n"))
    assert {k: v.shape for k, v in out.items()} == {"a": (0,), "b": (0,)}


def test_types_may_be_given(write):
    out = tables.read_csv(write("zip,n\n00501,1\n90210,2\n"), types={"zip": "text", "n": "float"})
    assert out["zip"].tolist() == ["00501", "90210"] and out["n"].dtype == np.float64


def test_other_words_may_stand_for_missing(write):
    assert np.isnan(tables.read_csv(write("a\n1\n-\n"), missing=("-",))["a"][1])


def test_what_is_no_number_here_stays_text(write):
    out = tables.read_csv(write("a,b\n1_000,99999999999999999999\n2,1\n"))
    assert out["a"].dtype.kind == "U" and out["b"].dtype == np.float64


def test_a_column_with_nothing_in_it_is_text(write):
    assert tables.read_csv(write("a,b\n,1\nNA,2\n"))["a"].tolist() == ["", ""]


def test_a_matrix_of_all_columns_of_numbers():
    columns = {"a": np.array([1, 2]), "s": np.array(["x", "y"]), "b": np.array([0.5, 1.5])}
    assert tables.matrix(columns).tolist() == [[1, 0.5], [2, 1.5]]
    assert tables.matrix(columns, ["b"]).tolist() == [[0.5], [1.5]]
    wrong = {"'s' holds text": ["s"], "'z' is not there": ["z"], "no column of numbers": []}
    for words, names in wrong.items():
        with pytest.raises(ArgumentError, match=words):
            tables.matrix(columns, names)


# ---------------------------------------------------------------------------- damaged files

def test_a_row_that_is_cut_off_is_named_by_its_line(write):
    path = write('a,b\n"x\ny",2\n3')
    assert rows(failure(path)) == (
        f"{path}, line 4: 1 fields where 2 are expected.\n"
        "  given      ['3']\n"
        "  expected   a, b\n"
        "  fix        delimiter=… where another one was meant\n"
        "             or mend the line")


def test_an_open_quote_is_named_by_its_line(write):
    path = write('a,b\n1,2\n3,"four\n5,6\n')
    assert rows(failure(path)) == (
        f"{path}, line 3: unexpected end of data.\n"
        "  given      delimiter ','\n"
        "  fix        close the quote that begins there\n"
        "             or fetch the file again: it may be cut off")


def test_an_empty_file_and_a_blank_one(write):
    path = write("")
    assert rows(failure(path)) == (f"{path} is empty.\n  expected   text\n"
                                   "  fix        fetch the file again")
    path = write("\n\n")
    assert rows(failure(path)) == f"{path} holds blank lines only.\n  expected   rows of fields"


@pytest.mark.parametrize("data, words", [
    (b"\x1f\x8b\x08\0abcd", "gzip data"), (b"PK\x03\x04\xff", "a zip archive"),
    (b"a,b\n\xe9,1\n", "byte 4 is e9"), (b"a,b\n1\0,2\n", "a zero byte")])
def test_what_is_no_text_is_told_by_its_looks(write, data, words):
    message = failure(write(data))
    assert " text." in message and words in message


def test_an_oversized_field_is_refused(write):
    assert "line 1: field larger than field limit" in failure(write("a" * 200_000 + ",b\n1,2\n"))


def test_one_name_twice_is_refused(write):
    path = write("a,a\n1,2\n")
    assert rows(failure(path)) == (
        f"{path} has more than one column 'a'.\n  given      a, a\n"
        "  fix        header=False where the first line holds data")


def test_a_field_of_another_type_than_asked_for(write):
    path = write("n\n1\nx\n\n")
    assert rows(failure(path, types={"n": "int"})) == (
        f"{path}, line 3: the field of 'n' is not of type 'int'.\n"
        "  given      'x'\n  fix        types={…: 'float'} allows missing values, 'text' anything")
    assert "the field of 'n' is missing" in failure(write("n,m\n1,1\n,2\n"), types={"n": "int"})


def test_types_of_columns_that_are_not_there_are_refused(write):
    with pytest.raises(ArgumentError, match="types has 'z': 'int'"):
        tables.read_csv(write("a\n1\n"), types={"z": "int"})


def test_a_missing_file_and_a_bad_delimiter(write, tmp_path):
    with pytest.raises(MissingFileError, match="does not exist"):
        tables.read_csv(tmp_path / "none.csv")
    with pytest.raises(ArgumentError, match="one character"):
        tables.read_csv(write("a\n1\n"), delimiter="::")
