"""The native runner: it walks a Plan's steps without Python, written once and compiled once.

A plan in memory is one array of i64:

    [0] steps   [1] arena bytes   [2] external pointers   [3] temporaries   [4] most arguments of a step
    [5] an arena kept between calls, or 0
    then the offset of each temporary in the arena,
    then for each step: function address, parts, number of arguments, their numbers

Numbers below [2] are external pointers (inputs, outputs, the plan itself, constants), then come the
temporaries.  The plan travels as the first constant, so one function runs every plan.  The arena is taken out of its slot while a call runs, so that threads which call one function at the same
time each have their own.
"""

from __future__ import annotations

import ctypes
import weakref

import numpy as np

HEADER = 6
ARENA = 5                  # the slot of the kept arena

IR = """
declare void @fg.par_run(ptr, ptr, i64)
declare ptr @malloc(i64)
declare void @free(ptr)

define internal ptr @arena.new(i64 %bytes) nounwind {
entry:
  %room = add i64 %bytes, 128
  %raw = call ptr @malloc(i64 %room)
  %from = getelementptr i8, ptr %raw, i64 127
  %number = ptrtoint ptr %from to i64
  %floor = and i64 %number, -64
  %arena = inttoptr i64 %floor to ptr
  %note = getelementptr ptr, ptr %arena, i64 -1
  store ptr %raw, ptr %note, align 8
  ret ptr %arena
}

define void @arena.free(ptr %arena) nounwind {
entry:
  %none = icmp eq ptr %arena, null
  br i1 %none, label %done, label %some
some:
  %note = getelementptr ptr, ptr %arena, i64 -1
  %raw = load ptr, ptr %note, align 8
  call void @free(ptr %raw)
  br label %done
done:
  ret void
}

define void @fg.run(ptr %external, ptr %constants) nounwind {
entry:
  %plan = load ptr, ptr %constants, align 8
  %steps = load i64, ptr %plan, align 8
  %p1 = getelementptr i64, ptr %plan, i64 1
  %bytes = load i64, ptr %p1, align 8
  %p2 = getelementptr i64, ptr %plan, i64 2
  %outside = load i64, ptr %p2, align 8
  %p3 = getelementptr i64, ptr %plan, i64 3
  %temporaries = load i64, ptr %p3, align 8
  %p4 = getelementptr i64, ptr %plan, i64 4
  %most = load i64, ptr %p4, align 8
  %slot = getelementptr i64, ptr %plan, i64 5
  %offsets = getelementptr i64, ptr %plan, i64 6
  %all = add i64 %outside, %temporaries
  %table = alloca ptr, i64 %all, align 64
  %arguments = alloca ptr, i64 %most, align 64
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
  br label %have
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
  br label %step
step:
  %s = phi i64 [ 0, %ready ], [ %s1, %ran ]
  %record = phi ptr [ %first, %ready ], [ %after, %ran ]
  %s.more = icmp slt i64 %s, %steps
  br i1 %s.more, label %fill, label %done
fill:
  %r1 = getelementptr i64, ptr %record, i64 1
  %r2 = getelementptr i64, ptr %record, i64 2
  %numbers = getelementptr i64, ptr %record, i64 3
  %function = load ptr, ptr %record, align 8
  %parts = load i64, ptr %r1, align 8
  %count = load i64, ptr %r2, align 8
  br label %argument
argument:
  %a = phi i64 [ 0, %fill ], [ %a1, %copy ]
  %a.more = icmp slt i64 %a, %count
  br i1 %a.more, label %copy, label %call
copy:
  %n.at = getelementptr i64, ptr %numbers, i64 %a
  %n = load i64, ptr %n.at, align 8
  %from = getelementptr ptr, ptr %table, i64 %n
  %pointer = load ptr, ptr %from, align 8
  %to = getelementptr ptr, ptr %arguments, i64 %a
  store ptr %pointer, ptr %to, align 8
  %a1 = add i64 %a, 1
  br label %argument
call:
  %alone = icmp sle i64 %parts, 1
  br i1 %alone, label %serial, label %parallel
serial:
  call void %function(ptr %arguments, i64 0)
  br label %ran
parallel:
  call void @fg.par_run(ptr %function, ptr %arguments, i64 %parts)
  br label %ran
ran:
  %s1 = add i64 %s, 1
  %after = getelementptr i64, ptr %numbers, i64 %count
  br label %step
done:
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
"""


class PlanTable:
    """A Plan's steps in memory, for `fg.run`.

    steps: (function address, parts, buffer numbers) triples.  The kept arena is freed with the table.
    """

    def __init__(self, steps, offsets, arena, outside, free):
        words = [len(steps), arena, outside, len(offsets), max([len(n) for _, _, n in steps], default=0) or 1, 0]
        words += offsets
        for address, parts, numbers in steps:
            words += [address, parts, len(numbers), *numbers]
        self.words = np.array(words, np.int64)
        self.address = self.words.ctypes.data
        weakref.finalize(self, release, self.words, free)


def release(words, free):
    """Gives the kept arena back."""
    kept, words[ARENA] = int(words[ARENA]), 0
    if kept:
        free(ctypes.c_void_p(kept))
