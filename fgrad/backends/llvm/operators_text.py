"""The operators of arrays as LLVM text: a METH_O function for each, and the loops they run.

Every function is `@operate` with a row of loops: per form of the operands, two arrays or an array
and a number, a loop for each dtype of KINDS.  `%Operators` mirrors the ctypes structure of
`operators.py`, which fills it in; the offsets in ndarrays and scalars are those of
`native_text.py`.  A loop does vectors, then what is left one by one.
"""

from __future__ import annotations

from . import native_results

KINDS = {"float": 4, "double": 8, "i32": 4}      # LLVM's type → bytes; the order is `operators`'
VECTOR = 32                # bytes
MOST = 1 << 13             # elements: with more NumPy is as fast, and gives up the lock meanwhile

ARRAYS, NUMBER = "arrays", "number"              # the forms of operands
# name → instruction of floats, of integers (None: left to Python); LLVM's order of comparison
ARITHMETIC = {"add": ("fadd", "add"), "sub": ("fsub", "sub"), "mul": ("fmul", "mul"),
              "truediv": ("fdiv", None)}
COMPARISONS = {"eq": ("oeq", "eq"), "ne": ("une", "ne"), "lt": ("olt", "slt"),
               "le": ("ole", "sle"), "gt": ("ogt", "sgt"), "ge": ("oge", "sge")}
REFLECTED = {f"r{name}": name for name in ARITHMETIC}        # those of a number and an array
OPERATORS = (*ARITHMETIC, *REFLECTED, "neg", *COMPARISONS)
NAMES = [f"__{name}__" for name in OPERATORS]


def is_float(kind):
    """Is an LLVM type one of floats?"""
    return kind in ("float", "double")


# ---------------------------------------------------------------------------- loops

LOOP = """
define internal void @{name}(ptr noalias %out, ptr %x, ptr %y, i64 %n) nounwind {{
entry:
{before}
  %whole = and i64 %n, -{lanes}
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %body ]
  %more = icmp ult i64 %i, %whole
  br i1 %more, label %body, label %rest
body:
{vectors}
  %i1 = add i64 %i, {lanes}
  br label %head
rest:
  %j = phi i64 [ %i, %head ], [ %j1, %one ]
  %left = icmp ult i64 %j, %n
  br i1 %left, label %one, label %done
one:
{elements}
  %j1 = add i64 %j, 1
  br label %rest
done:
  ret void
}}
"""


def loop(name, kind, form):
    """The loop of an operator for one dtype and one form."""
    lanes = VECTOR // KINDS[kind]
    vector = f"<{lanes} x {kind}>"
    before = [] if form == ARRAYS else [
        f"  %s = load {kind}, ptr %y",
        f"  %s.0 = insertelement {vector} poison, {kind} %s, i64 0",
        f"  %s.v = shufflevector {vector} %s.0, {vector} poison, <{lanes} x i32> zeroinitializer"]
    return LOOP.format(name=loop_name(name, kind, form), lanes=lanes, before="\n".join(before),
                       vectors=step(name, kind, form, "v", "i", lanes),
                       elements=step(name, kind, form, "e", "j", 1))


def loop_name(name, kind, form):
    """The name of the loop of an operator; operands change places for nothing."""
    name = {"radd": "add", "rmul": "mul"}.get(name, name)
    return f"{name}.{kind}.{form}"


def step(name, kind, form, mark, at, lanes):
    """The lines of one step at an index; names end in `mark`."""
    def wide(scalar):
        return scalar if lanes == 1 else f"<{lanes} x {scalar}>"

    def read(source):
        return [f"  %{source}.p{mark} = getelementptr {kind}, ptr %{source}, i64 %{at}",
                f"  %{source}.{mark} = load {wide(kind)}, ptr %{source}.p{mark}, "
                f"align {KINDS[kind]}"]

    operands = [f"%x.{mark}", f"%y.{mark}" if form == ARRAYS else "%s" if lanes == 1 else "%s.v"]
    if name in REFLECTED:
        operands.reverse()
    lines, stored = read("x"), kind
    if name == "neg":
        lines += [f"  %r.{mark} = " + (f"fneg {wide(kind)} %x.{mark}" if is_float(kind) else
                                       f"sub {wide(kind)} zeroinitializer, %x.{mark}")]
    else:
        lines += read("y") if form == ARRAYS else []
        instruction = instruction_of(name, kind)
        result = f"%c.{mark}" if name in COMPARISONS else f"%r.{mark}"
        lines += [f"  {result} = {instruction} {wide(kind)} {', '.join(operands)}"]
    if name in COMPARISONS:
        lines += [f"  %r.{mark} = zext {wide('i1')} %c.{mark} to {wide('i8')}"]
        stored = "i8"
    align = KINDS.get(stored, 1)
    return "\n".join([*lines, f"  %o.p{mark} = getelementptr {stored}, ptr %out, i64 %{at}",
                      f"  store {wide(stored)} %r.{mark}, ptr %o.p{mark}, align {align}"])


def instruction_of(name, kind):
    """LLVM's instruction for an operator, or None where integers have none."""
    if name in COMPARISONS:
        ordered, signed = COMPARISONS[name]
        return f"fcmp {ordered}" if is_float(kind) else f"icmp {signed}"
    floats, integers = ARITHMETIC[REFLECTED.get(name, name)]
    return floats if is_float(kind) else integers


def has_loop(name, kind, form):
    """Is there a loop for the operator on this dtype and form?"""
    if name == "neg":
        return form == ARRAYS
    return instruction_of(name, kind) is not None and not (name in REFLECTED and form == ARRAYS)


# ---------------------------------------------------------------------------- functions

OPERATE = """
%Kind = type { ptr, ptr, i64, i64 }         ; dtype, class of its scalars, type number, bytes
%Operators = type { %Box, ptr, ptr, ptr, ptr, [4 x %Kind], [NAMES_COUNT x ptr] }
                       ; boxes, context variable, its value, float, int, kinds and bool, fallbacks
%Operator = type { [6 x ptr], i64, i64 }    ; loops by form and kind, is it bool, its fallback
%View = type { i64, ptr, ptr, i64 }         ; kind, data, dims, ndim

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
  %ndarray = call ptr @api(i32 0)
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

; Puts a Python float or int, as an element of the kind, into the slot; false where it is neither,
; or does not fit.
define internal i1 @number(ptr %given, i64 %kind, ptr %slot) nounwind {
entry:
  %beyond = alloca i32
  %class.p = getelementptr i8, ptr %given, i64 8
  %class = load ptr, ptr %class.p
  %float.p = getelementptr %Operators, ptr @fg.operators, i32 0, i32 3
  %float = load ptr, ptr %float.p
  %int.p = getelementptr %Operators, ptr @fg.operators, i32 0, i32 4
  %int = load ptr, ptr %int.p
  %is.float = icmp eq ptr %class, %float
  br i1 %is.float, label %real, label %other
real:
  %value.p = getelementptr i8, ptr %given, i64 16
  %value = load double, ptr %value.p
  switch i64 %kind, label %no [ i64 0, label %float.32  i64 1, label %float.64 ]
other:
  %is.int = icmp eq ptr %class, %int
  br i1 %is.int, label %whole, label %no
whole:
  %read = call ptr @api(i32 18)
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
  %get = call ptr @api(i32 17)
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
  %dims = extractvalue %View %x.view, 2
  %ndim = extractvalue %View %x.view, 3
  %known = icmp ult i64 %kind, 3
  br i1 %known, label %x.known, label %miss
x.known:
  %unary = icmp eq ptr %y, null
  br i1 %unary, label %sizes, label %second
second:
  %y.class.p = getelementptr i8, ptr %y, i64 8
  %y.class = load ptr, ptr %y.class.p
  %y.exact = icmp eq ptr %y.class, %box.class
  br i1 %y.exact, label %y.open, label %y.number
y.number:
  %good = call i1 @number(ptr %y, i64 %kind, ptr %slot)
  br i1 %good, label %sizes, label %miss
y.open:
  %y.np.p = getelementptr i8, ptr %y, i64 %np.offset
  %y.np = load ptr, ptr %y.np.p
  %y.view = call %View @view(ptr %y.np)
  %y.kind = extractvalue %View %y.view, 0
  %y.box.data = extractvalue %View %y.view, 1
  %y.dims = extractvalue %View %y.view, 2
  %y.ndim = extractvalue %View %y.view, 3
  %same.kind = icmp eq i64 %kind, %y.kind
  %same.ndim = icmp eq i64 %ndim, %y.ndim
  %alike = and i1 %same.kind, %same.ndim
  br i1 %alike, label %axis, label %miss
axis:
  %a = phi i64 [ 0, %y.open ], [ %a1, %extent ]
  %axis.more = icmp slt i64 %a, %ndim
  br i1 %axis.more, label %extent, label %sizes
extent:
  %x.n.p = getelementptr i64, ptr %dims, i64 %a
  %y.n.p = getelementptr i64, ptr %y.dims, i64 %a
  %x.n = load i64, ptr %x.n.p
  %y.n = load i64, ptr %y.n.p
  %a1 = add i64 %a, 1
  %same.n = icmp eq i64 %x.n, %y.n
  br i1 %same.n, label %axis, label %miss

sizes:
  %y.data = phi ptr [ %x.data, %x.known ], [ %slot, %y.number ], [ %y.box.data, %axis ]
  %form = phi i64 [ 0, %x.known ], [ 3, %y.number ], [ 0, %axis ]
  br label %size
size:
  %b = phi i64 [ 0, %sizes ], [ %b1, %size.one ]
  %n = phi i64 [ 1, %sizes ], [ %n1, %size.one ]
  %size.more = icmp slt i64 %b, %ndim
  br i1 %size.more, label %size.one, label %loop
size.one:
  %d.p = getelementptr i64, ptr %dims, i64 %b
  %d = load i64, ptr %d.p
  %n1 = mul i64 %n, %d
  %b1 = add i64 %b, 1
  br label %size

loop:
  %place = add i64 %form, %kind
  %loop.p = getelementptr %Operator, ptr %operator, i32 0, i32 0, i64 %place
  %run = load ptr, ptr %loop.p
  %bool.p = getelementptr %Operator, ptr %operator, i32 0, i32 1
  %bool = load i64, ptr %bool.p
  %is.bool = icmp ne i64 %bool, 0
  %out.kind = select i1 %is.bool, i64 3, i64 %kind
  %out.row = getelementptr %Operators, ptr @fg.operators, i32 0, i32 5, i64 %out.kind
  %width.p = getelementptr %Kind, ptr %out.row, i32 0, i32 3
  %width = load i64, ptr %width.p
  %bytes = mul i64 %n, %width
  %small = icmp ule i64 %n, MOST
  %exists = icmp ne ptr %run, null
  %both = and i1 %small, %exists
  br i1 %both, label %watched, label %miss
watched:
  %alone = call i32 @evaluates()
  switch i32 %alone, label %fail [ i32 0, label %miss  i32 1, label %allocate ]

allocate:
  %shape.p = getelementptr %Box, ptr @fg.operators, i32 0, i32 2
  %shape.offset = load i64, ptr %shape.p
  %x.shape.p = getelementptr i8, ptr %x, i64 %shape.offset
  %shape = load ptr, ptr %x.shape.p
  %number.p = getelementptr %Kind, ptr %out.row, i32 0, i32 2
  %number = load i64, ptr %number.p
  %dtype = load ptr, ptr %out.row
  %result.1 = getelementptr %Result, ptr %result, i32 0, i32 1
  %result.2 = getelementptr %Result, ptr %result, i32 0, i32 2
  %result.3 = getelementptr %Result, ptr %result, i32 0, i32 3
  %result.4 = getelementptr %Result, ptr %result, i32 0, i32 4
  %result.5 = getelementptr %Result, ptr %result, i32 0, i32 5
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
  call void %run(ptr %out.data, ptr %x.data, ptr %y.data, i64 %n)
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
  %index.p = getelementptr %Operator, ptr %operator, i32 0, i32 2
  %index = load i64, ptr %index.p
  %fallback.p = getelementptr %Operators, ptr @fg.operators, i32 0, i32 6, i64 %index
  %fallback = load ptr, ptr %fallback.p
  %pair.1 = getelementptr ptr, ptr %pair, i64 1
  store ptr %x, ptr %pair
  store ptr %y, ptr %pair.1
  %alone.x = icmp eq ptr %y, null
  %count = select i1 %alone.x, i64 1, i64 2
  %call = call ptr @api(i32 9)
  %answer = call ptr %call(ptr %fallback, ptr %pair, i64 %count, ptr null)
  ret ptr %answer
}
"""

FUNCTION = """
@{name}.row = internal constant %Operator {{ [6 x ptr] [{loops}], i64 {bool}, i64 {index} }}
define ptr @fg.__{name}__(ptr %x, ptr %y) nounwind uwtable {{
  %out = tail call ptr @operate(ptr %x, ptr %y, ptr @{name}.row)
  ret ptr %out
}}
"""


def function(name):
    """The function of an operator and the row it gives to `@operate`."""
    loops = [f"ptr @{loop_name(name, kind, form)}" if has_loop(name, kind, form) else "ptr null"
             for form in (ARRAYS, NUMBER) for kind in KINDS]
    return FUNCTION.format(name=name, loops=", ".join(loops), bool=int(name in COMPARISONS),
                           index=OPERATORS.index(name))


def text():
    """The whole text."""
    loops = {loop_name(name, kind, form): loop(name, kind, form) for name in OPERATORS
             for form in (ARRAYS, NUMBER) for kind in KINDS if has_loop(name, kind, form)}
    operate = OPERATE.replace("NAMES_COUNT", str(len(NAMES))).replace("MOST", str(MOST))
    return "".join([native_results.TEXT, operate, *loops.values(), *map(function, OPERATORS)])
