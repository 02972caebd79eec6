"""What one run has measured, and the figures that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, log
from statistics import median


@dataclass
class Results:
    """Times in seconds, one per round, by workload and implementation; and what went wrong."""
    names: list[str]                                  # implementations, the subject first
    threads: int
    workloads: list[str]
    times: dict = field(default_factory=dict)         # (workload, name) → [seconds of each round]
    problems: dict = field(default_factory=dict)      # (workload, name) → text

    def add(self, workload, name, seconds):
        self.times.setdefault((workload, name), []).append(seconds)

    @property
    def subject(self):
        """The implementation that the others are compared with."""
        return self.names[0]

    def rounds(self, workload, name):
        """The times of all rounds; none where something went wrong."""
        return [] if (workload, name) in self.problems else self.times.get((workload, name), [])

    def time(self, workload, name):
        """The median of the rounds, None where there is none.  For the limit, the least."""
        found = self.rounds(workload, name)
        middle = min if name == "limit" else median
        return middle(found) if found else None

    def best_peer(self, workload):
        """The other implementation beside which the subject does worst, None where no other ran."""
        speeds = {name: self.speed(workload, name) for name in self.names[1:]}
        return min((name for name, s in speeds.items() if s), key=speeds.get, default=None)

    def speed(self, workload, peer):
        """How many times as fast as the peer the subject is; None where one of them did not run.

        The median of what each round says, in which the two ran one after the other: a machine that
        others use is slower in some rounds, for both.
        """
        rounds = zip(self.rounds(workload, self.subject), self.rounds(workload, peer))
        found = [other / own for own, other in rounds]
        return median(found) if found else None

    def unevenness(self):
        """(in the median, in one of ten) how many times as long the slowest of a row's rounds took
        as the quickest; None where there is one round."""
        found = sorted(max(times) / min(times) for (_, name), times in self.times.items()
                       if name != "limit" and len(times) > 1)
        return (median(found), found[-(len(found) // 10) - 1]) if found else None

    def of_limit(self, workload):
        """The limit's time by the subject's, the median of what each round says, as for a peer: 1
        is as fast as the machine allowed at that moment.  None where nothing is known to limit it.
        """
        return self.speed(workload, "limit") or None

    def mean_speed(self, peer):
        """The geometric mean of `speed` over the workloads that both ran, and their number."""
        speeds = [self.speed(w, peer) for w in self.workloads]
        speeds = [s for s in speeds if s]
        return (exp(sum(map(log, speeds)) / len(speeds)), len(speeds)) if speeds else (None, 0)

    def slower(self):
        """Workloads where the subject is slower than the best peer, the worst first."""
        speeds = [(w, self.speed(w, self.best_peer(w))) for w in self.workloads]
        return sorted(((w, s) for w, s in speeds if s and s < 1), key=lambda pair: pair[1])
