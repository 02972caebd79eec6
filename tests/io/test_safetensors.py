"""Saving and loading of pytrees: round trips, whole-or-nothing writing, and damaged files."""

import collections
import json
import os

import numpy as np
import pytest

import fgrad.io
from fgrad import tree
from fgrad.errors import ArgumentError, DataError, MissingFileError
from fgrad.types import ArrayType, default_dtype

DTYPES = ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
Point = collections.namedtuple("Point", "x y")


@tree.pytree
class Layer:
    w: object
    name: str = tree.static(default="dense")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "params.safetensors"


def write(path, header, data=b""):
    """A file with this header, an object or raw bytes."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + data)
    return path


def row(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def failure(path, **options):
    with pytest.raises(DataError) as caught:
        fgrad.io.load(path, **options)
    return str(caught.value)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)


# ---------------------------------------------------------------------------- round trips

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (2, 3)])
def test_every_dtype_and_shape_comes_back(path, dtype, shape):
    a = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    fgrad.io.save(path, {"a": a})
    out = fgrad.io.load(path)["a"]
    assert same(out, a) and out.flags.writeable and out.flags.aligned


def test_special_values_keep_their_bits(path):
    a = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
    fgrad.io.save(path, {"a": a})
    assert fgrad.io.load(path)["a"].tobytes() == a.tobytes()


@pytest.mark.parametrize("a", [np.arange(12.0).reshape(3, 4).T, np.arange(9)[::-2],
                               np.arange(5.0).astype(">f8")])
def test_strides_and_byte_order_are_not_kept(path, a):
    fgrad.io.save(path, {"a": a})
    out = fgrad.io.load(path)["a"]
    assert out.dtype.isnative and out.flags.c_contiguous and np.array_equal(out, a)


def params():
    return {"layers": [Layer(np.ones((2, 3), np.float32)), Layer(np.zeros(1, np.float16), "last")],
            "point": Point(np.arange(3), (np.bool_(True), None)), "empty": {},
            "steps": 7, "rate": 0.5, "on": True}


def test_a_tree_comes_back_as_it_was_built(path):
    fgrad.io.save(path, params())
    out = fgrad.io.load(path, like=params())
    assert tree.structure(out) == tree.structure(params())
    pairs = zip(tree.leaves(out), tree.leaves(params()))
    assert all(same(np.asarray(a), np.asarray(b)) for a, b in pairs)
    assert [type(out[k]) for k in ("steps", "rate", "on")] == [int, float, bool]


def test_without_like_names_become_nested_dicts(path):
    fgrad.io.save(path, params())
    out = fgrad.io.load(path)
    assert sorted(out) == ["layers", "on", "point", "rate", "steps"]
    assert same(out["layers"]["0"]["w"], np.ones((2, 3), np.float32))
    assert out["point"]["y"]["0"] == np.True_
    assert out["steps"].dtype == np.int32 and out["rate"].dtype == np.float32


def test_like_may_hold_types_in_place_of_arrays(path):
    fgrad.io.save(path, [np.ones((2, 3), np.float32)])
    out, = fgrad.io.load(path, like=[ArrayType(np.dtype("f4"), (2, 3))])
    assert same(out, np.ones((2, 3), np.float32))


def test_python_numbers_follow_the_default_dtype(path):
    with default_dtype("float64"):
        fgrad.io.save(path, {"rate": 0.1, "steps": 2**40})
    out = fgrad.io.load(path)
    assert (out["rate"].dtype, float(out["rate"]), int(out["steps"])) == (np.float64, 0.1, 2**40)


def test_a_single_array_is_a_tree(path):
    fgrad.io.save(path, np.arange(3))
    assert same(fgrad.io.load(path), np.arange(3))
    assert same(fgrad.io.load(path, like=np.empty(3, int)), np.arange(3))


def test_an_empty_tree_makes_an_empty_file(path):
    fgrad.io.save(path, {})
    assert fgrad.io.load(path) == {} and fgrad.io.load(path, like=[None]) == [None]


def test_keys_with_a_slash_or_other_scripts_come_back_with_like(path):
    like = {"a/b": np.ones(1), "ü\n\"": np.zeros(2)}
    fgrad.io.save(path, like)
    assert list(fgrad.io.load(path, like=like)) == ["a/b", "ü\n\""]
    assert fgrad.io.load(path)["a"]["b"] == 1


def test_the_file_is_as_the_format_says(path):
    fgrad.io.save(path, {"b": np.ones(3, "u1"), "a": np.ones(2, "f8"), "c": np.ones(1, "f4")})
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    assert length % 8 == 0 and len(data) == 8 + length + 16 + 4 + 3
    assert header == {"a": row("F64", (2,), (0, 16)), "c": row("F32", (1,), (16, 20)),
                      "b": row("U8", (3,), (20, 23))}


def test_metadata_of_other_writers_is_passed_over(path):
    write(path, {"__metadata__": {"format": "pt"}, "a": row()}, bytes(8))
    assert same(fgrad.io.load(path)["a"], np.zeros(2, np.float32))


# ---------------------------------------------------------------------------- what cannot be saved

@pytest.mark.parametrize("leaf", ["text", object(), np.array(["a"]), np.array([None])])
def test_a_leaf_that_is_no_array_is_named(path, leaf):
    with pytest.raises(ArgumentError, match=r"tree\['dense'\]\[1\] cannot be saved"):
        fgrad.io.save(path, {"dense": [1, leaf]})
    assert not path.exists()


def test_a_set_is_no_container_and_is_named(path):
    with pytest.raises(ArgumentError, match=r"tree\['s'\] cannot be saved"):
        fgrad.io.save(path, {"s": {1, 2}})


def test_a_python_number_out_of_range_is_named(path):
    with pytest.raises(ArgumentError, match=r"tree\['n'\] is too large for int32"):
        fgrad.io.save(path, {"n": 2**40})


@pytest.mark.parametrize("both", [{0: 1, "0": 2}, {"a/b": 1, "a": {"b": 2}}, {"__metadata__": 1}])
def test_two_leaves_with_one_name_are_refused(path, both):
    with pytest.raises(ArgumentError, match="cannot be given to"):
        fgrad.io.save(path, both)


def test_keys_that_have_no_name_are_refused(path):
    with pytest.raises(ArgumentError, match="a key of type tuple"):
        fgrad.io.save(path, {(1, 2): 1})


# ---------------------------------------------------------------------------- whole or not at all

def test_saving_replaces_the_file_and_leaves_nothing_else(path):
    for k in range(3):
        fgrad.io.save(path, {"a": np.full(k, k)})
    assert fgrad.io.load(path)["a"].tolist() == [2, 2]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_while_saving_leaves_what_was_there(path, monkeypatch, step, error):
    def fail(*args):
        raise error
    fgrad.io.save(path, {"a": np.arange(3)})
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(type(error)):
            fgrad.io.save(path, {"a": np.zeros(1000)})
    assert fgrad.io.load(path)["a"].tolist() == [0, 1, 2]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_saving_through_a_link_replaces_what_it_points_to(path):
    fgrad.io.save(path, {"a": 1})
    link = path.with_name("link")
    link.symlink_to(path)
    fgrad.io.save(link, {"a": 2})
    assert link.is_symlink() and fgrad.io.load(path)["a"] == 2


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(MissingFileError, match="the folder .*nowhere does not exist"):
        fgrad.io.save(tmp_path / "nowhere" / "x", {"a": 1})


def test_a_missing_file_is_also_a_file_not_found_error(path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        fgrad.io.load(path)


# --------------------------------------------------------------------------- like that does not fit

def test_leaves_that_do_not_fit_are_all_named(path):
    fgrad.io.save(path, {"w": np.zeros((2, 3)), "b": np.zeros(3), "old": np.zeros(1), "n": 1})
    like = {"w": np.zeros((3, 2)), "b": np.zeros(3, "f4"), "new": [0.5], "n": 1}
    message = failure(path, like=like)
    assert "does not fit `like`: leaves: 1 missing, 1 extra, 2 different.\n" in message
    for words in ("missing   new/0: f32[]", "extra     old: f64[1]",
                  "different w: f64[2,3], like has f64[3,2]",
                  "different b: f64[3], like has f32[3]"):
        assert words in message


def test_many_leaves_that_do_not_fit_are_cut_short(path):
    fgrad.io.save(path, {})
    message = failure(path, like=list(range(30)))
    assert "leaves: 30 missing" in message and "… and 10 more" in message


def test_a_name_in_the_place_of_another_asks_for_like(path):
    for names in (("a", "a/b"), ("a/b", "a")):
        write(path, {n: row("U8", (1,), (k, k + 1)) for k, n in enumerate(names)}, b"\1\2")
        assert "in the place of another" in failure(path)
        assert len(fgrad.io.load(path, like={n: np.zeros(1, np.uint8) for n in names})) == 2


# ---------------------------------------------------------------------------- damaged files

@pytest.mark.parametrize("data", [b"", b"\0" * 7])
def test_a_file_without_room_for_a_length_is_cut_off(path, data):
    path.write_bytes(data)
    assert "it is cut off" in failure(path)


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n" * 4, (100).to_bytes(8, "little") + b"{}",
                                  b"\xff" * 20])
def test_a_header_longer_than_the_file_takes_no_memory(path, data):
    path.write_bytes(data)
    assert "the header is longer than the file" in failure(path)


@pytest.mark.parametrize("header", [b"", b"{", b"\xff\xfe{}", b"[" * 100000,
                                    b'{"a": 1' + b"0" * 5000 + b"}", b'{"a": {}, "a": {}}'])
def test_a_header_that_is_not_json_is_refused(path, header):
    assert "the header is not JSON" in failure(write(path, header))


def test_a_header_that_is_no_object_is_refused(path):
    assert "not a JSON object" in failure(write(path, [1, 2]))


@pytest.mark.parametrize("entry", [1, None, [], {"dtype": "F32", "shape": [2]},
                                   {**row(), "more": 1}])
def test_a_row_that_lacks_a_part_is_refused(path, entry):
    assert "the row of 'a' lacks a part" in failure(write(path, {"a": entry}, bytes(8)))


@pytest.mark.parametrize("dtype", ["BF8", "F8_E4M3", "f32", "", 4, None, ["F32"]])
def test_an_unknown_dtype_lists_the_known_ones(path, dtype):
    message = failure(write(path, {"a": row(dtype)}, bytes(8)))
    assert f"a: {dtype!r}" in message and "BOOL" in message and "F64" in message


@pytest.mark.parametrize("shape", [[-2], [2.0], [True, 2], ["2"], [2**63], [None]])
def test_sizes_that_are_none_are_refused(path, shape):
    assert "sizes that are none" in failure(write(path, {"a": row(shape=shape)}, bytes(8)))


@pytest.mark.parametrize("offsets", [[-8, 0], [0.0, 8], ["0", "8"]])
def test_places_that_are_none_are_refused(path, offsets):
    assert "sizes that are none" in failure(write(path, {"a": row(offsets=offsets)}, bytes(8)))


@pytest.mark.parametrize("shape", [[0, 2**40, 2**40], [1] * 33])
def test_a_shape_that_no_array_has_is_refused(path, shape):
    assert "a shape that no array has" in failure(write(path, {"a": row(shape=shape)}, bytes(8)))


@pytest.mark.parametrize("offsets", [[0, 4], [0, 12], [8, 0], [0], [0, 4, 8], []])
def test_a_place_that_does_not_fit_the_shape_is_refused(path, offsets):
    assert "does not fit its shape" in failure(write(path, {"a": row(offsets=offsets)}, bytes(8)))


@pytest.mark.parametrize("second, words", [((4, 12), "overlaps"), ((0, 8), "overlaps"),
                                           ((12, 20), "leaves a gap"),
                                           ((2**40, 2**40 + 8), "leaves a gap")])
def test_leaves_lie_one_behind_the_other(path, second, words):
    write(path, {"a": row(), "b": row(offsets=second)}, bytes(24))
    assert words in failure(path)


def test_elements_that_are_cut_off_are_counted(path):
    message = failure(write(path, {"a": row(shape=(2**28,), offsets=(0, 2**30))}, bytes(7)))
    assert "it is cut off" in message and "7 bytes of elements" in message


def test_bytes_behind_the_last_leaf_are_an_error(path):
    assert "goes on behind its last leaf" in failure(write(path, {"a": row()}, bytes(9)))


def test_bools_are_zero_or_one(path):
    write(path, {"a": row("BOOL", (2,), (0, 2))}, b"\1\2")
    assert "bools other than 0 and 1" in failure(path)


def test_every_shorter_file_is_refused(path):
    fgrad.io.save(path, {"a": np.arange(3), "b": [np.ones(2, np.float32)]})
    data = path.read_bytes()
    for n in range(len(data)):
        path.write_bytes(data[:n])
        failure(path)


def test_complex_arrays_are_saved_and_python_ones_are_of_the_default_dtype(path):
    fgrad.io.save(path, {"a": 1j, "b": np.array([1 + 2j]), "c": fgrad.numpy.ones(2, "complex64")})
    back = fgrad.io.load(path)
    assert [back[k].dtype.name for k in "abc"] == ["complex64", "complex128", "complex64"]
    assert same(back["b"], np.array([1 + 2j]))
