"""Memory of arrays and of what kernels work in, in large pages: `fg.heap.new` and `fg.heap.free`.

A processor keeps the places of some hundred pages at hand.  In pages of 4 KiB the operands of a
product of 512 × 512 have more, and lie in its caches where luck would have them: in pages of 2 MiB
such products take up to a fifth less time.  So blocks of LARGE bytes and more are cut from spans of
memory for which Linux is asked for large pages (MADV_HUGEPAGE); smaller ones are malloc's, and so
are all of them elsewhere.

Free blocks stand in a list, by address; the first that is large enough is taken, and neighbours are
joined again (Knuth, The Art of Computer Programming 1, 2.5).  The pages of TRIM free bytes in a row
go back to the system; addresses are kept.  A child of a fork that found another thread at work on
the list begins a new one.  Relies on `target` and `objects`; arrays of results, the runner's arenas
and, by way of `aligned`, arrays that are copied rely on it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

from ...aligned import LARGE
from . import host, objects, target

PAGE = 1 << 21             # bytes of a large page
SPAN = 1 << 25             # the fewest that are asked for at once
TRIM = 1 << 25             # of free ones in a row, from which their pages are given back
HEAD = 64                  # of what stands in front of a block; those from 16 on are the caller's

MALLOC = """
attributes #0 = { nounwind noinline optnone }     ; LLVM takes half as long, and calls are few

%Head = type { i64, ptr }   ; a block's bytes, with this; the next free one.  Of malloc's 0, and its

declare ptr @malloc(i64)
declare void @free(ptr)

; A block at a line of the cache, of malloc's; null if there is none.
define internal ptr @small(i64 %bytes) #0 {
entry:
  %room = add i64 %bytes, 128
  %raw = call ptr @malloc(i64 %room)
  %failed = icmp eq ptr %raw, null
  br i1 %failed, label %done, label %made
made:
  %number = ptrtoint ptr %raw to i64
  %beyond = add i64 %number, 127
  %line = and i64 %beyond, -64
  %block = inttoptr i64 %line to ptr
  %head = getelementptr i8, ptr %block, i64 -HEAD
  store %Head zeroinitializer, ptr %head, align 8
  %raw.at = getelementptr %Head, ptr %head, i32 0, i32 1
  store ptr %raw, ptr %raw.at, align 8
  br label %done
done:
  %given = phi ptr [ null, %entry ], [ %block, %made ]
  ret ptr %given
}

define internal void @small.free(ptr %head) #0 {
  %raw.at = getelementptr %Head, ptr %head, i32 0, i32 1
  %raw = load ptr, ptr %raw.at, align 8
  call void @free(ptr %raw)
  ret void
}
"""

ELSEWHERE = MALLOC + """
define ptr @fg.heap.new(i64 %bytes) #0 {
  %block = call ptr @small(i64 %bytes)
  ret ptr %block
}

define void @fg.heap.free(ptr %block) #0 {
  %head = getelementptr i8, ptr %block, i64 -HEAD
  call void @small.free(ptr %head)
  ret void
}

define void @fg.heap.forget() #0 {
  ret void
}
"""

LINUX = MALLOC + """
@list = internal global ptr null            ; of free blocks
@held = internal global i32 0               ; is a thread at work on it?

declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)
declare i32 @sched_yield()

define internal void @hold() #0 {
entry:
  br label %try
try:
  %old = atomicrmw xchg ptr @held, i32 1 acquire
  %mine = icmp eq i32 %old, 0
  br i1 %mine, label %done, label %wait
wait:
  %ignored = call i32 @sched_yield()
  br label %try
done:
  ret void
}

define internal void @let.go() #0 {
  store atomic i32 0, ptr @held release, align 4
  ret void
}

; The first free block of so many bytes, out of the list; null if there is none.
define internal ptr @first(i64 %room) #0 {
entry:
  br label %look
look:
  %link = phi ptr [ @list, %entry ], [ %next.at, %next ]
  %block = load ptr, ptr %link, align 8
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %compare
compare:
  %size = load i64, ptr %block, align 8
  %enough = icmp uge i64 %size, %room
  br i1 %enough, label %take, label %next
next:
  %next.at = getelementptr %Head, ptr %block, i32 0, i32 1
  br label %look
take:
  %after.at = getelementptr %Head, ptr %block, i32 0, i32 1
  %after = load ptr, ptr %after.at, align 8
  %rest = sub i64 %size, %room
  %splits = icmp uge i64 %rest, LARGE
  br i1 %splits, label %split, label %whole
split:
  %left = getelementptr i8, ptr %block, i64 %room
  %left.next = getelementptr %Head, ptr %left, i32 0, i32 1
  store i64 %rest, ptr %left, align 8
  store ptr %after, ptr %left.next, align 8
  store ptr %left, ptr %link, align 8
  store i64 %room, ptr %block, align 8
  br label %done
whole:
  store ptr %after, ptr %link, align 8
  br label %done
done:
  ret ptr %block
}

; Puts a block into the list, joined to free neighbours; gives what it is part of then.
define internal ptr @put(ptr %block) #0 {
entry:
  br label %look
look:
  %link = phi ptr [ @list, %entry ], [ %next.at, %next ]
  %before = phi ptr [ null, %entry ], [ %here, %next ]
  %here = load ptr, ptr %link, align 8
  %end = icmp eq ptr %here, null
  %behind = icmp ugt ptr %here, %block
  %stop = or i1 %end, %behind
  br i1 %stop, label %place, label %next
next:
  %next.at = getelementptr %Head, ptr %here, i32 0, i32 1
  br label %look
place:
  %size = load i64, ptr %block, align 8
  %edge = getelementptr i8, ptr %block, i64 %size
  %touches = icmp eq ptr %edge, %here
  br i1 %touches, label %join, label %placed
join:
  %here.size = load i64, ptr %here, align 8
  %here.next = getelementptr %Head, ptr %here, i32 0, i32 1
  %over = load ptr, ptr %here.next, align 8
  %both = add i64 %size, %here.size
  br label %placed
placed:
  %bytes = phi i64 [ %size, %place ], [ %both, %join ]
  %after = phi ptr [ %here, %place ], [ %over, %join ]
  %after.at = getelementptr %Head, ptr %block, i32 0, i32 1
  store i64 %bytes, ptr %block, align 8
  store ptr %after, ptr %after.at, align 8
  store ptr %block, ptr %link, align 8
  %first = icmp eq ptr %before, null
  br i1 %first, label %alone, label %look.before
look.before:
  %before.size = load i64, ptr %before, align 8
  %before.edge = getelementptr i8, ptr %before, i64 %before.size
  %follows = icmp eq ptr %before.edge, %block
  br i1 %follows, label %join.before, label %alone
join.before:
  %all = add i64 %before.size, %bytes
  store i64 %all, ptr %before, align 8
  store ptr %after, ptr %link, align 8
  ret ptr %before
alone:
  ret ptr %block
}

; Asks the system for a span that has a block of so many bytes; false if there is none.
define internal i1 @grow(i64 %room) #0 {
entry:
  %up = add i64 %room, LAST
  %whole = and i64 %up, -PAGE
  %bytes = call i64 @llvm.umax.i64(i64 %whole, i64 SPAN)
  %asked = add i64 %bytes, PAGE
  %raw = call ptr @mmap(ptr null, i64 %asked, i32 3, i32 34, i32 -1, i64 0)    ; read and write,
  %number = ptrtoint ptr %raw to i64                                           ; private, no file
  %failed = icmp eq i64 %number, -1
  br i1 %failed, label %fail, label %made
made:
  %beyond = add i64 %number, LAST
  %start = and i64 %beyond, -PAGE
  %span = inttoptr i64 %start to ptr
  %skipped = sub i64 %start, %number
  %end = getelementptr i8, ptr %span, i64 %bytes
  %left = sub i64 PAGE, %skipped
  %some = icmp ne i64 %skipped, 0
  br i1 %some, label %front, label %back
front:
  %ignored.front = call i32 @munmap(ptr %raw, i64 %skipped)
  br label %back
back:
  %ignored.back = call i32 @munmap(ptr %end, i64 %left)
  %alone = icmp ugt i64 %whole, SPAN
  %own = and i64 %room, -PAGE                    ; behind such a block no other needs a large page
  %advised = select i1 %alone, i64 %own, i64 %bytes
  %ignored = call i32 @madvise(ptr %span, i64 %advised, i32 14)      ; MADV_HUGEPAGE
  store i64 %bytes, ptr %span, align 8
  %put = call ptr @put(ptr %span)
  ret i1 true
fail:
  ret i1 false
}

; A block of so many bytes at a line of the cache; null if there is none.
define ptr @fg.heap.new(i64 %bytes) #0 {
entry:
  %large = icmp uge i64 %bytes, LARGE
  br i1 %large, label %cut, label %malloc
malloc:
  %small = call ptr @small(i64 %bytes)
  ret ptr %small
cut:
  %padded = add i64 %bytes, PADDING
  %room = and i64 %padded, -4096            ; arrays begin at one place of their pages: a store is
  call void @hold()                         ; not taken for one to where the next load reads
  %found = call ptr @first(i64 %room)
  %none = icmp eq ptr %found, null
  br i1 %none, label %more, label %have
more:
  %grown = call i1 @grow(i64 %room)
  br i1 %grown, label %again, label %fail
again:
  %new = call ptr @first(i64 %room)
  br label %have
have:
  %head = phi ptr [ %found, %cut ], [ %new, %again ]
  call void @let.go()
  %block = getelementptr i8, ptr %head, i64 HEAD
  ret ptr %block
fail:
  call void @let.go()
  ret ptr null
}

define void @fg.heap.free(ptr %block) #0 {
entry:
  %head = getelementptr i8, ptr %block, i64 -HEAD
  %size = load i64, ptr %head, align 8
  %small = icmp eq i64 %size, 0
  br i1 %small, label %malloc, label %cut
malloc:
  call void @small.free(ptr %head)
  ret void
cut:
  call void @hold()
  %free = call ptr @put(ptr %head)
  %bytes = load i64, ptr %free, align 8
  %much = icmp uge i64 %bytes, TRIM
  br i1 %much, label %trim, label %done
trim:                                       ; whole pages behind the head
  %number = ptrtoint ptr %free to i64
  %beyond = add i64 %number, PAGE
  %start = and i64 %beyond, -PAGE
  %end = add i64 %number, %bytes
  %stop = and i64 %end, -PAGE
  %pages = sub i64 %stop, %start
  %at = inttoptr i64 %start to ptr
  %ignored = call i32 @madvise(ptr %at, i64 %pages, i32 4)               ; MADV_DONTNEED
  br label %done
done:
  call void @let.go()
  ret void
}

; In the child of a fork: a list that another thread was at work on is left.
define void @fg.heap.forget() #0 {
entry:
  %old = atomicrmw xchg ptr @held, i32 0 acquire
  %whole = icmp eq i32 %old, 0
  br i1 %whole, label %done, label %leave
leave:
  store ptr null, ptr @list, align 8
  br label %done
done:
  ret void
}

declare i64 @llvm.umax.i64(i64, i64)
"""


def text(linux=sys.platform == "linux"):
    """The module's text for this machine."""
    made = LINUX if linux else ELSEWHERE
    numbers = {"LARGE": LARGE, "TRIM": TRIM, "SPAN": SPAN, "PAGE": PAGE, "HEAD": HEAD,
               "LAST": PAGE - 1, "PADDING": HEAD + 4095}
    for word, number in numbers.items():
        made = made.replace(word, str(number))
    return f'target triple = "{host.HOST.triple}"\n{made}'


@functools.cache
def library():
    """The loaded library; what is loaded behind it knows its functions."""
    [built] = objects.of([text()])
    made = target.load(built)
    for name in ("fg.heap.new", "fg.heap.free"):
        target.add_symbol(name, made.address(name))
    if hasattr(os, "register_at_fork"):
        forget = ctypes.PYFUNCTYPE(None)(made.address("fg.heap.forget"))
        os.register_at_fork(after_in_child=forget)
    return made
