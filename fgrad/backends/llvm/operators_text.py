"""The operators of arrays as LLVM text: a function of two objects for each of them.

Every function is `@operate` with a row of the loops of `operators_loops.py`: per form of the
operands, two arrays or an array and a number, a loop for each dtype of KINDS.  The smaller of two
arrays is spread over the larger one, by many runs of a loop.  `%Operators` mirrors the ctypes
structure of `operators.py`, which fills it in; the offsets in ndarrays and scalars are those of
`native_text.py`.
"""

from __future__ import annotations

from . import native_results, operators_loops
from .native_results import declared, with_places
from .operators_loops import (
    ARRAYS, COMPARISONS, KINDS, NUMBER, OPERATORS, REFLECTED, has_loop, loop_name)

MOST = 1 << 13             # elements: with more NumPy is as fast, and gives up the lock meanwhile
SWAPPED = {**REFLECTED, **{name: other for other, name in REFLECTED.items()},
           "eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
NAMES = [f"__{name}__" for name in OPERATORS]

OPERATE = """
%Operators = type { %Box, ptr, ptr, ptr, ptr, [4 x %Kind], [NAMES_COUNT x ptr] }
                       ; boxes, context variable, its value, float, int, kinds and bool, fallbacks
%View = type { i64, ptr, ptr, i64 }         ; kind, data, dims, ndim
%Spread = type { i64, i64, i64 }            ; see @spread

@fg.operators = global %Operators zeroinitializer, align 64

; What an ndarray or NumPy scalar holds; kind 3, that of bools, where it is none of a known,
; contiguous kind.
define internal %View @view(ptr %given) nounwind alwaysinline {
entry:
  %vacant = icmp eq ptr %given, null
  br i1 %vacant, label %none, label %look
look:
  %class.p = getelementptr i8, ptr %given, i64 8
  %class = load ptr, ptr %class.p
  %inside = getelementptr i8, ptr %given, i64 16
  %ndarray = call ptr @api(ndarray)
  %is.array = icmp eq ptr %class, %ndarray
  br i1 %is.array, label %array, label %search
array:
  %flags.p = getelementptr i8, ptr %given, i64 64
  %flags = load i32, ptr %flags.p
  %plain = and i32 %flags, 257
  %is.plain = icmp eq i32 %plain, 257
  br i1 %is.plain, label %open, label %none
open:
  %dtype.p = getelementptr i8, ptr %given, i64 56
  %dims.p = getelementptr i8, ptr %given, i64 32
  %ndim.p = getelementptr i8, ptr %given, i64 24
  %dtype = load ptr, ptr %dtype.p
  %array.data = load ptr, ptr %inside
  %array.dims = load ptr, ptr %dims.p
  %ndim.short = load i32, ptr %ndim.p
  %array.ndim = zext i32 %ndim.short to i64
  br label %search
search:                                             ; a dtype, or behind it the class of its scalars
  %mark = phi ptr [ %dtype, %open ], [ %class, %look ]
  %column = phi i64 [ 0, %open ], [ 1, %look ]
  %data = phi ptr [ %array.data, %open ], [ %inside, %look ]
  %dims = phi ptr [ %array.dims, %open ], [ null, %look ]
  %ndim = phi i64 [ %array.ndim, %open ], [ 0, %look ]
  br label %head
head:
  %k = phi i64 [ 0, %search ], [ %k1, %next ]
  %more = icmp ult i64 %k, 3
  br i1 %more, label %compare, label %none
compare:
  %row = getelementptr %Operators, ptr @fg.operators, i32 0, i32 5, i64 %k
  %want.p = getelementptr ptr, ptr %row, i64 %column
  %want = load ptr, ptr %want.p
  %same = icmp eq ptr %want, %mark
  br i1 %same, label %found, label %next
next:
  %k1 = add i64 %k, 1
  br label %head
found:
  %v0 = insertvalue %View poison, i64 %k, 0
  %v1 = insertvalue %View %v0, ptr %data, 1
  %v2 = insertvalue %View %v1, ptr %dims, 2
  %v3 = insertvalue %View %v2, i64 %ndim, 3
  ret %View %v3
none:
  ret %View { i64 3, ptr null, ptr null, i64 0 }
}

; Puts a Python float or int, or NumPy's float64, as an element of the kind, into the slot; false
; where it is none, or does not fit.
define internal i1 @number(ptr %given, i64 %kind, ptr %slot) nounwind {
entry:
  %beyond = alloca i32
  %class.p = getelementptr i8, ptr %given, i64 8
  %class = load ptr, ptr %class.p
  %float.p = getelementptr %Operators, ptr @fg.operators, i32 0, i32 3
  %float = load ptr, ptr %float.p
  %int.p = getelementptr %Operators, ptr @fg.operators, i32 0, i32 4
  %int = load ptr, ptr %int.p
  %float64 = call ptr @api(float64)
  %of.python = icmp eq ptr %class, %float
  %of.numpy = icmp eq ptr %class, %float64
  %is.float = or i1 %of.python, %of.numpy
  br i1 %is.float, label %real, label %other
real:
  %value.p = getelementptr i8, ptr %given, i64 16
  %value = load double, ptr %value.p
  switch i64 %kind, label %no [ i64 0, label %float.32  i64 1, label %float.64 ]
other:
  %is.int = icmp eq ptr %class, %int
  br i1 %is.int, label %whole, label %no
whole:
  %read = call ptr @api(PyLong_AsLongLongAndOverflow)
  %integer = call i64 %read(ptr %given, ptr %beyond)
  %overflow = load i32, ptr %beyond
  %fits = icmp eq i32 %overflow, 0
  br i1 %fits, label %placed, label %no
placed:
  switch i64 %kind, label %no [ i64 0, label %exact  i64 1, label %exact
                                i64 2, label %int.32 ]
exact:                                              ; up to 2^53, so that it is rounded once
  %up = add i64 %integer, 9007199254740992
  %small = icmp ule i64 %up, 18014398509481984
  br i1 %small, label %convert, label %no
convert:
  %converted = sitofp i64 %integer to double
  %narrow = icmp eq i64 %kind, 0
  br i1 %narrow, label %float.32, label %float.64
float.32:
  %wide = phi double [ %value, %real ], [ %converted, %convert ]
  %short = fptrunc double %wide to float
  store float %short, ptr %slot
  ret i1 true
float.64:
  %kept = phi double [ %value, %real ], [ %converted, %convert ]
  store double %kept, ptr %slot
  ret i1 true
int.32:
  %low = trunc i64 %integer to i32
  %back = sext i32 %low to i64
  %same = icmp eq i64 %back, %integer
  br i1 %same, label %store.32, label %no
store.32:
  store i32 %low, ptr %slot
  ret i1 true
no:
  ret i1 false
}

; Does nothing but evaluation look at operations here?  -1 and an exception on failure.
define internal i32 @evaluates() nounwind alwaysinline {
entry:
  %slot = alloca ptr
  %variable.p = getelementptr %Operators, ptr @fg.operators, i32 0, i32 1
  %variable = load ptr, ptr %variable.p
  %get = call ptr @api(PyContextVar_Get)
  %status = call i32 %get(ptr %variable, ptr null, ptr %slot)
  %bad = icmp slt i32 %status, 0
  br i1 %bad, label %failed, label %got
failed:
  ret i32 -1
got:
  %value = load ptr, ptr %slot
  call void @release(ptr %value)                    ; who set it keeps it
  %want.p = getelementptr %Operators, ptr @fg.operators, i32 0, i32 2
  %want = load ptr, ptr %want.p
  %same = icmp eq ptr %value, %want
  %answer = zext i1 %same to i32
  ret i32 %answer
}

; The product of the extents.
define internal i64 @elements(ptr %dims, i64 %ndim) nounwind alwaysinline {
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k1, %one ]
  %n = phi i64 [ 1, %entry ], [ %n1, %one ]
  %more = icmp slt i64 %k, %ndim
  br i1 %more, label %one, label %done
one:
  %d.p = getelementptr i64, ptr %dims, i64 %k
  %d = load i64, ptr %d.p
  %n1 = mul i64 %n, %d
  %k1 = add i64 %k, 1
  br label %head
done:
  ret i64 %n
}

; How a shape is spread over another one, where axes of both lie between axes of the large one
; alone: repeats, elements, and copies of each element side by side; -1 repeats for all else.
define internal %Spread @spread(ptr %large, i64 %large.ndim,
                                ptr %small, i64 %small.ndim) nounwind {
entry:
  %missing = sub i64 %large.ndim, %small.ndim
  %too.many = icmp slt i64 %missing, 0
  br i1 %too.many, label %none, label %head
head:                                               ; from the last axis to the first
  %k = phi i64 [ %large.ndim, %entry ], [ %axis, %skip ], [ %axis, %both ], [ %axis, %alone ]
  %copies = phi i64 [ 1, %entry ], [ %copies, %skip ], [ %copies, %both ], [ %copies.1, %alone ]
  %middle = phi i64 [ 1, %entry ], [ %middle, %skip ], [ %middle.1, %both ], [ %middle, %alone ]
  %repeats = phi i64 [ 1, %entry ], [ %repeats, %skip ], [ %repeats, %both ], [ %repeats.1, %alone ]
  %stage = phi i64 [ 0, %entry ], [ %stage, %skip ], [ 1, %both ], [ %stage.1, %alone ]
  %more = icmp sgt i64 %k, 0
  br i1 %more, label %look, label %done
look:
  %axis = sub i64 %k, 1
  %n.p = getelementptr i64, ptr %large, i64 %axis
  %n = load i64, ptr %n.p
  %own = sub i64 %axis, %missing
  %has = icmp sge i64 %own, 0
  br i1 %has, label %read, label %compare
read:
  %m.p = getelementptr i64, ptr %small, i64 %own
  %m.own = load i64, ptr %m.p
  br label %compare
compare:
  %m = phi i64 [ 1, %look ], [ %m.own, %read ]
  %single = icmp eq i64 %n, 1
  %same = icmp eq i64 %n, %m
  %neutral = and i1 %single, %same
  br i1 %neutral, label %skip, label %shared
skip:
  br label %head
shared:
  br i1 %same, label %behind, label %spreads
behind:
  %closed = icmp eq i64 %stage, 2
  br i1 %closed, label %none, label %both
both:
  %middle.1 = mul i64 %middle, %n
  br label %head
spreads:
  %one = icmp eq i64 %m, 1
  br i1 %one, label %alone, label %none
alone:                                              ; before an axis of both: copies; then: repeats
  %first = icmp eq i64 %stage, 0
  %copies.n = mul i64 %copies, %n
  %repeats.n = mul i64 %repeats, %n
  %copies.1 = select i1 %first, i64 %copies.n, i64 %copies
  %repeats.1 = select i1 %first, i64 %repeats, i64 %repeats.n
  %stage.1 = select i1 %first, i64 0, i64 2
  br label %head
done:
  %s0 = insertvalue %Spread poison, i64 %repeats, 0
  %s1 = insertvalue %Spread %s0, i64 %middle, 1
  %s2 = insertvalue %Spread %s1, i64 %copies, 2
  ret %Spread %s2
none:
  ret %Spread { i64 -1, i64 0, i64 0 }
}

; Runs a loop over pieces of the large operand, `steps` elements of the small one, again and again.
define internal void @runs(ptr %run, ptr %out, ptr %large, ptr %small, i64 %repeats, i64 %steps,
                           i64 %piece, i64 %width, i64 %out.width) nounwind {
entry:
  %bytes = mul i64 %piece, %width
  %out.bytes = mul i64 %piece, %out.width
  br label %again
again:
  %r = phi i64 [ 0, %entry ], [ %r1, %next ]
  %out.r = phi ptr [ %out, %entry ], [ %out.s, %next ]
  %large.r = phi ptr [ %large, %entry ], [ %large.s, %next ]
  %r.more = icmp slt i64 %r, %repeats
  br i1 %r.more, label %step, label %done
step:
  %s = phi i64 [ 0, %again ], [ %s1, %one ]
  %out.s = phi ptr [ %out.r, %again ], [ %out.1, %one ]
  %large.s = phi ptr [ %large.r, %again ], [ %large.1, %one ]
  %small.s = phi ptr [ %small, %again ], [ %small.1, %one ]
  %s.more = icmp slt i64 %s, %steps
  br i1 %s.more, label %one, label %next
one:
  call void %run(ptr %out.s, ptr %large.s, ptr %small.s, i64 %piece)
  %out.1 = getelementptr i8, ptr %out.s, i64 %out.bytes
  %large.1 = getelementptr i8, ptr %large.s, i64 %bytes
  %small.1 = getelementptr i8, ptr %small.s, i64 %width
  %s1 = add i64 %s, 1
  br label %step
next:
  %r1 = add i64 %r, 1
  br label %again
done:
  ret void
}

; The operator of a box x and, unless that is null, another object y.
define internal ptr @operate(ptr %x, ptr %y, ptr %operator) nounwind uwtable {
entry:
  %slot = alloca i64
  %result = alloca %Result
  %pair = alloca [2 x ptr]
  %box.class = load ptr, ptr @fg.operators
  %np.p = getelementptr %Box, ptr @fg.operators, i32 0, i32 1
  %np.offset = load i64, ptr %np.p
  %x.class.p = getelementptr i8, ptr %x, i64 8
  %x.class = load ptr, ptr %x.class.p
  %x.exact = icmp eq ptr %x.class, %box.class
  br i1 %x.exact, label %x.open, label %miss
x.open:
  %x.np.p = getelementptr i8, ptr %x, i64 %np.offset
  %x.np = load ptr, ptr %x.np.p
  %x.view = call %View @view(ptr %x.np)
  %kind = extractvalue %View %x.view, 0
  %x.data = extractvalue %View %x.view, 1
  %x.dims = extractvalue %View %x.view, 2
  %x.ndim = extractvalue %View %x.view, 3
  %x.n = call i64 @elements(ptr %x.dims, i64 %x.ndim)
  %known = icmp ult i64 %kind, 3
  br i1 %known, label %x.known, label %miss
x.known:
  %unary = icmp eq ptr %y, null
  br i1 %unary, label %plain, label %second
second:
  %y.class.p = getelementptr i8, ptr %y, i64 8
  %y.class = load ptr, ptr %y.class.p
  %y.exact = icmp eq ptr %y.class, %box.class
  br i1 %y.exact, label %y.open, label %y.look
y.open:
  %y.np.p = getelementptr i8, ptr %y, i64 %np.offset
  %y.np = load ptr, ptr %y.np.p
  br label %y.look
y.look:
  %y.given = phi ptr [ %y, %second ], [ %y.np, %y.open ]
  %y.view = call %View @view(ptr %y.given)
  %y.kind = extractvalue %View %y.view, 0
  %y.data = extractvalue %View %y.view, 1
  %y.dims = extractvalue %View %y.view, 2
  %y.ndim = extractvalue %View %y.view, 3
  %same.kind = icmp eq i64 %kind, %y.kind
  br i1 %same.kind, label %y.array, label %y.other
y.other:
  %y.known = icmp ult i64 %y.kind, 3
  %float64 = call ptr @api(float64)
  %y.array.class = icmp ne ptr %y.class, %float64
  %y.alien = and i1 %y.known, %y.array.class
  %y.hopeless = or i1 %y.alien, %y.exact
  br i1 %y.hopeless, label %miss, label %y.number
y.number:
  %good = call i1 @number(ptr %y, i64 %kind, ptr %slot)
  br i1 %good, label %plain, label %miss
y.array:
  %same.ndim = icmp eq i64 %x.ndim, %y.ndim
  br i1 %same.ndim, label %axis, label %differ
axis:
  %a = phi i64 [ 0, %y.array ], [ %a1, %extent ]
  %axis.more = icmp slt i64 %a, %x.ndim
  br i1 %axis.more, label %extent, label %plain
extent:
  %x.d.p = getelementptr i64, ptr %x.dims, i64 %a
  %y.d.p = getelementptr i64, ptr %y.dims, i64 %a
  %x.d = load i64, ptr %x.d.p
  %y.d = load i64, ptr %y.d.p
  %a1 = add i64 %a, 1
  %same.d = icmp eq i64 %x.d, %y.d
  br i1 %same.d, label %axis, label %differ

differ:                                             ; two shapes: one is spread over the other
  %y.n = call i64 @elements(ptr %y.dims, i64 %y.ndim)
  %fewer = icmp slt i64 %x.n, %y.n
  %as.many = icmp eq i64 %x.n, %y.n
  %lower = icmp slt i64 %x.ndim, %y.ndim
  %deeper = and i1 %as.many, %lower
  %swap = or i1 %fewer, %deeper
  %l.dims = select i1 %swap, ptr %y.dims, ptr %x.dims
  %s.dims = select i1 %swap, ptr %x.dims, ptr %y.dims
  %l.ndim = select i1 %swap, i64 %y.ndim, i64 %x.ndim
  %s.ndim = select i1 %swap, i64 %x.ndim, i64 %y.ndim
  %l.data = select i1 %swap, ptr %y.data, ptr %x.data
  %s.data = select i1 %swap, ptr %x.data, ptr %y.data
  %l.n = select i1 %swap, i64 %y.n, i64 %x.n
  %l.box = select i1 %swap, ptr %y, ptr %x
  %swapped.p = getelementptr %Operator.swapped, ptr %operator
  %swapped = load ptr, ptr %swapped.p
  %l.operator = select i1 %swap, ptr %swapped, ptr %operator
  %stays = xor i1 %swap, true
  %has.shape = or i1 %stays, %y.exact
  br i1 %has.shape, label %fit, label %miss
fit:
  %fitted = call %Spread @spread(ptr %l.dims, i64 %l.ndim, ptr %s.dims, i64 %s.ndim)
  %f.repeats = extractvalue %Spread %fitted, 0
  %f.middle = extractvalue %Spread %fitted, 1
  %f.copies = extractvalue %Spread %fitted, 2
  %fits = icmp sge i64 %f.repeats, 0
  br i1 %fits, label %pieces, label %miss
pieces:                                             ; whole rows, or a number at a time
  %rows = icmp eq i64 %f.copies, 1
  %f.form = select i1 %rows, i64 0, i64 3
  %f.piece = select i1 %rows, i64 %f.middle, i64 %f.copies
  %f.steps = select i1 %rows, i64 1, i64 %f.middle
  br label %loop

plain:                                              ; one run does all
  %p.data = phi ptr [ %x.data, %x.known ], [ %slot, %y.number ], [ %y.data, %axis ]
  %p.form = phi i64 [ 0, %x.known ], [ 3, %y.number ], [ 0, %axis ]
  br label %loop

loop:
  %box = phi ptr [ %x, %plain ], [ %l.box, %pieces ]
  %large = phi ptr [ %x.data, %plain ], [ %l.data, %pieces ]
  %small = phi ptr [ %p.data, %plain ], [ %s.data, %pieces ]
  %dims = phi ptr [ %x.dims, %plain ], [ %l.dims, %pieces ]
  %ndim = phi i64 [ %x.ndim, %plain ], [ %l.ndim, %pieces ]
  %n = phi i64 [ %x.n, %plain ], [ %l.n, %pieces ]
  %row = phi ptr [ %operator, %plain ], [ %l.operator, %pieces ]
  %form = phi i64 [ %p.form, %plain ], [ %f.form, %pieces ]
  %piece = phi i64 [ %x.n, %plain ], [ %f.piece, %pieces ]
  %steps = phi i64 [ 1, %plain ], [ %f.steps, %pieces ]
  %repeats = phi i64 [ 1, %plain ], [ %f.repeats, %pieces ]
  %place = add i64 %form, %kind
  %loop.p = getelementptr %Operator.loops, ptr %row, i64 %place
  %run = load ptr, ptr %loop.p
  %bool.p = getelementptr %Operator.bool, ptr %row
  %bool = load i64, ptr %bool.p
  %is.bool = icmp ne i64 %bool, 0
  %out.kind = select i1 %is.bool, i64 3, i64 %kind
  %in.row = getelementptr %Operators, ptr @fg.operators, i32 0, i32 5, i64 %kind
  %out.row = getelementptr %Operators, ptr @fg.operators, i32 0, i32 5, i64 %out.kind
  %width.p = getelementptr %Kind.nbytes, ptr %in.row
  %out.width.p = getelementptr %Kind.nbytes, ptr %out.row
  %width = load i64, ptr %width.p
  %out.width = load i64, ptr %out.width.p
  %bytes = mul i64 %n, %out.width
  %few = icmp ule i64 %n, MOST
  %exists = icmp ne ptr %run, null
  %both = and i1 %few, %exists
  br i1 %both, label %watched, label %miss
watched:
  %alone = call i32 @evaluates()
  switch i32 %alone, label %fail [ i32 0, label %miss  i32 1, label %allocate ]

allocate:
  %shape.p = getelementptr %Box, ptr @fg.operators, i32 0, i32 2
  %shape.offset = load i64, ptr %shape.p
  %box.shape.p = getelementptr i8, ptr %box, i64 %shape.offset
  %shape = load ptr, ptr %box.shape.p
  %number.p = getelementptr %Kind.number, ptr %out.row
  %number = load i64, ptr %number.p
  %dtype = load ptr, ptr %out.row
  %result.1 = getelementptr %Result.shape, ptr %result
  %result.2 = getelementptr %Result.ndim, ptr %result
  %result.3 = getelementptr %Result.dims, ptr %result
  %result.4 = getelementptr %Result.number, ptr %result
  %result.5 = getelementptr %Result.nbytes, ptr %result
  store ptr %dtype, ptr %result
  store ptr %shape, ptr %result.1
  store i64 %ndim, ptr %result.2
  store ptr %dims, ptr %result.3
  store i64 %number, ptr %result.4
  store i64 %bytes, ptr %result.5
  %out = call ptr @array.new(ptr %result)
  %out.none = icmp eq ptr %out, null
  br i1 %out.none, label %fail, label %compute
compute:                                            ; nothing ran that could have emptied a box
  %out.data.p = getelementptr i8, ptr %out, i64 16
  %out.data = load ptr, ptr %out.data.p
  call void @runs(ptr %run, ptr %out.data, ptr %large, ptr %small, i64 %repeats, i64 %steps,
                  i64 %piece, i64 %width, i64 %out.width)
  %boxed = call ptr @box.new(ptr @fg.operators, ptr %result, ptr %out)
  %box.none = icmp eq ptr %boxed, null
  br i1 %box.none, label %unmake, label %done
done:
  ret ptr %boxed
unmake:
  call void @release(ptr %out)
  ret ptr null
fail:
  ret ptr null

miss:
  %index.p = getelementptr %Operator.index, ptr %operator
  %index = load i64, ptr %index.p
  %fallback.p = getelementptr %Operators, ptr @fg.operators, i32 0, i32 6, i64 %index
  %fallback = load ptr, ptr %fallback.p
  %pair.1 = getelementptr ptr, ptr %pair, i64 1
  store ptr %x, ptr %pair
  store ptr %y, ptr %pair.1
  %alone.x = icmp eq ptr %y, null
  %count = select i1 %alone.x, i64 1, i64 2
  %call = call ptr @api(PyObject_Vectorcall)
  %answer = call ptr %call(ptr %fallback, ptr %pair, i64 %count, ptr null)
  ret ptr %answer
}
"""

FUNCTION = """
@{name}.row = internal constant %Operator {{ [6 x ptr] [{loops}], i64 {bool}, i64 {index},
  ptr {swapped} }}
define ptr @fg.__{name}__(ptr %x, ptr %y) nounwind uwtable {{
  %out = tail call ptr @operate(ptr %x, ptr %y, ptr @{name}.row)
  ret ptr %out
}}
"""


def function(name):
    """The function of an operator and the row it gives to `@operate`."""
    loops = [f"ptr @{loop_name(name, kind, form)}" if has_loop(name, kind, form) else "ptr null"
             for form in (ARRAYS, NUMBER) for kind in KINDS]
    swapped = f"@{SWAPPED[name]}.row" if name in SWAPPED else "null"
    return FUNCTION.format(name=name, loops=", ".join(loops), bool=int(name in COMPARISONS),
                           index=OPERATORS.index(name), swapped=swapped)


def text():
    """The whole text."""
    operate = declared("Kind", "Operator") + with_places(
        OPERATE.replace("NAMES_COUNT", str(len(NAMES))).replace("MOST", str(MOST)))
    functions = map(function, OPERATORS)
    return "".join([native_results.TEXT, operate, operators_loops.text(), *functions])
