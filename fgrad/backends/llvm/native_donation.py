"""What becomes of arrays that a function is given to keep, as LLVM text for `native_text.py`.

An input is used in one of four ways: it is no box (0), it is READ, it is DONATED, or it is WRITTEN
to and donated, for which it must be a box of memory that nobody else sees.  Before the kernel runs
those lose their memory, which a result takes over; after it the others that were donated do.  The
offsets 0, 8, 48 and 64 are those of the count of references (32 bits of it), type, base and flags
in an ndarray, which `native_call` checks.  Relies on `native_results.py` for the records, and for
what it calls.
"""

from __future__ import annotations

from .native_results import with_places

READ, DONATED, WRITTEN = 1, 2, 3

TEXT = with_places("""
; The box becomes one of another class.
define internal void @becomes(ptr %box, ptr %class) nounwind {
  %class.p = getelementptr i8, ptr %box, i64 8
  %old = load ptr, ptr %class.p
  call void @hold(ptr %class)
  store ptr %class, ptr %class.p
  call void @release(ptr %old)
  ret void
}

; Is an ndarray's memory no one else's?  It may be a part of another array, or foreign.
define internal i1 @is.alone(ptr %array) nounwind {
entry:
  %array.class.p = getelementptr i8, ptr %array, i64 8
  %array.class = load ptr, ptr %array.class.p
  %ndarray = call ptr @api(ndarray)
  %count = load i32, ptr %array
  %is.ndarray = icmp eq ptr %array.class, %ndarray  ; else a scalar
  %single = icmp eq i32 %count, 1
  %one = and i1 %is.ndarray, %single
  br i1 %one, label %own, label %no
own:
  %base.p = getelementptr i8, ptr %array, i64 48
  %base = load ptr, ptr %base.p
  %bare = icmp eq ptr %base, null
  br i1 %bare, label %flags, label %based
based:
  %class.p = getelementptr i8, ptr %base, i64 8
  %class = load ptr, ptr %class.p
  %is.array = icmp eq ptr %class, %ndarray
  br i1 %is.array, label %array.base, label %capsule
array.base:
  %base.count = load i32, ptr %base
  %base.single = icmp eq i32 %base.count, 1
  br i1 %base.single, label %flags, label %no
flags:
  %owner = phi ptr [ %array, %own ], [ %base, %array.base ]
  %flags.p = getelementptr i8, ptr %owner, i64 64
  %all.flags = load i32, ptr %flags.p
  %owns = and i32 %all.flags, 4
  %is.owner = icmp ne i32 %owns, 0
  ret i1 %is.owner
capsule:
  %f = call ptr @api(PyCapsule_IsValid)
  %valid = call i32 %f(ptr %base, ptr @owner)
  %is.block = icmp ne i32 %valid, 0
  ret i1 %is.block
no:
  ret i1 false
}

; How an input is used.
define internal i64 @use.of(ptr %call, i64 %i) nounwind alwaysinline {
  %arguments.p = getelementptr %Call.arguments, ptr %call
  %arguments = load ptr, ptr %arguments.p
  %argument = getelementptr %Argument, ptr %arguments, i64 %i
  %use.p = getelementptr %Argument.use, ptr %argument
  %use = load i64, ptr %use.p
  ret i64 %use
}

; Where the box holds its array.
define internal ptr @slot.of(ptr %call, ptr %box) nounwind alwaysinline {
  %np.p = getelementptr %Call.np, ptr %call
  %np.offset = load i64, ptr %np.p
  %slot = getelementptr i8, ptr %box, i64 %np.offset
  ret ptr %slot
}

; The array that the box of an input holds; null where there is no box, or an emptied one.
define internal ptr @array.in(ptr %call, ptr %box) nounwind {
entry:
  %none = icmp eq ptr %box, null
  br i1 %none, label %nothing, label %full
full:
  %slot = call ptr @slot.of(ptr %call, ptr %box)
  %a = load ptr, ptr %slot
  ret ptr %a
nothing:
  ret ptr null
}

; The box has no array any more; whoever has it owns it.
define internal void @empty(ptr %call, ptr %box) nounwind {
  %gone.p = getelementptr %Call.gone, ptr %call
  %gone = load ptr, ptr %gone.p
  %slot = call ptr @slot.of(ptr %call, ptr %box)
  store ptr null, ptr %slot
  call void @becomes(ptr %box, ptr %gone)
  ret void
}

; The box has its array again.
define internal void @fill(ptr %call, ptr %box, ptr %array) nounwind {
  %box.class = load ptr, ptr %call
  %slot = call ptr @slot.of(ptr %call, ptr %box)
  store ptr %array, ptr %slot
  call void @becomes(ptr %box, ptr %box.class)
  ret void
}

; Empties boxes that are written to, whose arrays %held keeps; false where one may not be: all have
; theirs again then.
define internal i1 @take(ptr %call, ptr %boxes, ptr %held) nounwind {
entry:
  %inputs.p = getelementptr %Call.inputs, ptr %call
  %inputs = load i64, ptr %inputs.p
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %more = icmp slt i64 %i, %inputs
  br i1 %more, label %look, label %check
look:
  %box.p = getelementptr ptr, ptr %boxes, i64 %i
  %use = call i64 @use.of(ptr %call, i64 %i)
  %written = icmp eq i64 %use, WRITTEN
  br i1 %written, label %box, label %next
box:
  %box.i = load ptr, ptr %box.p
  %a = call ptr @array.in(ptr %call, ptr %box.i)
  %none = icmp eq ptr %a, null                      ; no box, or the same one once more
  br i1 %none, label %lost, label %full
full:
  %alone = call i1 @is.alone(ptr %a)
  br i1 %alone, label %take, label %lost
take:
  call void @empty(ptr %call, ptr %box.i)
  br label %next
next:
  %i1 = add i64 %i, 1
  br label %each
check:                                              ; is one of them an input that is read, too?
  %k = phi i64 [ 0, %each ], [ %k1, %checked ]
  %check.more = icmp slt i64 %k, %inputs
  br i1 %check.more, label %check.one, label %done
check.one:
  %k1 = add i64 %k, 1
  %use.k = call i64 @use.of(ptr %call, i64 %k)
  switch i64 %use.k, label %checked [ i64 READ, label %compare  i64 DONATED, label %compare ]
compare:
  %box.k.p = getelementptr ptr, ptr %boxes, i64 %k
  %box.k = load ptr, ptr %box.k.p
  %array.k = call ptr @array.in(ptr %call, ptr %box.k)
  %is.box = icmp ne ptr %box.k, null
  %is.empty = icmp eq ptr %array.k, null
  %is.taken = and i1 %is.box, %is.empty
  br i1 %is.taken, label %lost, label %checked
checked:
  br label %check
done:
  ret i1 true
lost:
  %upto = phi i64 [ %i, %box ], [ %i, %full ], [ %inputs, %compare ]
  br label %back
back:
  %b = phi i64 [ 0, %lost ], [ %b1, %kept ]
  %back.more = icmp slt i64 %b, %upto
  br i1 %back.more, label %back.one, label %failed
back.one:
  %b1 = add i64 %b, 1
  %use.b = call i64 @use.of(ptr %call, i64 %b)
  %was.taken = icmp eq i64 %use.b, WRITTEN
  br i1 %was.taken, label %give.back, label %kept
give.back:
  %box.b.p = getelementptr ptr, ptr %boxes, i64 %b
  %held.b.p = getelementptr ptr, ptr %held, i64 %b
  %box.b = load ptr, ptr %box.b.p
  %held.b = load ptr, ptr %held.b.p
  call void @fill(ptr %call, ptr %box.b, ptr %held.b)
  br label %kept
kept:
  br label %back
failed:
  ret i1 false
}

; Empties boxes that were donated and not written to, and frees what they held.
define internal void @let.go(ptr %call, ptr %boxes) nounwind {
entry:
  %inputs.p = getelementptr %Call.inputs, ptr %call
  %inputs = load i64, ptr %inputs.p
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i, %inputs
  br i1 %more, label %look, label %done
look:
  %use = call i64 @use.of(ptr %call, i64 %i)
  %donated = icmp eq i64 %use, DONATED
  br i1 %donated, label %box, label %next
box:
  %box.p = getelementptr ptr, ptr %boxes, i64 %i
  %box.i = load ptr, ptr %box.p
  %a = call ptr @array.in(ptr %call, ptr %box.i)
  %none = icmp eq ptr %a, null
  br i1 %none, label %next, label %free
free:
  call void @empty(ptr %call, ptr %box.i)
  call void @release(ptr %a)
  br label %next
next:
  br label %each
done:
  ret void
}
""")
for _word, _value in (("READ", READ), ("DONATED", DONATED), ("WRITTEN", WRITTEN)):
    TEXT = TEXT.replace(f"i64 {_word}", f"i64 {_value}").replace(f", {_word}", f", {_value}")
