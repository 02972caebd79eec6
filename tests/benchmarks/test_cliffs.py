"""Random programs: that each kind of line makes programs that compute, and what is said of them."""

import numpy as np
import pytest

import fgrad
from benchmarks import cliffs, workload, workloads
from benchmarks.workloads import programs


@pytest.mark.parametrize("kind", programs.KINDS)
def test_programs_of_each_kind_compute_the_same_with_and_without_jit(kind):
    kinds = tuple(dict.fromkeys((kind, "unary", "binary", "transposed")))
    written = (programs.program(seed, kinds) for seed in range(300))
    seeds = [seed for seed, draft in enumerate(written)
             if cells(draft) < 30_000 and kind in draft.written]
    assert len(seeds) >= 3
    for seed in seeds[:3]:
        draft, found = programs.program(seed, kinds), programs.workload(seed, kinds)
        compiled = workload.prepared(found, "jax", fgrad, fgrad.numpy.array)
        plain = programs.transformed(fgrad, draft)(*compiled.args)
        assert not workload.disagreement(found, workload.answer(found, compiled.first()),
                                         workload.answer(found, plain)), draft.text()


def cells(draft):
    return sum(np.prod(shape) for shape in draft.shapes.values())


def test_a_number_is_one_program():
    texts = [programs.program(7, ()).text() for _ in range(2)]
    assert texts[0] == texts[1] != programs.program(8, ()).text()
    found = workloads.find(programs.name(7, ("rows", "unary")))
    assert found.name == "programs.7-rows-unary"
    assert programs.program(7, ("rows", "unary")).text() != texts[0]


def test_the_end_says_how_many_are_slower(capsys):
    cliffs.main(["--peer", "fgrad", "--count", "2", "--rounds", "1", "--seconds", "0.001",
                 "--below", "100"])
    text = capsys.readouterr().out
    assert text.count("def program(") == 2 and text.count("times as fast: ") == 2
    assert "2 programs, 1 threads" in text and "0 that failed or differ" in text


def test_what_differs_is_printed_and_not_timed():
    chosen = cliffs.options(["--kinds", "unary"])
    text = cliffs.described(3, cliffs.Outcome("programs.3", None, None, "off by 1"), chosen)
    assert ": off by 1\n" in text and "def program(x0" in text
    assert cliffs.summary([cliffs.Outcome("programs.3", None, None, "off by 1")], chosen) == [
        "no program was timed"]


def test_kinds_that_do_not_exist_are_named(capsys):
    with pytest.raises(SystemExit):
        cliffs.options(["--kinds", "unary,knitting"])
    assert "no kind of line is named knitting; there are unary" in capsys.readouterr().err


@pytest.mark.parametrize("found", workloads.of("everyday"), ids=lambda found: found.name)
def test_everyday_programs_compute_the_same_with_and_without_jit(found):
    compiled = workload.prepared(found, "jax", fgrad, fgrad.numpy.array)
    with fgrad.disable_jit():
        plain = compiled.first()
    assert not workload.disagreement(found, workload.answer(found, compiled.first()),
                                     workload.answer(found, plain))
