"""Tokenisers and windows: round trips, training by hand, and damaged files."""

import json
import random

import numpy as np
import pytest

from fgrad.data import text
from fgrad.errors import ArgumentError, DataError, MissingFileError, RangeError, ShapeError

CORPUS = "the cat sat on the mat;\n the cats sat there, then the hat.\n" * 3
STRANGE = ["", " ", "a", "\n\n  x", "naïve Straße 東京 🙂", "tabs\tand\r\nmore   ", "\0\x7f", "_a_1"]


@pytest.mark.parametrize("make", [
    text.CharTokenizer.train, lambda t: text.BytePairTokenizer.train(t, 300)])
def test_text_comes_back_unchanged(make):
    for content in [CORPUS, *STRANGE[1:]]:
        tokens = make(content)
        out = tokens.encode(content)
        assert out.dtype == np.int32 and out.ndim == 1 and out.max() < len(tokens)
        assert tokens.decode(out) == content


@pytest.mark.parametrize("content", STRANGE)
def test_byte_pairs_encode_what_they_were_not_trained_on(content):
    tokens = text.BytePairTokenizer.train(CORPUS, 280)
    assert tokens.decode(tokens.encode(content)) == content


def trained_slowly(corpus, n):
    """The definition: count all pairs within words anew for each merge."""
    words = [list(w.encode()) for w in text.WORDS.findall(corpus)]
    merges = []
    for k in range(n):
        counts = {}
        for word in words:
            for pair in zip(word, word[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        best = max(counts, key=lambda p: (counts[p], -p[0], -p[1]), default=None)
        if best is None or counts[best] < 2:
            break
        merges.append(best)
        words = [text.merged(w, best, 256 + k) for w in words]
    return merges


@pytest.mark.parametrize("seed", range(5))
def test_training_chooses_the_most_frequent_pair_each_time(seed):
    rng = random.Random(seed)
    corpus = "".join(rng.choice("aab bc\n,") for _ in range(400))
    tokens = text.BytePairTokenizer.train(corpus, 256 + 40)
    assert tokens.merges == trained_slowly(corpus, 40)
    assert tokens.decode(tokens.encode(corpus)) == corpus


def test_training_stops_when_no_pair_comes_twice():
    assert len(text.BytePairTokenizer.train("abc", 300)) == 256
    assert len(text.BytePairTokenizer.train("", 300)) == 256


def test_more_tokens_make_shorter_texts():
    lengths = [len(text.BytePairTokenizer.train(CORPUS, n).encode(CORPUS)) for n in (256, 266, 290)]
    assert lengths[0] == len(CORPUS) > lengths[1] > lengths[2]


@pytest.mark.parametrize("tokens", [
    text.CharTokenizer.train(CORPUS + "é"), text.BytePairTokenizer.train(CORPUS, 290)])
def test_a_saved_tokeniser_is_the_same(tmp_path, tokens):
    tokens.save(tmp_path / "t.json")
    again = type(tokens).load(tmp_path / "t.json")
    assert len(again) == len(tokens) and np.array_equal(again.encode(CORPUS), tokens.encode(CORPUS))


def test_a_character_that_is_unknown_is_named():
    with pytest.raises(ArgumentError, match="the alphabet has no 'z'"):
        text.CharTokenizer("abc").encode("az")


@pytest.mark.parametrize("tokens", [text.CharTokenizer("abc"), text.BytePairTokenizer([])])
def test_numbers_outside_of_the_vocabulary_are_refused(tokens):
    for bad in ([len(tokens)], [-1]):
        with pytest.raises(RangeError, match=f"0 … {len(tokens) - 1}"):
            tokens.decode(bad)
    with pytest.raises(ShapeError):
        tokens.decode([[0]])
    assert tokens.decode([]) == ""


@pytest.mark.parametrize("merges", [[(0, 256)], [(-1, 0)], [(1,)], [(1, 2), (1, 2)], [(1.0, 2)]])
def test_merges_that_are_none_are_refused(merges):
    with pytest.raises(ArgumentError):
        text.BytePairTokenizer(merges)


def test_a_vocabulary_without_all_bytes_is_refused():
    with pytest.raises(RangeError, match="all 256 bytes"):
        text.BytePairTokenizer.train("a", 100)


# ---------------------------------------------------------------------------- files

def failure(cls, path):
    with pytest.raises(DataError) as caught:
        cls.load(path)
    first, *_, last = str(caught.value).split("\n\n")
    return first + "\n" + last


@pytest.mark.parametrize("cls, content, words", [
    (text.CharTokenizer, "{", "it is not JSON"),
    (text.CharTokenizer, "[" * 100_000, "it is not JSON"),
    (text.CharTokenizer, "[]", "it is of another format"),
    (text.CharTokenizer, '{"format": "fgrad characters"}', "the field 'alphabet' is missing"),
    (text.CharTokenizer, '{"format": "fgrad characters", "alphabet": "aa"}', "each once"),
    (text.BytePairTokenizer, '{"format": "fgrad byte pairs", "merges": 3}', "of another kind"),
    (text.BytePairTokenizer, '{"format": "fgrad byte pairs", "merges": [3]}', "a merge is no pair"),
    (text.BytePairTokenizer, '{"format": "fgrad byte pairs", "merges": [[3, 999]]}',
     "merge 0 is no pair"),
])
def test_a_damaged_tokeniser_is_refused(tmp_path, cls, content, words):
    path = tmp_path / "t.json"
    path.write_text(content)
    message = failure(cls, path)
    assert message.startswith(f"{path} holds no tokeniser that can be read: ") and words in message
    assert message.endswith("  fix        save the tokeniser again")


def test_a_tokeniser_of_the_other_kind_is_named(tmp_path):
    path = tmp_path / "t.json"
    text.BytePairTokenizer([]).save(path)
    assert failure(text.CharTokenizer, path) == (
        f"{path} holds no tokeniser that can be read: it is of another format.\n"
        "  given      fgrad byte pairs\n"
        '  expected   "format": "fgrad characters"\n'
        "  fix        save the tokeniser again")


@pytest.mark.parametrize("tokens", [text.CharTokenizer("abc"), text.BytePairTokenizer([(97, 98)])])
def test_every_shorter_file_is_refused(tmp_path, tokens):
    path = tmp_path / "t.json"
    tokens.save(path)
    data = path.read_bytes()
    for n in range(len(data)):
        path.write_bytes(data[:n])
        with pytest.raises(DataError):
            type(tokens).load(path)


def test_a_json_file_holds_plain_lists(tmp_path):
    text.BytePairTokenizer([(97, 98)]).save(tmp_path / "t.json")
    found = json.loads((tmp_path / "t.json").read_text())
    assert found == {"format": "fgrad byte pairs", "merges": [[97, 98]]}


def test_reading_a_text(tmp_path):
    path = tmp_path / "t.txt"
    with pytest.raises(MissingFileError):
        text.read(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="is empty"):
        text.read(path)
    path.write_bytes(b"abc\xff\xfe")
    with pytest.raises(DataError, match="is not UTF-8 text"):
        text.read(path)
    path.write_bytes("ä\rb\r\nc\n".encode("utf-8-sig"))
    assert text.read(path) == "ä\nb\nc\n"


# ---------------------------------------------------------------------------- windows

@pytest.mark.parametrize("n, length, stride", [
    (10, 3, None), (10, 9, None), (11, 3, 1), (2, 1, 1), (20, 4, 7)])
def test_targets_are_the_inputs_one_token_on(n, length, stride):
    x, y = text.windows(np.arange(n), length, stride)
    assert x.shape == y.shape and x.shape[1] == length and np.array_equal(x + 1, y)
    assert x[:, 0].tolist() == list(range(0, n - length, stride or length))


@pytest.mark.parametrize("n, length, stride", [(3, 3, None), (0, 1, None), (9, 0, None), (9, 2, 0)])
def test_a_corpus_without_a_window_is_refused(n, length, stride):
    with pytest.raises(RangeError):
        text.windows(np.arange(n), length, stride)


def test_a_corpus_is_one_row():
    with pytest.raises(ShapeError, match="one row of tokens"):
        text.windows(np.zeros((2, 2)), 1)
