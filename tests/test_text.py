"""Columns, names and colours."""

import io

from fgrad.text import Names, columns, dimmed, identifier, is_coloured


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_columns_are_as_wide_as_their_widest_cell():
    assert columns([("a", "bb"), ("ccc",), ()]) == ["a   bb", "ccc", ""]
    assert columns([]) == []


def test_names_are_unique_and_letters_skip_what_is_used():
    names = Names(reserved={"b"})
    made = [names.unique(word) for word in ("x", "x", "x", "x2")]
    assert made == ["x", "x2", "x3", "x22"]
    assert [names.letter(), names.letter()] == ["a", "c"]


def test_identifiers_hold_no_foreign_characters():
    made = [identifier(n) for n in ("<lambda>", "p['w'][0].b", "3d", "…")]
    assert made == ["lambda", "p_w_0_b", "_3d", "f"]


def test_colour_needs_a_terminal_and_no_NO_COLOR(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert is_coloured(Terminal()) and not is_coloured(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not is_coloured(Terminal())


def test_notes_of_a_printed_program_are_dim():
    assert dimmed("f(x)\n  a = b │ m.py:5\n  c = d │") == (
        "f(x)\n  a = b \x1b[2m│ m.py:5\x1b[0m\n  c = d \x1b[2m│\x1b[0m")
