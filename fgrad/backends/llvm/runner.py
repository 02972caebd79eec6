"""The native runner: it walks a Plan's steps without Python, written once and compiled once.

A plan in memory is one array of i64:

    [0] is it tried?   [1] arena bytes   [2] external pointers   [3] further slots
    [4] most arguments   [5] an arena kept between calls, or 0
    [6] calls since it was tried   [7] ns of the quickest by all threads   [8] and by one
    then the offset in the arena of each further slot,
    then instructions: an Op and its operands, up to Op.END

Slots below [2] are external pointers (inputs, outputs, the plan itself, constants).  The plan
travels as the first constant, so one function runs every plan.  The arena is taken out of its slot
while a call runs, so that threads which call one function at the same time each have their own.

To hand data to each other, one short kernel after another, can take several threads longer than one
takes for all: where their caches are far apart, as in many a virtual machine, or others want the
processors.  So a plan of short kernels is tried: TRIED calls by all threads, as many in which the
caller runs all parts, in the same order, and then EACH calls in all the quicker way.

A run ends early where a Python step raises, a signal handler does (Ctrl-C), or memory lacks.  Jumps
back look at the clock, seldom enough to cost nothing, and every 0.2 s let Python handle its
signals.  The exception is then the thread's current one, as after any function of CPython's C
interface, and the results are to be thrown away.  One kernel that runs for long is not stopped.
"""

from __future__ import annotations

import ctypes
import time
import weakref

import numpy as np

from . import threads

ARENA, CALLS, HEADER = 5, 6, 9           # places in a plan: see above
TRIED, EACH = 6, 500
PYTHON = 0                 # as a CALL's parts: the function is a Python callable


class Op:
    """Instructions, and their operands; a delta counts from the next instruction.

    END                             CALL function, parts, count, slots…
    CALL with PYTHON for parts: a callable, given the address of its pointers; ends if it raises
    ENTER function, slot: its arguments are the slots from there on
    LOOP function, slot: likewise, of a function that looks at the clock; ends if it returns true
    TURNS groups, words, then the words of a list for @turns, a slot for every pointer, then the
    number of these and where in the list each is
    COPY to, from, bytes            SWAP a, b: the two slots change places
    SET to, from, bytes: a slot is another's pointer, moved by some bytes
    PUT slot, number                AGAIN slot, delta: counts down, and jumps while not at 0
    JUMP delta                      UNLESS slot, delta: jumps if its byte is 0
    CHOOSE slot, n, deltas…: jumps by its i32, moved into 0..n
    WRITE slot, number: its i32     BUMP slot, number: added to its i32
    """
    END = 0
    CALL = 1
    COPY = 2
    SWAP = 3
    SET = 4
    PUT = 5
    AGAIN = 6
    JUMP = 7
    UNLESS = 8
    CHOOSE = 9
    WRITE = 10
    BUMP = 11
    ENTER = 12
    TURNS = 13
    LOOP = 14


FROM_PYTHON = (            # functions of CPython that the text calls
    "PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "Py_DecRef",
    "PyLong_FromVoidPtr", "PyObject_CallFunctionObjArgs", "PyEval_SaveThread",
    "PyEval_RestoreThread", "Py_IsInitialized", "PyErr_NoMemory")

POSIX_CLOCK = """
declare i32 @clock_gettime(i32, ptr)

define internal i64 @now() nounwind uwtable {
  %at = alloca [2 x i64]
  %ignored = call i32 @clock_gettime(i32 MONOTONIC, ptr %at)
  %more.at = getelementptr i64, ptr %at, i64 1
  %seconds = load i64, ptr %at
  %more = load i64, ptr %more.at
  %scaled = mul i64 %seconds, 1000000000
  %time = add i64 %scaled, %more
  ret i64 %time
}
""".replace("MONOTONIC", str(getattr(time, "CLOCK_MONOTONIC", "")))

WINDOWS_CLOCK = """
declare i64 @GetTickCount64()

define internal i64 @now() nounwind {
  %ticks = call i64 @GetTickCount64()
  %time = mul i64 %ticks, 1000000
  ret i64 %time
}
"""


def with_heads(text):
    """The text with the head of each instruction written out, such as `copy(to*, from*, bytes):`.

    Operands are %copy.to, …, of i64 if no type is written.  One with a star is a slot:
    %copy.to.slot is where its pointer lies, %copy.to.pointer that.  %copy.behind: what follows.
    """
    return "\n".join([head(line) if line.endswith("):") else line for line in text.split("\n")])


def head(line):
    """A head, written out."""
    name, operands = line.removesuffix("):").split("(")
    operands, lines = operands.split(", "), [f"{name}:"]
    for k, operand in enumerate(operands, 1):
        kind, _, word = operand.rpartition(" ")
        x = f"%{name}.{word.rstrip('*')}"
        lines += [f"{x}.at = getelementptr i64, ptr %pc, i64 {k}",
                  f"{x} = load {kind or 'i64'}, ptr {x}.at, align 8"]
        if word.endswith("*"):
            lines += [f"{x}.slot = getelementptr ptr, ptr %table, i64 {x}",
                      f"{x}.pointer = load ptr, ptr {x}.slot, align 8"]
    lines.append(f"%{name}.behind = getelementptr i64, ptr %pc, i64 {len(operands) + 1}")
    return "\n  ".join(lines)


CLOCK = POSIX_CLOCK if hasattr(time, "CLOCK_MONOTONIC") else WINDOWS_CLOCK
LABELS = "  ".join(f"i64 {number}, label %{name.lower()}" for name, number in vars(Op).items()
                   if name.isupper() and number != Op.END)
IR = CLOCK + with_heads("""
%Watch = type { i64, i64, i64, i64 }   ; jumps until the next look, and after it; times, in ns, of
                                       ; the last look and of the last question for signals

declare void @fg.par_run(ptr, ptr, i64)
declare ptr @fg.heap.new(i64)
declare void @fg.heap.free(ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @Py_DecRef(ptr)
declare ptr @PyLong_FromVoidPtr(ptr)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @Py_IsInitialized()
declare ptr @PyErr_NoMemory()

; Calls a Python callable with the address of its pointers; true if it raised.
define internal i1 @python(ptr %callable, ptr %pointers) nounwind uwtable {
entry:
  %lock = call i32 @PyGILState_Ensure()
  %number = call ptr @PyLong_FromVoidPtr(ptr %pointers)
  %none = icmp eq ptr %number, null
  br i1 %none, label %done, label %enter
enter:
  %out = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %callable, ptr %number, ptr null)
  call void @Py_DecRef(ptr %number)
  %failed = icmp eq ptr %out, null
  br i1 %failed, label %done, label %good
good:
  call void @Py_DecRef(ptr %out)
  br label %done
done:
  %raised = phi i1 [ true, %entry ], [ true, %enter ], [ false, %good ]
  call void @PyGILState_Release(i32 %lock)
  ret i1 %raised
}

; Looks at the clock, and lets Python handle signals when it is time; true if a handler raised.
; Looks are 1, 2, 4… 256 jumps apart while less than 1 ms lies between them.
define i1 @fg.look(ptr %watch) nounwind uwtable noinline {
entry:
  %apart.at = getelementptr %Watch, ptr %watch, i32 0, i32 1
  %last.at = getelementptr %Watch, ptr %watch, i32 0, i32 2
  %asked.at = getelementptr %Watch, ptr %watch, i32 0, i32 3
  %apart = load i64, ptr %apart.at
  %last = load i64, ptr %last.at
  %asked = load i64, ptr %asked.at
  %now = call i64 @now()
  %took = sub i64 %now, %last
  %quick = icmp slt i64 %took, 1000000
  %twice = shl i64 %apart, 1
  %capped = call i64 @llvm.smin.i64(i64 %twice, i64 256)
  %wait = select i1 %quick, i64 %capped, i64 1
  store i64 %wait, ptr %watch
  store i64 %wait, ptr %apart.at
  store i64 %now, ptr %last.at
  %first = icmp eq i64 %asked, 0
  br i1 %first, label %begin, label %running
begin:
  store i64 %now, ptr %asked.at
  ret i1 false
running:
  %since = sub i64 %now, %asked
  %due = icmp sgt i64 %since, 200000000
  br i1 %due, label %ask, label %early
early:
  ret i1 false
ask:                                   ; a daemon thread may outlive the interpreter
  store i64 %now, ptr %asked.at
  %alive = call i32 @Py_IsInitialized()
  %ended = icmp eq i32 %alive, 0
  br i1 %ended, label %early, label %signals
signals:
  %lock = call i32 @PyGILState_Ensure()
  %answer = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %lock)
  %raised = icmp ne i32 %answer, 0
  ret i1 %raised
}

; A group of shares: for each share the functions in order.  %list: shares of a group, functions,
; most arguments; then of each function its address, the number of its arguments, and (pointer,
; bytes of a share) of each: 0, or so many that groups have a place for one share each.
define internal void @turns(ptr %list, i64 %group) nounwind {
entry:
  %each = load i64, ptr %list, align 8
  %n.at = getelementptr i64, ptr %list, i64 1
  %n = load i64, ptr %n.at, align 8
  %most.at = getelementptr i64, ptr %list, i64 2
  %most = load i64, ptr %most.at, align 8
  %calls = getelementptr i64, ptr %list, i64 3
  %arguments = alloca ptr, i64 %most, align 64
  %first = mul i64 %group, %each
  %end = add i64 %first, %each
  br label %share
share:
  %s = phi i64 [ %first, %entry ], [ %s1, %shared ]
  %more = icmp slt i64 %s, %end
  br i1 %more, label %back, label %done
back:
  %shares = sub i64 %group, %s
  br label %next
next:
  %k = phi i64 [ 0, %back ], [ %k1, %run ]
  %call = phi ptr [ %calls, %back ], [ %pair, %run ]
  %left = icmp slt i64 %k, %n
  br i1 %left, label %prepare, label %shared
prepare:
  %function = load ptr, ptr %call, align 8
  %count.at = getelementptr i64, ptr %call, i64 1
  %count = load i64, ptr %count.at, align 8
  %pairs = getelementptr i64, ptr %call, i64 2
  br label %argument
argument:
  %a = phi i64 [ 0, %prepare ], [ %a1, %place ]
  %pair = phi ptr [ %pairs, %prepare ], [ %pair.next, %place ]
  %a.more = icmp slt i64 %a, %count
  br i1 %a.more, label %place, label %run
place:
  %pointer = load ptr, ptr %pair, align 8
  %bytes.at = getelementptr i64, ptr %pair, i64 1
  %bytes = load i64, ptr %bytes.at, align 8
  %moved = mul i64 %bytes, %shares
  %there = getelementptr i8, ptr %pointer, i64 %moved
  %to = getelementptr ptr, ptr %arguments, i64 %a
  store ptr %there, ptr %to, align 8
  %pair.next = getelementptr i64, ptr %pair, i64 2
  %a1 = add i64 %a, 1
  br label %argument
run:
  call void %function(ptr %arguments, i64 %s)
  %k1 = add i64 %k, 1
  br label %next
shared:
  %s1 = add i64 %s, 1
  br label %share
done:
  ret void
}

; fg.run without the interpreter's lock, for a caller that holds it.
define void @fg.run.unlocked(ptr %external, ptr %constants) nounwind uwtable {
  %thread = call ptr @PyEval_SaveThread()
  call void @fg.run(ptr %external, ptr %constants)
  call void @PyEval_RestoreThread(ptr %thread)
  ret void
}

; The bit that says that a run's regions are the caller's alone, or 0; and, where it is tried, when
; it began, in ns.  %state: [6] of a plan.
define internal i64 @trial.begun(ptr %state, ptr %since) nounwind uwtable {
entry:
  %calls = load i64, ptr %state, align 8
  %trying = icmp slt i64 %calls, TWICE
  br i1 %trying, label %try, label %chosen
try:
  %now = call i64 @now()
  store i64 %now, ptr %since, align 8
  %second = icmp sge i64 %calls, TRIED
  %half = select i1 %second, i64 ALONE, i64 0
  ret i64 %half
chosen:
  store i64 0, ptr %since, align 8
  %all.at = getelementptr i64, ptr %state, i64 1
  %all = load i64, ptr %all.at, align 8
  %one.at = getelementptr i64, ptr %state, i64 2
  %one = load i64, ptr %one.at, align 8
  %eighth = lshr i64 %all, 3
  %limit = sub i64 %all, %eighth
  %quicker = icmp slt i64 %one, %limit
  %bit = select i1 %quicker, i64 ALONE, i64 0
  ret i64 %bit
}

define internal void @trial.ended(ptr %state, ptr %since) nounwind uwtable {
entry:
  %calls = load i64, ptr %state, align 8
  %next = add i64 %calls, 1
  %again = icmp sge i64 %next, EACH
  %count = select i1 %again, i64 0, i64 %next
  store i64 %count, ptr %state, align 8
  %start = load i64, ptr %since, align 8
  %tried = icmp ne i64 %start, 0
  br i1 %tried, label %note, label %done
note:
  %now = call i64 @now()
  %took = sub i64 %now, %start
  %second = icmp sge i64 %calls, TRIED
  %k = select i1 %second, i64 2, i64 1
  %place = getelementptr i64, ptr %state, i64 %k
  %old = load i64, ptr %place, align 8
  %least = call i64 @llvm.smin.i64(i64 %old, i64 %took)
  %zero = icmp eq i64 %calls, 0
  %turned = icmp eq i64 %calls, TRIED
  %first = or i1 %zero, %turned
  %new = select i1 %first, i64 %took, i64 %least
  store i64 %new, ptr %place, align 8
  br label %done
done:
  ret void
}

; null and a MemoryError where there is none.
define internal ptr @arena.new(i64 %bytes) nounwind uwtable {
entry:
  %arena = call ptr @fg.heap.new(i64 %bytes)
  %failed = icmp eq ptr %arena, null
  br i1 %failed, label %fail, label %done
fail:
  %lock = call i32 @PyGILState_Ensure()
  %error = call ptr @PyErr_NoMemory()
  call void @PyGILState_Release(i32 %lock)
  br label %done
done:
  ret ptr %arena
}

define void @arena.free(ptr %arena) nounwind {
entry:
  %none = icmp eq ptr %arena, null
  br i1 %none, label %done, label %some
some:
  call void @fg.heap.free(ptr %arena)
  br label %done
done:
  ret void
}

define void @fg.run(ptr %external, ptr %constants) nounwind uwtable {
entry:
  %plan = load ptr, ptr %constants, align 8
  %p1 = getelementptr i64, ptr %plan, i64 1
  %bytes = load i64, ptr %p1, align 8
  %p2 = getelementptr i64, ptr %plan, i64 2
  %outside = load i64, ptr %p2, align 8
  %p3 = getelementptr i64, ptr %plan, i64 3
  %temporaries = load i64, ptr %p3, align 8
  %p4 = getelementptr i64, ptr %plan, i64 4
  %most = load i64, ptr %p4, align 8
  %slot = getelementptr i64, ptr %plan, i64 5
  %state = getelementptr i64, ptr %plan, i64 CALLS
  %offsets = getelementptr i64, ptr %plan, i64 HEADER
  %tried.word = load i64, ptr %plan, align 8
  %tried = icmp ne i64 %tried.word, 0
  %since = alloca i64, align 8
  %all = add i64 %outside, %temporaries
  %table = alloca ptr, i64 %all, align 64
  %arguments = alloca ptr, i64 %most, align 64
  %watch = alloca %Watch, align 8
  store %Watch { i64 1, i64 1, i64 0, i64 0 }, ptr %watch
  %size = mul i64 %outside, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %table, ptr %external, i64 %size, i1 false)
  %wanted = icmp sgt i64 %bytes, 0
  br i1 %wanted, label %take, label %ready
take:
  %kept = atomicrmw xchg ptr %slot, i64 0 seq_cst
  %empty = icmp eq i64 %kept, 0
  br i1 %empty, label %make, label %have
make:
  %made = call ptr @arena.new(i64 %bytes)
  %made.number = ptrtoint ptr %made to i64
  %short = icmp eq ptr %made, null
  br i1 %short, label %out, label %have
have:
  %number = phi i64 [ %kept, %take ], [ %made.number, %make ]
  %arena = inttoptr i64 %number to ptr
  br label %next
next:
  %t = phi i64 [ 0, %have ], [ %t1, %place ]
  %t.more = icmp slt i64 %t, %temporaries
  br i1 %t.more, label %place, label %ready
place:
  %o = getelementptr i64, ptr %offsets, i64 %t
  %offset = load i64, ptr %o, align 8
  %address = getelementptr i8, ptr %arena, i64 %offset
  %at = add i64 %outside, %t
  %entry.t = getelementptr ptr, ptr %table, i64 %at
  store ptr %address, ptr %entry.t, align 8
  %t1 = add i64 %t, 1
  br label %next
ready:
  %mine = phi i64 [ 0, %entry ], [ %number, %next ]
  %first = getelementptr i64, ptr %offsets, i64 %temporaries
  br i1 %tried, label %try, label %begin
try:
  %own = call i64 @trial.begun(ptr %state, ptr %since)
  br label %begin
begin:
  %alone = phi i64 [ 0, %ready ], [ %own, %try ]
  br label %step
step:
  %pc = phi ptr [ %first, %begin ], [ %call.next, %serial ], [ %call.next, %parallel ],
      [ %call.next, %python ], [ %copy.behind, %copy ], [ %swap.behind, %swap ],
      [ %set.behind, %set ], [ %put.behind, %put ], [ %again.behind, %again ],
      [ %jump.next, %jump ], [ %back.next, %back ], [ %back.next, %look ],
      [ %unless.next, %unless ], [ %choose.next, %choose ], [ %write.behind, %write ],
      [ %bump.behind, %bump ], [ %enter.behind, %enter ], [ %loop.behind, %loop ],
      [ %point.at, %turn ]
  %op = load i64, ptr %pc, align 8
  switch i64 %op, label %done [ OPS ]
call(ptr function, parts, count):
  %call.next = getelementptr i64, ptr %call.behind, i64 %call.count
  br label %argument
argument:
  %a = phi i64 [ 0, %call ], [ %a1, %take.one ]
  %a.more = icmp slt i64 %a, %call.count
  br i1 %a.more, label %take.one, label %start
take.one:
  %n.at = getelementptr i64, ptr %call.behind, i64 %a
  %n = load i64, ptr %n.at, align 8
  %from = getelementptr ptr, ptr %table, i64 %n
  %pointer = load ptr, ptr %from, align 8
  %to = getelementptr ptr, ptr %arguments, i64 %a
  store ptr %pointer, ptr %to, align 8
  %a1 = add i64 %a, 1
  br label %argument
start:
  switch i64 %call.parts, label %parallel [ i64 1, label %serial  i64 0, label %python ]
python:
  %raised = call i1 @python(ptr %call.function, ptr %arguments)
  br i1 %raised, label %done, label %step
serial:
  call void %call.function(ptr %arguments, i64 0)
  br label %step
parallel:
  %call.told = or i64 %call.parts, %alone
  call void @fg.par_run(ptr %call.function, ptr %arguments, i64 %call.told)
  br label %step
turns(groups, words):
  %list.end = getelementptr i64, ptr %turns.behind, i64 %turns.words
  %turns.size = mul i64 %turns.words, 8
  call void @llvm.memcpy.p0.p0.i64(
      ptr %arguments, ptr %turns.behind, i64 %turns.size, i1 false)
  %slots.at = getelementptr i64, ptr %list.end, i64 1
  %slots = load i64, ptr %list.end, align 8
  br label %point
point:
  %point.k = phi i64 [ 0, %turns ], [ %point.k1, %point.one ]
  %point.at = getelementptr i64, ptr %slots.at, i64 %point.k
  %point.more = icmp slt i64 %point.k, %slots
  br i1 %point.more, label %point.one, label %turn
point.one:
  %point.word = load i64, ptr %point.at, align 8
  %point.place = getelementptr i64, ptr %arguments, i64 %point.word
  %point.slot = load i64, ptr %point.place, align 8
  %point.from = getelementptr ptr, ptr %table, i64 %point.slot
  %point.pointer = load ptr, ptr %point.from, align 8
  store ptr %point.pointer, ptr %point.place, align 8
  %point.k1 = add i64 %point.k, 1
  br label %point
turn:
  %turns.told = or i64 %turns.groups, %alone
  call void @fg.par_run(ptr @turns, ptr %arguments, i64 %turns.told)
  br label %step
copy(to*, from*, bytes):
  call void @llvm.memmove.p0.p0.i64(
      ptr %copy.to.pointer, ptr %copy.from.pointer, i64 %copy.bytes, i1 false)
  br label %step
swap(a*, b*):
  store ptr %swap.b.pointer, ptr %swap.a.slot, align 8
  store ptr %swap.a.pointer, ptr %swap.b.slot, align 8
  br label %step
set(to*, from*, bytes):
  %set.moved = getelementptr i8, ptr %set.from.pointer, i64 %set.bytes
  store ptr %set.moved, ptr %set.to.slot, align 8
  br label %step
put(slot*, number):
  store i64 %put.number, ptr %put.slot.slot, align 8
  br label %step
again(slot*, delta):
  %again.left = load i64, ptr %again.slot.slot, align 8
  %again.less = sub i64 %again.left, 1
  store i64 %again.less, ptr %again.slot.slot, align 8
  %again.more = icmp sgt i64 %again.less, 0
  %again.next = getelementptr i64, ptr %again.behind, i64 %again.delta
  br i1 %again.more, label %back, label %step
jump(delta):
  %jump.next = getelementptr i64, ptr %jump.behind, i64 %jump.delta
  %jump.back = icmp slt i64 %jump.delta, 0
  br i1 %jump.back, label %back, label %step
back:
  %back.next = phi ptr [ %again.next, %again ], [ %jump.next, %jump ]
  %back.left = load i64, ptr %watch
  %back.less = sub i64 %back.left, 1
  store i64 %back.less, ptr %watch
  %back.due = icmp eq i64 %back.less, 0
  br i1 %back.due, label %look, label %step
look:
  %stopped = call i1 @fg.look(ptr %watch)
  br i1 %stopped, label %done, label %step
unless(flag*, delta):
  %unless.byte = load i8, ptr %unless.flag.pointer, align 1
  %unless.zero = icmp eq i8 %unless.byte, 0
  %unless.here = select i1 %unless.zero, i64 %unless.delta, i64 0
  %unless.next = getelementptr i64, ptr %unless.behind, i64 %unless.here
  br label %step
choose(index*, count):
  %choose.narrow = load i32, ptr %choose.index.pointer, align 4
  %choose.wide = sext i32 %choose.narrow to i64
  %choose.low = call i64 @llvm.smax.i64(i64 %choose.wide, i64 0)
  %choose.last = sub i64 %choose.count, 1
  %choose.k = call i64 @llvm.smin.i64(i64 %choose.low, i64 %choose.last)
  %choose.delta.at = getelementptr i64, ptr %choose.behind, i64 %choose.k
  %choose.delta = load i64, ptr %choose.delta.at, align 8
  %choose.from = getelementptr i64, ptr %choose.behind, i64 %choose.count
  %choose.next = getelementptr i64, ptr %choose.from, i64 %choose.delta
  br label %step
write(to*, number):
  %write.narrow = trunc i64 %write.number to i32
  store i32 %write.narrow, ptr %write.to.pointer, align 4
  br label %step
enter(ptr function, slot*):
  call void %enter.function(ptr %enter.slot.slot, i64 0)
  br label %step
loop(ptr function, slot*):
  %loop.stopped = call i1 %loop.function(ptr %loop.slot.slot, ptr %watch)
  br i1 %loop.stopped, label %done, label %step
bump(to*, number):
  %bump.narrow = trunc i64 %bump.number to i32
  %bump.old = load i32, ptr %bump.to.pointer, align 4
  %bump.new = add i32 %bump.old, %bump.narrow
  store i32 %bump.new, ptr %bump.to.pointer, align 4
  br label %step
done:
  br i1 %tried, label %note, label %noted
note:
  call void @trial.ended(ptr %state, ptr %since)
  br label %noted
noted:
  br i1 %wanted, label %give, label %out
give:
  %old = atomicrmw xchg ptr %slot, i64 %mine seq_cst
  %old.pointer = inttoptr i64 %old to ptr
  call void @arena.free(ptr %old.pointer)
  br label %out
out:
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
""")
IR = threads.numbered(IR, OPS=LABELS, TWICE=2 * TRIED, TRIED=TRIED, EACH=EACH, CALLS=CALLS,
                      HEADER=HEADER, ALONE=threads.ALONE)


class PlanTable:
    """A Plan in memory, for `fg.run`; the kept arena is freed with it.

    words: the instructions.  places: of slots behind the `outside` external ones.  tried: is it to
    be found out whether one thread is quicker?
    """

    def __init__(self, words, places, arena, outside, most, tried, free):
        head = [int(tried), arena, outside, len(places), most, 0, 0, 0, 0]
        self.words = np.array([*head, *places, *words, Op.END], np.int64)
        self.address = self.words.ctypes.data
        weakref.finalize(self, release, self.words, free)


def release(words, free):
    """Gives the kept arena back."""
    kept, words[ARENA] = int(words[ARENA]), 0
    if kept:
        free(ctypes.c_void_p(kept))
