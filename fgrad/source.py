"""The user's line: where an operation was asked for, and what stands there.

An equation keeps only (code, lasti) of the innermost frame outside the library, which costs 0.1 µs;
lines, columns and names are decoded when something is printed.  Tables are keyed by id(code), since
hash(code) reads the whole code object.  Relied on by errors, staging and printing.
"""

from __future__ import annotations

import ast
import dis
import functools
import linecache
import os
import sys
import types

import numpy

NUMPY = os.path.dirname(os.path.abspath(numpy.__file__)) + os.sep
LIBRARY = os.path.dirname(os.path.abspath(__file__)) + os.sep
INSIDE = {}                # file name → is it part of the library (or of NumPy)?


def is_inside(filename):
    """Is the file the library's own, or one that only passes calls on?"""
    found = INSIDE.get(filename)
    if found is None:
        passed_on = filename.startswith(("<__array_function__", NUMPY, "numpy/"))
        ours = filename.startswith(LIBRARY) or absolute(filename).startswith(LIBRARY)
        standard = filename in STANDARD
        found = INSIDE[filename] = ours or passed_on or standard
    return found


def absolute(filename):
    """The path of a file from the root; as it is where the working folder has been removed."""
    try:
        return os.path.abspath(filename)
    except FileNotFoundError:
        return filename


def is_made(frame):
    """Does it run a function that dataclasses has made for a class of the library?"""
    return (frame.f_code.co_filename == "<string>"
            and frame.f_globals.get("__name__", "").startswith("fgrad."))


STANDARD = frozenset({functools.__file__,
                      os.path.join(os.path.dirname(functools.__file__), "contextlib.py")})


def here():
    """(code, lasti) of the innermost frame outside the library, or None."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not (INSIDE.get(code.co_filename) or is_inside(code.co_filename) or is_made(frame)):
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def user_frame():
    """The innermost frame outside the library, or None."""
    found = sys._getframe(1)
    while found is not None and is_inside(found.f_code.co_filename):
        found = found.f_back
    return found


def variable(name):
    """The value of the variable on the user's line, or None."""
    if (frame := user_frame()) is None:
        return None
    return frame.f_locals.get(name, frame.f_globals.get(name))


def value_of(node):
    """What a Name or Attribute, as syntax, stands for on the user's line, or None."""
    if isinstance(node, ast.Name):
        return variable(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(value_of(node.value), node.attr, None)
    return None


def called():
    """The functions that the user's line calls just now, as far as variables show.

    Before Python 3.11 those of the whole line.
    """
    node, found = node_there(), place(here())
    if node is not None:
        return [value_of(node.func)] if isinstance(node, ast.Call) else []
    if found is None or found.width:
        return []
    try:
        nodes = list(ast.walk(ast.parse(found.text)))
    except SyntaxError:
        return []
    return [value_of(node.func) for node in nodes if isinstance(node, ast.Call)]


def node_there():
    """The expression that the user's line computes just now, as syntax.

    None where the line does not show it, and before Python 3.11.
    """
    found = place(here())
    if found is None or not found.width:
        return None
    span = found.text[found.column:found.column + found.width]
    try:
        return ast.parse(span.strip(), mode="eval").body
    except SyntaxError:
        return None


def holder(x):
    """Where the user keeps the object x, as far as variables show: "list `cache`", or None."""
    frame = sys._getframe(1)
    while frame is not None:
        if not is_inside(frame.f_code.co_filename):
            for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
                if value is x:
                    return f"the variable `{name}`"
                if any(part is x for part in parts_of(value)):
                    return f"{type(value).__name__} `{name}`"
        frame = frame.f_back
    return None


def parts_of(value):
    """What a container, or an object of the user's, holds directly."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, (type, types.ModuleType)):
        return []
    module = sys.modules.get(type(value).__module__)
    inside = is_inside(getattr(module, "__file__", None) or "builtins")
    return [] if inside else list(getattr(value, "__dict__", {}).values())


def called_from(folder):
    """Is one of the frames between here and the user's line in this folder of the library?"""
    start, frame = os.path.join(LIBRARY, folder, ""), sys._getframe(1)
    while frame is not None and is_inside(frame.f_code.co_filename):
        if frame.f_code.co_filename.startswith(start):
            return True
        frame = frame.f_back
    return False


def depth():
    """The number of frames between the caller and the user's line, for `warnings.warn`."""
    frame, n = sys._getframe(1), 1
    while frame is not None and is_inside(frame.f_code.co_filename):
        frame, n = frame.f_back, n + 1
    return n


class Place:
    """A line of the user's: file, line number, its text, and the words at the operation."""

    def __init__(self, file, line, text, words, column=0, width=0):
        self.file, self.line, self.text = file, line, text
        self.words, self.column, self.width = words, column, width

    def __eq__(self, other):
        return isinstance(other, Place) and vars(self) == vars(other)

    def __hash__(self):
        return hash((self.file, self.line, self.words))

    @property
    def short(self):
        """`model.py:17`."""
        return f"{os.path.basename(self.file)}:{self.line}"


def place(where):
    """The Place of a (code, lasti) pair; a Place or None is returned as it is."""
    if where is None or isinstance(where, Place):
        return where
    code, lasti = where
    return decode(code, lasti)


def cached_by_identity(function):
    """Caches by the identity of the code object; it is kept alive, so its id stays its own."""
    known = {}

    @functools.wraps(function)
    def lookup(code, *rest):
        key = (id(code), *rest)
        if key not in known:
            if len(known) > 20000:
                known.clear()
            known[key] = code, function(code, *rest)
        return known[key][1]
    return lookup


@cached_by_identity
def positions(code):
    """Per instruction: (line, end line, column, end column); before Python 3.11 columns are None.
    """
    if hasattr(code, "co_positions"):
        return list(code.co_positions())
    lines, line = {}, code.co_firstlineno
    for start, _, at in code.co_lines():
        lines[start // 2] = at
    out = []
    for k in range(len(code.co_code) // 2):
        line = lines.get(k, line) or line
        out.append((line, line, None, None))
    return out


@cached_by_identity
def decode(code, lasti):
    """The Place of one instruction."""
    line, end, start, stop = positions(code)[max(lasti, 0) // 2]
    line = line or code.co_firstlineno
    raw = linecache.getline(code.co_filename, line).rstrip()
    text = raw.strip()
    if line != end or not raw or start is None:
        return Place(code.co_filename, line, text, "")
    span = raw.encode()[start:stop].decode(errors="replace")
    column = len(raw.encode()[:start].decode(errors="replace")) - (len(raw) - len(raw.lstrip()))
    return Place(code.co_filename, line, text, words_of(span), column, len(span))


def words_of(span):
    """The operator and its right side, or the name of what is called."""
    try:
        tree = ast.parse(span.strip(), mode="eval").body
    except SyntaxError:
        return span[:30]
    if isinstance(tree, ast.BinOp) and not isinstance(tree.left, ast.Name):
        left = span.strip().encode()[tree.left.end_col_offset:].decode(errors="replace")
        span = left.strip(" )")
    if isinstance(tree, ast.Call):
        span = ast.unparse(tree.func).rpartition(".")[2]
    return span[:30]


BRIEF = 20                 # characters of an operand that a message repeats


def operands(where, operator, functions):
    """The texts of the two operands at a Place: of an operator (an ast class), or of a call of one
    of `functions`.  None where the line does not show them, or not briefly, or has several.
    """
    found = place(where)
    if found is None:
        return None
    text = found.text
    if found.width:                              # without it, before Python 3.11: the whole line
        start = len(text[:found.column])
        text = text[start:start + found.width]
    try:
        nodes = list(ast.walk(ast.parse(text.strip())))
    except SyntaxError:
        return None
    pairs = [pair for pair in (pair_of(n, operator, functions) for n in nodes) if pair]
    if not pairs or len(pairs) > 1 and not found.width:
        return None
    closed = ast.Name, ast.Attribute, ast.Subscript, ast.Call
    texts = [ast.unparse(x) if isinstance(x, closed) else f"({ast.unparse(x)})" for x in pairs[0]]
    return texts if max(map(len, texts)) <= BRIEF else None


def pair_of(node, operator, functions):
    """The operands of an operator, or the two that a function or method is given; None for others.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, operator):
        return [node.left, node.right]
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if ast.unparse(node.func).rpartition(".")[2] not in functions:
        return None
    method = isinstance(node.func, ast.Attribute) and len(node.args) == 1
    pair = [node.func.value, *node.args] if method else node.args
    return pair if len(pair) == 2 else None


@cached_by_identity
def stores(code):
    """Per instruction: the name of the variable stored next, or None."""
    names = [None] * (len(code.co_code) // 2)
    following = None
    for instruction in reversed([i for i in dis.get_instructions(code) if i.opname != "CACHE"]):
        stored = (following and following.opname.startswith("STORE_")
                  and isinstance(following.argval, str))
        end = following.offset if following else len(code.co_code)
        for k in range(instruction.offset // 2, end // 2):
            names[k] = following.argval if stored else None
        following = instruction
    return names


def stored_name(where):
    """The name of the variable that the user's line stores the value in, or None."""
    if where is None:
        return None
    code, lasti = where
    return stores(code)[max(lasti, 0) // 2]
