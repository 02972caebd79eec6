"""Array programs read back from their text: `parse(str(program))` is the program, sources aside.

Relies on `ir_text.py`, which prints them and hands `parse` to users.
"""

from __future__ import annotations

import re

from .errors import ParseError
from .ir import OPERATIONS, Equation, Program, Var, evaluate_types
from .ir_text import WORDS
from .types import LONG, ArrayType

HEAD = re.compile(r"(\w+)\((.*)\) -> (.*)")
EQUATION = re.compile(r"\s+(.+?)\s*= (\w+)(?:\[(.*?)\](?=\s|$))?(.*)")
TYPED = re.compile(r"(\w+): (\w+)\[([\d,]*)\]")
VALUE = re.compile(r"""\s*(?:(?P<open>\()|(?P<close>\))|(?P<comma>,)
    |(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<number>-?\d[\w.+-]*|-inf|-nan)|(?P<word>\w+)|(?P<other>\S))""", re.VERBOSE)


def parse(source_text):
    """The Program that `show` prints as this text; the right column is ignored.

    Closed-over arrays become inputs.  Raises ParseError, naming the line.

    >>> p = parse("f(x: f32[2]) -> f32[2]\\n  return x")
    >>> print(p)
    f(x: f32[2]) -> f32[2]
      return x
    """
    blocks = split_blocks(source_text)
    made = {}
    for number, lines in reversed(blocks):       # a block refers to those below it
        title = title_of(number, lines[0])
        made[title] = parse_block(number, lines, made)
    number, lines = blocks[0]
    return made[title_of(number, lines[0])]


def split_blocks(source_text):
    """[(line number, lines)] of the blocks, without the right column."""
    blocks, fresh = [], True
    for number, line in enumerate(source_text.split("\n"), 1):
        line = line.partition("│")[0].rstrip()
        if not line:
            fresh = True
        elif fresh and not line.startswith(" "):
            blocks.append((number, [line]))
            fresh = False
        elif not blocks:
            raise unreadable(number, line)
        else:
            blocks[-1][1].append(line)
    if not blocks:
        raise ParseError("there is no program in this text.", where=None)
    return blocks


def title_of(number, head):
    found = HEAD.fullmatch(head)
    if found is None:
        raise unreadable(number, head)
    return found[1]


def unreadable(number, line, why="it is no part of a program"):
    return ParseError(f"line {number} cannot be read: {why}.", given=line.strip(), where=None)


def parse_block(number, lines, programs):
    """The Program of one block."""
    name, inputs, results = HEAD.fullmatch(lines[0]).groups()
    inputs = typed_variables(inputs, number, lines[0])
    known, eqns = {v.name: v for v in inputs}, []
    for k, line in enumerate(lines[1:-1], number + 1):
        eqn = parse_equation(k, line, known, programs)
        known.update({v.name: v for v in eqn.outs})
        eqns.append(eqn)
    last, number = lines[-1].split(), number + len(lines) - 1
    if last[:1] != ["return"]:
        raise unreadable(number, lines[-1], "a program ends with return")
    outputs = [variable(word, known, number, lines[-1]) for word in last[1:]]
    if results != (", ".join(str(v.type) for v in outputs) or "()"):
        raise unreadable(number, lines[-1], f"its results are not {results}")
    return Program(name, inputs, eqns, outputs)


def typed_variables(text_, number, line):
    """The variables of `x: f32[3,2], y: f32[]`."""
    found = TYPED.findall(text_)
    if ", ".join(f"{n}: {d}[{s}]" for n, d, s in found) != text_.strip():
        raise unreadable(number, line, "a variable stands as name: dtype[shape]")
    out = []
    for name, dtype, shape in found:
        if dtype not in LONG:
            raise unreadable(number, line, f"there is no dtype {dtype}")
        out.append(Var(ArrayType(LONG[dtype], tuple(int(n) for n in shape.split(",") if n)), name))
    return out


def parse_equation(number, line, known, programs):
    """The Equation of `name: type = op[params] args`."""
    found = EQUATION.fullmatch(line)
    if found is None:
        raise unreadable(number, line, "an equation stands as name: type = op[params] args")
    outs, op, inside, args = found.groups()
    try:
        operation = OPERATIONS[op]
    except KeyError:
        raise unreadable(number, line, f"there is no operation {op}") from None
    outs = typed_variables(outs, number, line)
    args = [argument(word, known, number, line) for word in args.split()]
    params = parse_bracket(inside or "", programs, number, line)
    eqn = Equation(operation, args, params, outs)
    types = evaluate_types(eqn.op, eqn.args, params)
    if types != tuple(v.type for v in outs):
        raise unreadable(number, line, f"{op} gives {', '.join(map(str, types))} here")
    return eqn


def argument(word, known, number, line):
    """A variable, or a Python number."""
    if word in WORDS and word != "None":
        return WORDS[word]
    if word[0].isdigit() or word[0] == "-":
        return number_of(word, number, line)
    return variable(word, known, number, line)


def variable(word, known, number, line):
    if word not in known:
        raise unreadable(number, line, f"{word} is not defined above")
    return known[word]


def number_of(word, number, line):
    """An int or a float."""
    try:
        return int(word) if re.fullmatch(r"-?\d+", word) else float(word)
    except ValueError:
        raise unreadable(number, line, f"{word} is no number") from None


def parse_bracket(inside, programs, number, line):
    """The parameters in the brackets."""
    labels = re.fullmatch(r"(\w*),(\w*)->(\w*)", inside)
    if labels:
        return dict(zip(("lhs", "rhs", "to"), labels.groups()))
    params, at = {}, 0
    while at < len(inside):
        key = re.compile(r"\s*(\w+)=").match(inside, at)
        if key is None:
            raise unreadable(number, line, "a parameter stands as key=value")
        params[key[1]], at = parse_value(inside, key.end(), programs, number, line)
    return params


def parse_value(inside, at, programs, number, line):
    """(value, where it ends)."""
    found = VALUE.match(inside, at)
    if found is None or found.lastgroup in ("close", "comma", "other"):
        raise unreadable(number, line, f"{inside[at:].strip() or 'nothing'} is no value")
    word, at = found[found.lastgroup], found.end()
    match found.lastgroup:
        case "open":
            return parse_tuple(inside, at, programs, number, line)
        case "string":
            return re.sub(r"\\(.)", r"\1", word[1:-1]), at
        case "number":
            return number_of(word, number, line), at
    if word in WORDS:
        return WORDS[word], at
    if word in programs:
        return programs[word], at
    if word in LONG:
        return LONG[word], at
    raise unreadable(number, line, f"there is no {word}")


def parse_tuple(inside, at, programs, number, line):
    """The rest of `(a,b)`, behind its opening bracket."""
    items = []
    while True:
        found = VALUE.match(inside, at)
        if found is not None and found.lastgroup == "close":
            return tuple(items), found.end()
        item, at = parse_value(inside, at, programs, number, line)
        items.append(item)
        found = VALUE.match(inside, at)
        if found is not None and found.lastgroup == "comma":
            at = found.end()
