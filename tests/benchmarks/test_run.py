"""The benchmark harness, on small workloads: what it writes, not how fast anything is."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import report, run, starts, workload, workloads
from benchmarks.results import Results


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of a short run, and its exit status."""
    out = tmp_path_factory.mktemp("figures")
    status = run.main(["--impl", "fgrad,numpy", "--only", "eager_add", "chain_1e3", "--rounds", "2",
                       "--threads", "1", "--seconds", "0.001", "--out", str(out),
                       "--note", "A short run."])
    return out, status


def table(text):
    """The cells of the Markdown table in a text, by first column."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines() if line.startswith("|")]
    return {cells[0]: cells[1:] for cells in rows}


def test_a_run_writes_a_row_for_every_workload(written):
    out, status = written
    assert status == 0
    rows = table((out / "RESULTS.md").read_text())
    assert rows["workload"] == ["fgrad", "numpy", "÷ best", "limit", "of limit"]
    assert list(rows) == ["workload", "---", "eager_add", "chain_1e3"]
    assert all(rows["eager_add"][:3]) and all(rows["chain_1e3"])
    assert rows["eager_add"][3] == "" and rows["chain_1e3"][3].endswith("s")


def test_results_name_versions_and_command_but_no_folder(written):
    out, _ = written
    text = (out / "RESULTS.md").read_text()
    assert f"numpy {np.__version__}" in text and "A short run." in text
    assert "`python -m benchmarks.run --impl fgrad,numpy --only eager_add chain_1e3" in text
    assert str(out) not in text


def test_whole_processes_stop_before_the_call_or_after_it(tmp_path):
    names = ["before_mlp_step", "compile_mlp_step_warm"]
    status = run.main(["--impl", "fgrad", "--only", *names, "--rounds", "1", "--threads", "1",
                       "--out", str(tmp_path)])
    rows = table((tmp_path / "RESULTS.md").read_text())
    assert status == 0 and list(rows)[2:] == names and all(rows[name][0] for name in names)
    before = starts.Starter("fgrad", sys.executable, 1, str(tmp_path))
    assert before.command(starts.start(names[0]))[-1] == "before"
    assert before.command(starts.start(names[1]))[-1].endswith(".inputs")


def test_the_chart_is_well_formed(written):
    out, _ = written
    root = ElementTree.parse(out / "results.svg").getroot()
    assert "eager_add" in [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_worker_that_has_ended_says_so_and_can_be_closed(tmp_path):
    worker = run.Remote("nobody", sys.executable, 1, "wall", str(tmp_path))
    worker.process.wait()
    with pytest.raises(run.Failed, match="its process has ended"):
        worker.ask("versions")
    worker.close()


def test_every_workload_has_a_name_of_its_own_and_a_version_in_jax_style():
    names = [w.name for w in workloads.tabled()]
    assert len(set(names)) == len(names)
    assert all("jax" in w.makers for w in workloads.tabled())


def test_answers_that_differ_are_said_to_differ():
    found = workloads.find("chain_1e3")
    right = workload.answer(found, np.ones(3))
    assert workload.disagreement(found, right, right) == ""
    for wrong, text in ((np.zeros(3), "off by 1.0e+00"), (np.full(3, np.nan), "off by nan"),
                        (np.ones(4), "shapes")):
        assert text in workload.disagreement(found, workload.answer(found, wrong), right)


def test_a_sample_holds_the_first_and_the_last_element():
    taken = workload.sample(np.arange(100_000.0))
    assert (len(taken), taken[0], taken[-1]) == (workload.SAMPLE, 0.0, 99_999.0)
    assert workload.sample(np.zeros(0)) == []


def test_ratios_above_one_mean_that_the_subject_is_faster():
    results = Results(["fgrad", "jax", "numpy"], 1, ["w"])
    times = {"fgrad": [2.0, 9.0, 2.0], "jax": [8.0, 36.0, 9.0], "numpy": [1.0, 4.5, 1.0],
             "limit": [1.0, 0.5, 0.7]}
    results.times.update({("w", name): seconds for name, seconds in times.items()})
    assert results.time("w", "fgrad") == 2.0 and results.time("w", "limit") == 0.5
    assert results.speed("w", "jax") == 4.0 and results.best_peer("w") == "numpy"
    assert results.slower() == [("w", 0.5)] and results.mean_speed("jax") == (4.0, 1)
    assert results.unevenness() == (4.5, 4.5)


def test_a_ratio_is_that_of_rounds_in_which_the_machine_was_as_fast():
    results = Results(["fgrad", "jax"], 1, ["w", "v"])
    for own, other in ((1.0, 2.0), (3.0, 6.0), (1.0, 6.0)):      # jax met a slow moment alone once
        results.add("w", "fgrad", own)
        results.add("w", "jax", other)
    assert results.speed("w", "jax") == 2.0 and results.time("w", "jax") == 6.0
    assert results.speed("v", "jax") is None and results.best_peer("v") is None
    results.problems["w", "jax"] = "wrong"
    assert results.speed("w", "jax") is None and results.slower() == []


def test_the_share_of_the_limit_is_that_of_the_same_moments():
    results = Results(["fgrad"], 1, ["w", "v", "call"])
    for own, least in ((2.0, 1.0), (4.0, 2.0), (4.0, 1.0)):      # one slow moment was fgrad's alone
        results.add("w", "fgrad", own)
        results.add("w", "limit", least)
    assert results.of_limit("w") == 0.5 and results.time("w", "limit") == 1.0
    assert results.of_limit("v") is None
    results.add("call", "fgrad", 1e-7)
    results.add("call", "limit", 0.0)                            # it has no operations to count
    assert report.row(results, "call", str)[-2:] == ["", ""]


@pytest.mark.parametrize("seconds, text", [
    (1.2345, "1.23 s"), (0.0123, "12.3 ms"), (9.999e-4, "1.00 ms"), (5e-8, "50.0 ns"), (None, "")])
def test_durations_have_three_digits(seconds, text):
    assert report.duration(seconds) == text


def test_processor_time_is_for_one_thread(capsys):
    assert run.parse(["--threads", "1", "--clock", "cpu"]).clock == "cpu"
    with pytest.raises(SystemExit):
        run.parse(["--threads", "2", "--clock", "cpu"])
    assert "it needs --threads 1" in capsys.readouterr().err


def test_an_unknown_workload_is_refused(capsys):
    with pytest.raises(SystemExit):
        run.parse(["--only", "no_such_thing"])
    assert "no workload is named no_such_thing" in capsys.readouterr().err


def test_a_failing_workload_is_a_cell_of_the_table():
    results = Results(["fgrad", "numpy"], 2, ["w"])
    results.add("w", "numpy", 1e-3)
    results.problems["w", "fgrad"] = "TypeError: no"
    text = report.markdown(results)
    assert table(text)["w"][:3] == ["failed", "**1.00 ms**", ""]
    assert "fgrad failed w: TypeError: no" in text
