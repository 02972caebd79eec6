"""What a training run shows: one line, drawn over, on a terminal; one line per epoch in a log.

Standard library only.
"""

from __future__ import annotations

import sys
import time

WIDTH = 24                 # of the bar, in characters
PAUSE = 0.1                # seconds between two drawings


class Progress:
    """The lines of one epoch, on `stream` (default stderr); the bar only where it is a terminal."""

    def __init__(self, title, steps, rows, stream=None):
        self.stream = sys.stderr if stream is None else stream
        self.title, self.steps, self.rows = title, steps, rows
        self.live = self.stream.isatty()
        self.begun, self.drawn = time.perf_counter(), 0.0
        self.first = None                        # the step the run was at when it began

    def show(self, step, values):
        """Draws the bar anew, unless it was drawn just now."""
        self.first = step - 1 if self.first is None else self.first
        now = time.perf_counter()
        if self.live and (step == self.steps or now - self.drawn > PAUSE):
            self.drawn = now
            filled = WIDTH * step // self.steps
            bar = "█" * filled + "·" * (WIDTH - filled)
            print(f"\r{self.title} [{bar}] {listed(values)}  {self.rate(step)}\033[K", end="",
                  file=self.stream, flush=True)

    def rate(self, step):
        """Rows per second since the beginning, in words."""
        done = (step - (self.first or 0)) * self.rows
        return f"{done / max(time.perf_counter() - self.begun, 1e-9):,.0f} rows/s"

    def clear(self):
        """Takes the bar away."""
        if self.live:
            print("\r\033[K", end="", file=self.stream, flush=True)

    def done(self, values):
        """The line of a whole epoch, in place of the bar."""
        self.clear()
        text = f"{self.title}  {listed(values)}  {self.rate(self.steps)}"
        print(text, file=self.stream, flush=True)


def listed(values):
    """Numbers by name in one line.

    >>> listed({"loss": 0.25, "accuracy": 1})
    'loss 0.2500  accuracy 1.0000'
    """
    return "  ".join(f"{name} {value:.4f}" for name, value in values.items())
