"""The thread pool: parts of a loop run on all cores, started from compiled code.

Compiled code says `call void @fg.par_run(ptr @body, ptr %ctx, i64 %told)`, told being `parts` or
`told(parts, us)`, and body, a `void(ptr ctx, i64 part)`, runs once for every part in 0..parts, in
ascending order of starting.
The pool itself is LLVM text that calls POSIX threads, so no part takes the interpreter's lock.

* One 64-bit ticket, generation << 32 | parts left.  Everybody, the caller too, takes parts with a
  compare-exchange on it: a late worker cannot take a part of another region, and the caller waits
  for parts, never for sleeping workers, so a crowded machine falls to serial speed, not below.
* An idle worker spins about 50 us, then sleeps on a condition variable.  Ticket and count of
  sleepers are sequentially consistent, which excludes a lost wake-up.
* A caller may run all parts itself, in the same order (`ALONE`): see `runner.py`.
* To wake one takes some us, and as many again until it works.  A light region, of which the caller
  says how many us it takes alone (`told`), wakes nobody: the caller runs the parts that no worker
  takes.  When light regions have made up LIGHT us since the last call, the next one wakes them.
* In a virtual machine Linux may wake a worker on the processor of who calls it, though others are
  idle: so workers keep off the one that their caller is on, where there is one for each of them.
* Workers compute in the caller's floating-point mode: what it flushes to zero, they do.
* `busy` is held by the one region that runs in parallel; a nested or concurrent region runs its
  parts in place.  Workers start with the first region that could use them.
* After a fork the child has no workers: the state is cleared and the next region starts new ones,
  also where the fork happened while a region ran in another thread.
* At exit `busy` is taken for good and the workers are joined, before LLVM frees their code.
* A pool of one, and any where there are no POSIX threads (Windows), runs parts in a loop.

Relies on `target.py`, and on the disk cache for its object; compiled kernels rely on it.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import math
import os
import signal
import sys
import time

from ... import config
from . import host, objects, target

SPIN = 50e-6                                     # seconds an idle worker spins before it sleeps
LIGHT = 60                                       # us of a region that are not worth to wake for
ALONE = 1 << 62                                  # told with it, the caller runs all parts itself
MOST = 255                                       # workers, at most

SERIAL = """
; told = us << 32 | parts, or ALONE | parts.
define internal i64 @parts.of(i64 %told) nounwind alwaysinline {
  %light = icmp sgt i64 %told, 4294967295
  %low = and i64 %told, 4294967295
  %parts = select i1 %light, i64 %low, i64 %told
  ret i64 %parts
}

define internal void @serial(ptr %fn, ptr %ctx, i64 %parts) nounwind {
entry:
  br label %head
head:
  %part = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %part, %parts
  br i1 %more, label %body, label %done
body:
  call void %fn(ptr %ctx, i64 %part)
  %next = add i64 %part, 1
  br label %head
done:
  ret void
}
"""

WITHOUT_THREADS = SERIAL + """
define void @fg.par_run(ptr %fn, ptr %ctx, i64 %told) nounwind {
  %parts = call i64 @parts.of(i64 %told)
  call void @serial(ptr %fn, ptr %ctx, i64 %parts)
  ret void
}
"""

WITH_THREADS = SERIAL + """
; Every variable that one thread spins on has a cache line (two, for the prefetcher) of its own.
@ticket   = internal global [16 x i64] zeroinitializer, align 128
@finished = internal global [16 x i64] zeroinitializer, align 128     ; parts done in this region
@sleepers = internal global [16 x i64] zeroinitializer, align 128
@busy     = internal global [16 x i64] zeroinitializer, align 128
@region   = internal global [16 x i64] zeroinitializer, align 128     ; body, ctx, parts, mode
@unwoken  = internal global i64 0                                     ; us of light regions so far
@stop     = internal global i64 0
@wanted   = internal global i64 0                                     ; workers, once started
@workers  = internal global i64 0                                     ; workers there are
@started  = internal global i64 0
@avoided  = internal global i64 0                                     ; 1 + a processor, 0 if none
@spins    = internal global i64 0
@mutex    = internal global [16 x i64] zeroinitializer, align 64
@bell     = internal global [16 x i64] zeroinitializer, align 64
@threads  = internal global [256 x i64] zeroinitializer

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sched_yield()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
PAUSE_DECLARATION
APART

define internal void @pause() nounwind alwaysinline {
  PAUSE
  ret void
}

; Takes and runs parts until none is left in the region that runs now.
define internal void @drain() nounwind {
entry:
  br label %look
look:
  %now = load atomic i64, ptr @ticket seq_cst, align 8
  %left = and i64 %now, 4294967295
  %none = icmp eq i64 %left, 0
  br i1 %none, label %done, label %try
try:
  ; The exchange fails if the region changed after the ticket was read: these belong to it.
  %fn = load atomic ptr, ptr @region monotonic, align 8
  %ctx = load atomic ptr, ptr getelementptr (i64, ptr @region, i64 1) monotonic, align 8
  %parts = load atomic i64, ptr getelementptr (i64, ptr @region, i64 2) monotonic, align 8
  %mode = load atomic i64, ptr getelementptr (i64, ptr @region, i64 3) monotonic, align 8
  %then = sub i64 %now, 1
  %swap = cmpxchg ptr @ticket, i64 %now, i64 %then seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %meet, label %look
meet:
  %own = call i64 @mode()
  %same = icmp eq i64 %own, %mode
  br i1 %same, label %run, label %change
change:
  call void @set.mode(i64 %mode)
  br label %run
run:
  %part = sub i64 %parts, %left
  call void %fn(ptr %ctx, i64 %part)
  %before = atomicrmw add ptr @finished, i64 1 seq_cst
  br label %look
done:
  ret void
}

define internal ptr @worker(ptr %unused) nounwind {
entry:
  br label %work
work:
  call void @drain()
  %most = load i64, ptr @spins
  br label %spin
spin:
  %n = phi i64 [ 0, %work ], [ %n1, %idle ]
  %now = load atomic i64, ptr @ticket seq_cst, align 8
  %left = and i64 %now, 4294967295
  %some = icmp ne i64 %left, 0
  br i1 %some, label %work, label %idle
idle:
  call void @pause()
  %n1 = add i64 %n, 1
  %more = icmp slt i64 %n1, %most
  br i1 %more, label %spin, label %sleep
sleep:
  call i32 @pthread_mutex_lock(ptr @mutex)
  atomicrmw add ptr @sleepers, i64 1 seq_cst
  br label %check
check:
  %stopping = load atomic i64, ptr @stop seq_cst, align 8
  %leave = icmp ne i64 %stopping, 0
  br i1 %leave, label %wake, label %check.work
check.work:
  %later = load atomic i64, ptr @ticket seq_cst, align 8
  %later.left = and i64 %later, 4294967295
  %called = icmp ne i64 %later.left, 0
  br i1 %called, label %wake, label %wait
wait:
  call i32 @pthread_cond_wait(ptr @bell, ptr @mutex)
  br label %check
wake:
  atomicrmw sub ptr @sleepers, i64 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br i1 %leave, label %bye, label %work
bye:
  ret ptr null
}

define internal void @ring() nounwind {
  call i32 @pthread_mutex_lock(ptr @mutex)
  call i32 @pthread_cond_broadcast(ptr @bell)
  call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}

; Starts the workers; the caller holds busy.  They take no signals: those are Python's.
define internal void @start() nounwind noinline {
entry:
  %all = alloca [128 x i64]
  %old = alloca [128 x i64]
  store i64 1, ptr @started
  call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  call i32 @pthread_cond_init(ptr @bell, ptr null)
  call i32 @sigfillset(ptr %all)
  call i32 @pthread_sigmask(i32 SETMASK, ptr %all, ptr %old)
  %wanted = load i64, ptr @wanted
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %next, %made ]
  %more = icmp slt i64 %n, %wanted
  br i1 %more, label %make, label %done
make:
  %place = getelementptr i64, ptr @threads, i64 %n
  %failed = call i32 @pthread_create(ptr %place, ptr null, ptr @worker, ptr null)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %made, label %done
made:
  %next = add i64 %n, 1
  br label %head
done:
  store i64 %n, ptr @workers
  call i32 @pthread_sigmask(i32 SETMASK, ptr %old, ptr null)
  ret void
}

define void @fg.par_run(ptr %fn, ptr %ctx, i64 %told) nounwind {
entry:
  %parts = call i64 @parts.of(i64 %told)
  %wanted = load i64, ptr @wanted
  %alone = icmp eq i64 %wanted, 0
  %few = icmp slt i64 %parts, 2
  %many = icmp sgt i64 %parts, 2147483647
  %own.all = icmp sge i64 %told, ALONE
  %short = or i1 %alone, %few
  %long = or i1 %many, %own.all
  %plain = or i1 %short, %long
  br i1 %plain, label %serial, label %try
try:
  %swap = cmpxchg ptr @busy, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %own, label %serial
serial:
  call void @serial(ptr %fn, ptr %ctx, i64 %parts)
  ret void
own:
  %started = load i64, ptr @started
  %ready = icmp ne i64 %started, 0
  br i1 %ready, label %publish, label %first
first:
  call void @start()
  call void @apart()
  br label %publish
publish:
  store atomic ptr %fn, ptr @region monotonic, align 8
  store atomic ptr %ctx, ptr getelementptr (i64, ptr @region, i64 1) monotonic, align 8
  store atomic i64 %parts, ptr getelementptr (i64, ptr @region, i64 2) monotonic, align 8
  %mode = call i64 @mode()
  store atomic i64 %mode, ptr getelementptr (i64, ptr @region, i64 3) monotonic, align 8
  store atomic i64 0, ptr @finished seq_cst, align 8
  %old = load atomic i64, ptr @ticket seq_cst, align 8
  %generation = add i64 %old, 4294967296
  %new = or i64 %generation, %parts
  store atomic i64 %new, ptr @ticket seq_cst, align 8
  %asleep = load atomic i64, ptr @sleepers seq_cst, align 8
  %any = icmp ne i64 %asleep, 0
  br i1 %any, label %weigh, label %work
weigh:
  %light = icmp sgt i64 %told, 4294967295
  %us = lshr i64 %told, 32
  %before = load i64, ptr @unwoken
  %since = add i64 %before, %us
  store i64 %since, ptr @unwoken
  %rare = icmp slt i64 %since, LIGHT
  %alone.too = and i1 %light, %rare
  br i1 %alone.too, label %work, label %call
call:
  store i64 0, ptr @unwoken
  call void @apart()
  call void @ring()
  br label %work
work:
  call void @drain()
  br label %wait
wait:
  %n = phi i64 [ 0, %work ], [ %n1, %again ]
  %done = load atomic i64, ptr @finished seq_cst, align 8
  %all = icmp eq i64 %done, %parts
  br i1 %all, label %free, label %spin
spin:
  call void @pause()
  %n1 = add i64 %n, 1
  %late = icmp sgt i64 %n1, 20000
  br i1 %late, label %yield, label %again
yield:
  call i32 @sched_yield()
  br label %again
again:
  br label %wait
free:
  store atomic i64 0, ptr @busy seq_cst, align 8
  ret void
}

define void @configure(i64 %workers, i64 %spins) nounwind {
  store i64 %spins, ptr @spins
  store i64 %workers, ptr @wanted
  ret void
}

define void @pauses(i64 %count) nounwind {
entry:
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %next, %head ]
  call void @pause()
  %next = add i64 %n, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %head, label %done
done:
  ret void
}

; In the child of a fork: no worker is left, and nobody holds anything.
define void @forget() nounwind {
  store i64 0, ptr @ticket
  store i64 0, ptr @sleepers
  store i64 0, ptr @busy
  store i64 0, ptr @workers
  store i64 0, ptr @started
  store i64 0, ptr @avoided
  call void @llvm.memset.p0.i64(ptr @mutex, i8 0, i64 128, i1 false)
  call void @llvm.memset.p0.i64(ptr @bell, i8 0, i64 128, i1 false)
  ret void
}

; Takes busy for good, so that later regions run in place, and waits for the workers to leave.
define void @finish() nounwind {
entry:
  br label %take
take:
  %swap = cmpxchg ptr @busy, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %leave, label %yield
yield:
  call i32 @sched_yield()
  br label %take
leave:
  %started = load i64, ptr @started
  %any = icmp ne i64 %started, 0
  br i1 %any, label %tell, label %done
tell:
  store atomic i64 1, ptr @stop seq_cst, align 8
  call void @ring()
  %workers = load i64, ptr @workers
  br label %head
head:
  %n = phi i64 [ 0, %tell ], [ %next, %join ]
  %more = icmp slt i64 %n, %workers
  br i1 %more, label %join, label %done
join:
  %place = getelementptr i64, ptr @threads, i64 %n
  %thread = load i64, ptr %place
  call i32 @pthread_join(i64 %thread, ptr null)
  %next = add i64 %n, 1
  br label %head
done:
  ret void
}
"""

# Workers keep off the processor that the caller is on, of those that it may be on.
APART = """
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare i64 @llvm.ctpop.i64(i64)

define internal void @apart() nounwind noinline {
entry:
  %mask = alloca [128 x i64]
  %short = call i32 @sched_getcpu()
  %cpu = sext i32 %short to i64
  %number = add i64 %cpu, 1
  %avoided = load i64, ptr @avoided
  %same = icmp eq i64 %number, %avoided
  %strange = icmp uge i64 %cpu, 8192
  %leave = or i1 %same, %strange
  br i1 %leave, label %done, label %ask
ask:
  call void @llvm.memset.p0.i64(ptr %mask, i8 0, i64 1024, i1 false)
  %failed = call i32 @sched_getaffinity(i32 0, i64 1024, ptr %mask)
  %good = icmp sge i32 %failed, 0
  br i1 %good, label %clear, label %done
clear:
  %word = lshr i64 %cpu, 6
  %place = getelementptr i64, ptr %mask, i64 %word
  %position = and i64 %cpu, 63
  %bit = shl i64 1, %position
  %others = xor i64 %bit, -1
  %all = load i64, ptr %place
  %rest = and i64 %all, %others
  store i64 %rest, ptr %place
  br label %count
count:
  %i = phi i64 [ 0, %clear ], [ %i1, %count ]
  %sum = phi i64 [ 0, %clear ], [ %sum1, %count ]
  %at = getelementptr i64, ptr %mask, i64 %i
  %bits = load i64, ptr %at
  %ones = call i64 @llvm.ctpop.i64(i64 %bits)
  %sum1 = add i64 %sum, %ones
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, 128
  br i1 %more, label %count, label %weigh
weigh:
  %workers = load i64, ptr @workers
  %enough = icmp sge i64 %sum1, %workers
  br i1 %enough, label %set, label %done
set:
  store i64 %number, ptr @avoided
  br label %head
head:
  %n = phi i64 [ 0, %set ], [ %n1, %body ]
  %any = icmp slt i64 %n, %workers
  br i1 %any, label %body, label %done
body:
  %thread.at = getelementptr i64, ptr @threads, i64 %n
  %thread = load i64, ptr %thread.at
  call i32 @pthread_setaffinity_np(i64 %thread, i64 1024, ptr %mask)
  %n1 = add i64 %n, 1
  br label %head
done:
  ret void
}
"""
ANYWHERE = """
define internal void @apart() nounwind {
  ret void
}
"""

PAUSES = {                                       # by architecture: declaration, instruction
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
PAUSES["arm64"] = PAUSES["aarch64"]

# The register that says how a thread rounds and whether it flushes denormal numbers to zero,
# without the flags of what has happened; and the bits that flush results and arguments.
X86_MODE = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define i64 @mode() nounwind {
  %at = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %all = load i32, ptr %at
  %mode = and i32 %all, -64
  %wide = zext i32 %mode to i64
  ret i64 %wide
}

define void @set.mode(i64 %mode) nounwind {
  %at = alloca i32
  %short = trunc i64 %mode to i32
  store i32 %short, ptr %at
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void
}
"""

ARM_MODE = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)

define i64 @mode() nounwind {
  %mode = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %mode
}

define void @set.mode(i64 %mode) nounwind {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}
"""

NO_MODE = """
define i64 @mode() nounwind {
  ret i64 0
}

define void @set.mode(i64 %mode) nounwind {
  ret void
}
"""

MODES = {"x86_64": (X86_MODE, 0x8040), "aarch64": (ARM_MODE, 1 << 24)}
MODES["arm64"] = MODES["aarch64"]


def architecture():
    """The processor's, as the triple has it."""
    return host.HOST.triple.split("-")[0]


def float_mode():
    """(text of @mode and @set.mode, the bits that flush denormal numbers, 0 where there are none).
    """
    return MODES.get(architecture(), (NO_MODE, 0))


def has_threads():
    """Are there POSIX threads in this process?"""
    return sys.platform != "win32" and hasattr(signal, "pthread_sigmask")


def told(parts, us):
    """What @fg.par_run is told of a region that takes one thread so many microseconds."""
    return parts | max(1, math.ceil(us)) << 32 if us < LIGHT else parts


def text(size):
    """The module of a pool of `size` threads, for this machine."""
    head = f'target triple = "{host.HOST.triple}"\n' + float_mode()[0]
    if size == 1:
        return head + WITHOUT_THREADS
    declaration, pause = PAUSES.get(architecture(), ("", ""))
    apart = APART if sys.platform == "linux" else ANYWHERE
    body = WITH_THREADS.replace("APART", apart)
    body = body.replace("PAUSE_DECLARATION", declaration).replace("PAUSE", pause)
    return head + numbered(body, SETMASK=int(signal.SIG_SETMASK), LIGHT=LIGHT, ALONE=ALONE)


def numbered(text, **numbers):
    """The text with these numbers, or more text, in place of their names."""
    for name, number in numbers.items():
        text = text.replace(name, str(number))
    return text


class Pool:
    """The process's pool: `size` threads, the caller included.

    Its state lives in its module, which @fg.par_run alone changes once it is configured.
    """

    def __init__(self, size):
        self.size, self.library = min(size, MOST + 1) if has_threads() else 1, None

    def loaded(self):
        """The pool's module, loaded: what is loaded later knows its @fg.par_run."""
        with target.loading:
            if self.library is None:
                [built] = objects.of([text(self.size)])
                self.library = target.load(built)
                target.add_symbol("fg.par_run", self.library.address("fg.par_run"))
                if self.size > 1:
                    self.function("configure", 2)(self.size - 1, self.spins())
                    atexit.register(self.function("finish"))
                    os.register_at_fork(after_in_child=self.function("forget"))
            return self.library

    def function(self, name, integers=0, result=None):
        """A function of the module, callable from Python."""
        kind = ctypes.CFUNCTYPE(result, *[ctypes.c_int64] * integers)
        return kind(self.loaded().address(name))

    def spins(self):
        """How many pauses take SPIN seconds; one takes 3 to 50 ns, depending on the processor."""
        pauses, count = self.function("pauses", 1), 200

        def took():
            start = time.perf_counter()
            pauses(count)
            return time.perf_counter() - start
        return max(100, round(SPIN * count / min(took() for _ in range(4))))

    @functools.cached_property
    def run(self):
        """run(body_address, context_address, parts): a compiled body for every part, until all are
        done.
        """
        pointer = ctypes.c_void_p
        kind = ctypes.CFUNCTYPE(None, pointer, pointer, ctypes.c_int64)
        return kind(self.loaded().address("fg.par_run"))


@functools.cache
def made():
    return Pool(config.threads())


def pool():
    """The process's pool, made at first use.

    Its module is loaded with the first program, its threads start with the first parallel region.
    """
    with target.loading:
        return made()
