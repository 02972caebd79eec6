"""Objects for LLVM texts: from the disk cache, or made in threads while more texts are written.

    begin(texts)       other processors start on the objects that the disk does not have
    of(texts)          the objects; this thread makes those that no other has started on

LLVM takes more of a compilation than all that comes before it, and Python lets go of the
interpreter's lock meanwhile: so the first kernels are compiled while the next are written.  Each
call of LLVM ends with a wait for that lock, in Python for up to 5 ms: here for less.  An object is
made once, whoever asks for it.  Relies on `codegen`, by way of `target`, which imports it when
something is compiled; the other modules of this folder rely on it.
"""

from __future__ import annotations

import sys
import threading
from collections import deque

from ... import config
from .. import cache
from . import target
from .host import IDENTITY

SWITCH = 0.0003            # seconds for which a thread waits for the interpreter's lock


def key_of(text):
    """The key on disk of the object of a text."""
    return cache.key(IDENTITY, text)


class Job:
    """An object that is to be made.  done: set when `data` is there, or the `error`."""

    def __init__(self, key, text, compile_text):
        self.key, self.text, self.compile_text = key, text, compile_text
        self.taken, self.data, self.error = False, None, None
        self.done = threading.Event()

    def take(self):
        """Is it this thread that makes it?"""
        with _lock:
            mine, self.taken = not self.taken, True
        return mine

    def make(self):
        try:
            self.data = self.compile_text(self.text)
            cache.disk().put(self.key, self.data)
        except BaseException as error:           # raised where the object is asked for
            self.error = error
        self.done.set()


_lock = threading.Lock()                         # guards what follows; held while a process forks
_jobs = {}                                       # key → Job, until its object is asked for
_waiting = deque()                               # Jobs for other threads
_helpers = 0                                     # these threads
_usual = None                                    # sys.getswitchinterval() without them


def begin(texts):
    """Starts to make the objects that are not on disk, where there are processors for it."""
    if config.processors() > 1:
        with _lock:
            texts = {key: text for text in texts if (key := key_of(text)) not in _jobs}
        started({key: text for key, text in texts.items() if cache.disk().get(key) is None})


def of(texts, keys=None):
    """The objects of several texts, whose keys are these.

    Memory that LLVM has freed goes back to the system: 7 MB after a training step of a CNN.
    Raises CheckError where LLVM does not accept a text.
    """
    keys = keys or [key_of(text) for text in texts]
    with _lock:
        jobs = {key: _jobs[key] for key in keys if key in _jobs}
    found = {key: cache.disk().get(key) for key in keys if key not in jobs}
    jobs |= started({key: text for key, text in zip(keys, texts)
                     if key not in jobs and found[key] is None})
    for job in jobs.values():
        if job.take():
            job.make()
    for job in jobs.values():
        job.done.wait()
    with _lock:
        for key in jobs:
            _jobs.pop(key, None)
    for job in jobs.values():
        if job.error is not None:
            raise job.error
    if jobs:
        target.codegen().trim()(0)
    return [jobs[key].data if key in jobs else found[key] for key in keys]


def started(texts):
    """key → Job of these texts (key → text), for which other threads are woken."""
    if not texts:
        return {}
    compile_text = target.codegen().compile_text         # imported under a lock: not by helpers,
    with _lock:                                          # for which its holder may wait
        jobs = {key: _jobs.setdefault(key, Job(key, text, compile_text))
                for key, text in texts.items()}
        _waiting.extend(jobs.values())
        more = max(0, min(config.processors() - 1, len(_waiting)) - _helpers)
        count_helpers(more)
    for _ in range(more):
        try:
            threading.Thread(target=help).start()
        except RuntimeError:                     # the system gives no more: `of` makes everything
            with _lock:
                count_helpers(-1)
    return jobs


def help():
    """Makes what waits, until nothing does."""
    while (job := next_job()) is not None:
        if job.take():
            job.make()


def next_job():
    with _lock:
        if _waiting:
            return _waiting.popleft()
        count_helpers(-1)
        return None


def count_helpers(more):
    """Threads take turns quickly as long as there are helpers."""
    global _helpers, _usual
    if _helpers == 0 < more:
        _usual = sys.getswitchinterval()
        sys.setswitchinterval(min(_usual, SWITCH))
    _helpers += more
    if _helpers == 0 > more:
        sys.setswitchinterval(_usual)


def forget():
    """In a child, which has none of these threads: what they had begun is to be made again."""
    _jobs.clear()
    _waiting.clear()
    count_helpers(-_helpers)


target.at_fork.append((_lock.acquire, _lock.release, forget))
