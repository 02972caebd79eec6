"""Runs the workloads on every implementation, and writes the tables and the chart.

    python -m benchmarks.run --impl fgrad,jax,torch,autograd,numpy [--only NAME…] [--threads 1,2]

Each implementation has a process of its own (`worker.py`); in every round each workload is timed on
one implementation after the other, so that all meet the same disturbances.  See README.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import chart, report, starts, workload, workloads
from .implementations import DEFAULT, IMPLEMENTATIONS, environment
from .results import Results

HERE = Path(__file__).parent


class Failed(Exception):
    """What an implementation said instead of a time or an answer."""


class Remote:
    """A worker in its own process; its methods are calls over a pipe.

    Between calls the process is stopped: threads that OpenBLAS or OpenMP let spin for a tenth of a
    second after their last product would take a processor from the next implementation's turn.
    """

    def __init__(self, name, python, threads, clock, cache):
        self.name = name
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", name, str(threads), clock],
            cwd=HERE.parent, env=environment(threads, cache),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, do, *args):
        """The worker's value.  Raises Failed with its words where it has none."""
        self.signal("SIGCONT")
        try:
            self.process.stdin.write(json.dumps({"do": do, "args": args}) + "\n")
            self.process.stdin.flush()
            reply = json.loads(self.process.stdout.readline())
        except (OSError, ValueError):
            raise Failed("its process has ended") from None
        self.signal("SIGSTOP")
        if "error" in reply:
            raise Failed(reply["error"])
        return reply["value"]

    def signal(self, name):
        """Sends the process a signal, where the system has it."""
        if hasattr(signal, name):
            self.process.send_signal(getattr(signal, name))

    def prepare(self, name):
        return self.ask("prepare", name)

    def measure(self, name, seconds):
        return self.ask("measure", name, seconds)

    def close(self):
        self.signal("SIGCONT")
        with contextlib.suppress(BrokenPipeError):      # it has ended, and ask has said so
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Run:
    """One number of threads: the workers, what they are to do, and what they have done."""

    def __init__(self, options, threads, folder):
        self.options = options
        names = [*options.impl, *(["limit"] if "fgrad" in options.impl else [])]
        pythons = starts.pythons(options.python, names)
        pythons["limit"] = pythons.get("fgrad")
        self.workers = {name: Remote(name, pythons[name], threads, options.clock,
                                     tempfile.mkdtemp(dir=folder)) for name in names}
        self.starters = {name: starts.Starter(name, pythons[name], threads, folder)
                         for name in names}
        self.starts = selected_starts(options)
        self.workloads = workloads.select(options.only, options.full)
        self.results = Results(options.impl, threads,
                               self.starts + [w.name for w in self.workloads])

    def measure(self):
        """All rounds; the first of them begins with the answers."""
        for number in range(self.options.rounds):
            for name in self.results.workloads:
                turns = self.turns(name)
                if number == 0:
                    self.prepare(name, turns)
                shift = number % max(len(turns), 1)
                for who in turns[shift:] + turns[:shift]:
                    self.turn(name, who)
            progress(f"{self.results.threads} threads: round {number + 1} of {self.options.rounds}")

    def turns(self, name):
        """The implementations that have something to do in a workload."""
        if name in self.starts:
            return [who for who in self.starters if starts.runs(starts.start(name), who)]
        makers = workloads.find(name).makers
        return [who for who in self.workers
                if who == "limit" or IMPLEMENTATIONS[who].style in makers]

    def doer(self, name, who):
        return (self.starters if name in self.starts else self.workers)[who]

    def prepare(self, name, turns):
        """Prepares a workload everywhere, and compares the answers."""
        progress(f"{self.results.threads} threads: preparing {name}")
        answers = {}
        for who in turns:
            try:
                answers[who] = self.doer(name, who).prepare(name)
            except (Failed, RuntimeError) as error:
                self.results.problems[name, who] = str(error)
        if name not in self.starts:
            answers.pop("limit", None)
            self.compare(workloads.find(name), answers)

    def compare(self, found, answers):
        """Notes who disagrees with the NumPy version in float64, or else with the first peer."""
        want = workload.reference(found)
        if want is None:
            peers = [who for who in answers if who != self.results.subject]
            want = answers[peers[0]] if peers else None
        for who, got in answers.items():
            if want is not None and (text := workload.disagreement(found, got, want)):
                self.results.problems[found.name, who] = text

    def turn(self, name, who):
        """One implementation's turn in a round."""
        if (name, who) in self.results.problems:
            return
        try:
            self.results.add(name, who, self.doer(name, who).measure(name, self.options.seconds))
        except (Failed, RuntimeError) as error:
            self.results.problems[name, who] = str(error)

    def versions(self):
        """package → version over all workers, which are known to have started then."""
        return {package: version for worker in self.workers.values()
                for package, version in versions_of(worker).items()}

    def close(self):
        for worker in self.workers.values():
            worker.close()


def versions_of(worker):
    """package → version of a worker.  Ends the command where it has not started."""
    try:
        return worker.ask("versions")
    except Failed as error:
        raise SystemExit(f"{worker.name} does not start: {error}, see above.") from None


def progress(text):
    """One line on stderr, drawn over on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def parse(argv):
    """The options of a command line."""
    names = ",".join(IMPLEMENTATIONS)
    parser = argparse.ArgumentParser("python -m benchmarks.run", description="Benchmarks of fgrad.")
    add = parser.add_argument
    add("--impl", default=",".join(DEFAULT), type=comma_list,
        help=f"implementations, the one that is compared with the others first ({names})")
    add("--only", nargs="+", default=[], metavar="NAME", help="workloads, or patterns: 'matmul_*'")
    add("--threads", default=str(os.cpu_count()), type=comma_list, help="numbers of threads: 1,2")
    add("--rounds", default=5, type=int, help="rounds over all workloads (5)")
    add("--seconds", default=0.1, type=float, help="time for each turn (0.1)")
    add("--clock", default="wall", choices=["wall", "cpu"],
        help="cpu: processor time, for one thread on a machine that is shared (wall)")
    add("--full", action="store_true", help="with the workloads that take long")
    add("--python", nargs="+", default=[], metavar="IMPL=PATH",
        help="another interpreter for an implementation")
    add("--out", default=HERE, type=Path, help="folder for RESULTS.md and results.svg")
    add("--note", default="", help="a sentence for RESULTS.md, about the machine say")
    options = parser.parse_args(argv)
    for name in options.impl:
        if name not in IMPLEMENTATIONS:
            parser.error(f"unknown implementation {name!r}; there are {names}")
    if not workloads.select(options.only, options.full) and not selected_starts(options):
        known = [each.name for each in (*starts.ALL, *workloads.tabled())]
        parser.error(f"no workload is named {' '.join(options.only)}; there are {' '.join(known)}")
    options.python = dict(pair.split("=", 1) for pair in options.python)
    options.threads = [int(count) for count in options.threads]
    if options.clock == "cpu" and options.threads != [1]:
        parser.error("--clock cpu adds up the time of all threads: it needs --threads 1")
    return options


def selected_starts(options):
    """The names of the whole-process workloads that were asked for."""
    return [s.name for s in starts.ALL if workloads.matches(s.name, options.only)]


def comma_list(text):
    return [name for name in text.split(",") if name]


def facts(options, argv, versions):
    """What RESULTS.md says above its tables; paths are left out."""
    paths = {f"{name}={path}": f"{name}=PATH" for name, path in options.python.items()}
    command = ["python", "-m", "benchmarks.run"]
    skip = False
    for word in argv:
        if not skip and word not in ("--out", "--note"):
            command.append(paths.get(word, word))
        skip = word in ("--out", "--note")
    return {"command": " ".join(command), "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "machine": f"Machine: {processor()}, {os.cpu_count()} processors, {platform.system()}.",
            "versions": ", ".join(f"{package} {version}" for package, version in versions.items()),
            "clock": "Processor time" if options.clock == "cpu" else "Time",
            "rounds": options.rounds, "subject": options.impl[0],
            "note": f"\n{options.note}\n" if options.note else ""}


def processor():
    """The processor's model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def main(argv):
    options = parse(argv)
    sections, versions = [], {}
    for threads in options.threads:
        with tempfile.TemporaryDirectory() as folder:
            run = Run(options, threads, folder)
            try:
                versions |= run.versions()
                run.measure()
            finally:
                run.close()
        progress("")
        print(report.terminal(run.results), flush=True)
        sections.append(run.results)
    options.out.mkdir(parents=True, exist_ok=True)
    text = report.document(sections, facts(options, argv, versions))
    (options.out / "RESULTS.md").write_text(text)
    (options.out / "results.svg").write_text(chart.chart(sections[-1]))
    return 1 if any(results.problems for results in sections) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
