"""Text for language models: characters or byte pairs as numbers, and windows of a corpus.

A tokeniser has encode(text) → i32[n], decode(tokens) → text, save and load (JSON), and len: the
size of its vocabulary.  Relies on `tables.py` for reading text.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter, defaultdict

import numpy as np

from ..errors import ArgumentError, DataError, RangeError, ShapeError, bound, bound_methods
from ..io.files import write_whole
from .tables import read_text

WORDS = re.compile(r" ?\w+|\s+(?!\S)|\s| ?[^\w\s]+")         # a word keeps the blank before it


def read(path):
    """The text of a UTF-8 file, with \\n for line ends.

    Raises MissingFileError, and DataError for a file that is empty or no UTF-8 text.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "poem.txt")
    ...     _ = path.write_bytes(b"one\\r\\ntwo")
    ...     read(path)
    'one\\ntwo'
    """
    return read_text(path).replace("\r\n", "\n").replace("\r", "\n")


@bound_methods
class CharTokenizer:
    """One number per character of an alphabet, in the order of the alphabet.

    >>> tokens = CharTokenizer.train("hello")
    >>> tokens.encode("hole"), tokens.decode([1, 0, 2, 2, 3])
    (array([1, 3, 2, 0], dtype=int32), 'hello')
    """

    def __init__(self, alphabet):
        if len(set(alphabet)) != len(alphabet) or not alphabet:
            raise ArgumentError("an alphabet has characters, each once.",
                                given=repr(alphabet)[:200])
        self.alphabet = "".join(alphabet)
        self.number = {c: k for k, c in enumerate(self.alphabet)}

    @classmethod
    def train(cls, text):
        """The tokeniser for a text's characters, sorted.  Raises ArgumentError for an empty one."""
        return cls("".join(sorted(set(text))))

    def __len__(self):
        return len(self.alphabet)

    def __repr__(self):
        return f"CharTokenizer({len(self)} characters)"

    def encode(self, text):
        """i32[n].  Raises ArgumentError for a character that is not in the alphabet."""
        try:
            return np.array([self.number[c] for c in text], np.int32)
        except KeyError as error:
            raise ArgumentError(
                f"the alphabet has no {error.args[0]!r}.", given=repr(self.alphabet)[:200],
                fix="train on all of the text, or leave such characters out") from None

    def decode(self, tokens):
        """The text of i[n].  Raises RangeError for a number outside of the alphabet."""
        return "".join([self.alphabet[t] for t in checked(tokens, len(self))])

    def save(self, path):
        """Writes the alphabet as JSON, whole or not at all."""
        write_json(path, {"format": "fgrad characters", "alphabet": self.alphabet})

    @classmethod
    def load(cls, path):
        """The tokeniser that `save` wrote.  Raises MissingFileError, DataError."""
        content = read_json(path, "fgrad characters", alphabet=str)
        if not content["alphabet"] or len(set(content["alphabet"])) < len(content["alphabet"]):
            raise damaged(path, "an alphabet has characters, each once")
        return cls(content["alphabet"])


@bound_methods
class BytePairTokenizer:
    """Bytes 0 … 255, and pairs of earlier tokens that were the most frequent, one after the other.

    merges: the pairs; pair k is token 256 + k.  Any text can be encoded, and comes back unchanged.
    Source: Sennrich, Haddow and Birch 2016; over bytes as in GPT-2; pairs stay within words.

    >>> tokens = BytePairTokenizer.train("low low lower lowest", 259)
    >>> tokens.encode("slow").tolist(), tokens.decode(tokens.encode("slow ü"))
    ([115, 257], 'slow ü')
    """

    def __init__(self, merges):
        self.merges = [tuple(pair) for pair in merges]
        for k, pair in enumerate(self.merges):
            if len(pair) != 2 or not all(type(t) is int and 0 <= t < 256 + k for t in pair):
                raise ArgumentError(f"merge {k} is no pair of earlier tokens.",
                                    given=str(pair)[:200])
        self.rank = {pair: k for k, pair in enumerate(self.merges)}
        if len(self.rank) < len(self.merges):
            raise ArgumentError("a pair stands twice among the merges.")
        self.bytes = [bytes([k]) for k in range(256)]
        for left, right in self.merges:
            self.bytes.append(self.bytes[left] + self.bytes[right])
        self.word = functools.lru_cache(65536)(self.encoded)

    @classmethod
    def train(cls, text, size):
        """The tokeniser of up to `size` tokens for a text; fewer when no pair comes twice.

        Ties go to the pair of smaller numbers.  Raises RangeError for a size below 256.
        """
        if size < 256:
            raise RangeError("a byte-pair tokeniser has all 256 bytes.", given=f"size={size}")
        counts = Counter(WORDS.findall(text))
        words = [list(word.encode("utf-8", "surrogatepass")) for word in counts]
        return cls(frequent_pairs(words, list(counts.values()), size - 256))

    def __len__(self):
        return len(self.bytes)

    def __repr__(self):
        return f"BytePairTokenizer({len(self)} tokens)"

    def encode(self, text):
        """i32[n]."""
        out = [token for word in WORDS.findall(text) for token in self.word(word)]
        return np.array(out, np.int32)

    def encoded(self, word):
        """The tokens of one word: its bytes, merged in the order in which merges were learned."""
        tokens = list(word.encode("utf-8", "surrogatepass"))
        while len(tokens) > 1:
            rank, pair = min((self.rank.get(pair, len(self.rank)), pair)
                             for pair in zip(tokens, tokens[1:]))
            if rank == len(self.rank):
                break
            tokens = merged(tokens, pair, 256 + rank)
        return tokens

    def decode(self, tokens):
        """The text of i[n]; bytes that are no UTF-8, as a cut through a character leaves, become �.

        Raises RangeError for a number outside of the vocabulary.
        """
        content = b"".join([self.bytes[t] for t in checked(tokens, len(self))])
        return content.decode("utf-8", "replace")

    def save(self, path):
        """Writes the merges as JSON, whole or not at all."""
        write_json(path, {"format": "fgrad byte pairs", "merges": self.merges})

    @classmethod
    def load(cls, path):
        """The tokeniser that `save` wrote.  Raises MissingFileError, DataError."""
        merges = read_json(path, "fgrad byte pairs", merges=list)["merges"]
        try:
            return cls(merges)
        except (ArgumentError, TypeError) as error:
            wrong = getattr(error, "sentence", "a merge is no pair").rstrip(".")
            raise damaged(path, wrong) from None


def frequent_pairs(words, counts, n):
    """Up to n pairs, each the most frequent one after the merges before it.

    words: lists of tokens, changed in place; counts: how often each comes.
    """
    pairs, where = Counter(), defaultdict(set)
    for k, word in enumerate(words):
        for pair in zip(word, word[1:]):
            pairs[pair] += counts[k]
            where[pair].add(k)
    chosen = []
    while len(chosen) < n and pairs:
        best = max(pairs, key=lambda pair: (pairs[pair], -pair[0], -pair[1]))
        if pairs[best] < 2:
            break
        token = 256 + len(chosen)
        chosen.append(best)
        for k in where.pop(best):
            before, words[k] = words[k], merged(words[k], best, token)
            for pair in zip(before, before[1:]):
                pairs[pair] -= counts[k]
            for pair in zip(words[k], words[k][1:]):
                pairs[pair] += counts[k]
                where[pair].add(k)
        pairs = +pairs                                       # without those that are gone
    return chosen


def merged(tokens, pair, token):
    """The tokens with `token` in the place of each pair, from the left."""
    out, k = [], 0
    while k < len(tokens):
        hit = tokens[k] == pair[0] and k + 1 < len(tokens) and tokens[k + 1] == pair[1]
        out.append(token if hit else tokens[k])
        k += 2 if hit else 1
    return out


def checked(tokens, size):
    """The tokens as a list.  Raises RangeError for one outside of 0 … size - 1."""
    tokens = np.asarray(tokens)
    if tokens.ndim != 1 or tokens.size and tokens.dtype.kind not in "iu":
        raise ShapeError("decode takes one row of whole numbers.",
                         given=f"{tokens.dtype} of shape {tokens.shape}")
    if tokens.size and not (0 <= tokens.min() and tokens.max() < size):
        raise RangeError(f"tokens are 0 … {size - 1}.", given=f"{tokens.min()} … {tokens.max()}")
    return tokens.astype(int).tolist()


# ---------------------------------------------------------------------------- files

def write_json(path, content):
    """Writes an object as JSON, whole or not at all."""
    write_whole(path, [json.dumps(content, ensure_ascii=True).encode()])


def read_json(path, format, **fields):
    """The object in a JSON file of this format, with fields of these types."""
    content = read_text(path)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"it is not JSON ({error})") from None
    if not isinstance(found, dict) or found.get("format") != format:
        given = type(found).__name__
        if isinstance(found, dict):
            given = str(found.get("format", "no format"))[:200]
        raise damaged(path, "it is of another format", given=given,
                      expected=f'"format": "{format}"')
    for name, kind in fields.items():
        if not isinstance(found.get(name), kind):
            raise damaged(path, f"the field {name!r} is missing or of another kind")
    return found


def damaged(path, how, **rows):
    """The error for a file that holds no tokeniser."""
    rows.setdefault("fix", "save the tokeniser again")
    return DataError(f"{path} holds no tokeniser that can be read: {how}.", **rows)


# ---------------------------------------------------------------------------- windows

def windows(tokens, length, stride=None):
    """(inputs, targets): windows of a corpus, and the same one token on: views i[n,length] each.

    stride: tokens from one window to the next; `length` by default, so that each is predicted once.
    Raises RangeError when the corpus has no window, ShapeError for more than one axis.

    >>> x, y = windows(np.arange(8), 3)
    >>> x.tolist(), y.tolist()
    ([[0, 1, 2], [3, 4, 5]], [[1, 2, 3], [4, 5, 6]])
    """
    tokens = np.asarray(tokens)
    stride = length if stride is None else stride
    if tokens.ndim != 1:
        raise ShapeError("windows takes one row of tokens.", given=f"shape {tokens.shape}")
    if length < 1 or stride < 1:
        raise RangeError("windows: length and stride are at least 1.",
                         given=f"length={length}, stride={stride}")
    if len(tokens) <= length:
        raise RangeError(f"{len(tokens)} tokens make no window of {length} and the token behind.",
                         fix="a longer corpus, or shorter windows")
    both = np.lib.stride_tricks.sliding_window_view(tokens, length + 1)[::stride]
    return both[:, :-1], both[:, 1:]


bound(globals())
