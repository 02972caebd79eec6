"""Memory, ndarrays and boxes for what machine code gives back, as LLVM text.

`@fg.interface` holds FUNCTIONS, which `native_call` fills in; the offsets 16 and 64 are those of
data and flags in an ndarray.  All of it runs with the interpreter's lock held.  Relies on `heap`
for memory; `native_text.py` and `operators_text.py` build on it.
"""

from __future__ import annotations

import functools

FUNCTIONS = (              # of CPython and NumPy, that the text calls: @api(Py_IncRef)
    "ndarray", "float64", "PyArray_New", "PyArray_SetBaseObject", "Py_IncRef", "Py_DecRef",
    "PyErr_Occurred", "PyDict_GetItem", "PyTuple_New", "PyTuple_SetItem", "PyObject_Vectorcall",
    "PyType_GenericAlloc", "PyCapsule_New", "PyCapsule_GetPointer", "PyErr_NoMemory", "PyDict_Size",
    "PyContextVar_Get", "PyLong_AsLongLongAndOverflow", "PyList_New", "PyList_SetItem",
    "PyDict_New", "PyDict_SetItem", "PyObject_GetAttr", "PyErr_Clear", "PyCapsule_IsValid")

# What tables in memory hold; scalar: NumPy's class of a dtype's scalars, number: of a dtype.  use:
# see native_donation.  taken: 1 + the input whose memory a result takes over, or 0.  gone: the
# class of boxes whose memory has been given away, or null where nothing is donated.
RECORDS = {
    "Box": "ptr box, i64 np, i64 shape, i64 dtype",     # the class, and the offsets of its slots
    "Result": "ptr dtype, ptr shape, i64 ndim, ptr dims, i64 number, i64 nbytes, i64 taken",
    "Argument": "ptr dtype, ptr scalar, i64 ndim, ptr dims, i64 use",
    "Node": "i64 kind, i64 count, ptr object, ptr keys",
    "State": "ptr box, i64 np, ptr arguments, ptr data, ptr held, i64 index, ptr numbers, "
             "ptr boxes",
    "Kind": "ptr dtype, ptr scalar, i64 number, i64 nbytes",
    "Operator": "[6 x ptr] loops, i64 bool, i64 index, ptr swapped",
}
RECORDS["Call"] = (
    f"{RECORDS['Box']}, ptr kernel, ptr fallback, ptr assemble, i64 unlocks, i64 inputs, "
    "i64 outputs, i64 constants, ptr arguments, ptr results, ptr constant_data, i64 arity, "
    "ptr nodes, ptr returned, ptr gone")


@functools.cache
def fields(record):
    """The (type, name) pairs of a record.

    >>> fields("Kind")[:2]
    [('ptr', 'dtype'), ('ptr', 'scalar')]
    """
    return [tuple(field.rsplit(" ", 1)) for field in RECORDS[record].split(", ")]


def with_places(text):
    """The text with numbers for names: of FUNCTIONS, @api(Py_IncRef), and of what a record has,
    getelementptr %Call.arity, ptr %call.  Whenever a process begins it is read: `re` takes longer.
    """
    first, *parts = text.split("@api(")
    first, *parts = "@api(".join([first, *map(with_function, parts)]).split("getelementptr %")
    return "getelementptr %".join([first, *map(with_field, parts)])


def with_function(text):
    """The text behind `@api(`."""
    name, _, rest = text.partition(")")
    return f"i32 {FUNCTIONS.index(name)}){rest}" if name in FUNCTIONS else text


def with_field(text):
    """The text behind `getelementptr %`."""
    type, _, rest = text.partition(", ")
    record, dot, name = type.partition(".")
    if not dot:
        return text
    line, end, behind = rest.partition("\n")
    pointer, comma, further = line.partition(", ")
    number = [name for _, name in fields(record)].index(name)
    return f"{record}, {pointer}, i32 0, i32 {number}{comma}{further}{end}{behind}"


def declared(*records):
    """The types of records in LLVM's words."""
    return "\n".join([f"%{record} = type {{ {', '.join([t for t, _ in fields(record)])} }}"
                      for record in records]) + "\n"


TEXT = declared("Result", "Box") + with_places("""
@fg.interface = global [FUNCTIONS x ptr] zeroinitializer, align 64
@pool = internal global [POOL_PLACES x ptr] zeroinitializer         ; big blocks that wait for reuse
@waiting = internal global i64 0                             ; their bytes
@turn = internal global i64 0                                ; the place that is overwritten next
@owner = internal constant [12 x i8] c"OWNER\\00"           ; the name of the capsules of blocks

define internal ptr @api(i32 %which) nounwind alwaysinline {
  %place = getelementptr ptr, ptr @fg.interface, i32 %which
  %function = load ptr, ptr %place
  ret ptr %function
}

define internal void @hold(ptr %object) nounwind alwaysinline {
  %f = call ptr @api(Py_IncRef)
  call void %f(ptr %object)
  ret void
}

define internal void @release(ptr %object) nounwind alwaysinline {
  %f = call ptr @api(Py_DecRef)
  call void %f(ptr %object)
  ret void
}

define internal void @release_all(ptr %objects, i64 %count) nounwind {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %p = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %p
  call void @release(ptr %object)
  %i1 = add i64 %i, 1
  br label %head
done:
  ret void
}

; ---- Blocks of the heap.  In front of one stands its size (-8).

declare ptr @fg.heap.new(i64)
declare void @fg.heap.free(ptr)

define internal ptr @block.reuse(i64 %bytes) nounwind {
entry:
  %quarter = lshr i64 %bytes, 2
  %most = add i64 %bytes, %quarter
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %more = icmp slt i64 %i, POOL_PLACES
  br i1 %more, label %look, label %none
look:
  %place = getelementptr ptr, ptr @pool, i64 %i
  %block = load ptr, ptr %place
  %empty = icmp eq ptr %block, null
  br i1 %empty, label %next, label %compare
compare:
  %p = getelementptr i8, ptr %block, i64 -8
  %size = load i64, ptr %p
  %enough = icmp uge i64 %size, %bytes
  %fair = icmp ule i64 %size, %most
  %fits = and i1 %enough, %fair
  br i1 %fits, label %take, label %next
next:
  %i1 = add i64 %i, 1
  br label %head
take:
  store ptr null, ptr %place
  %before = load i64, ptr @waiting
  %left = sub i64 %before, %size
  store i64 %left, ptr @waiting
  ret ptr %block
none:
  ret ptr null
}

define internal ptr @block.new(i64 %bytes) nounwind {
entry:
  %big = icmp uge i64 %bytes, POOLED_LEAST
  br i1 %big, label %again, label %fresh
again:
  %old = call ptr @block.reuse(i64 %bytes)
  %none = icmp eq ptr %old, null
  br i1 %none, label %fresh, label %reused
reused:
  ret ptr %old
fresh:
  %block = call ptr @fg.heap.new(i64 %bytes)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %done, label %note
note:
  %p = getelementptr i8, ptr %block, i64 -8
  store i64 %bytes, ptr %p
  br label %done
done:
  ret ptr %block
}

; The destructor of the capsule that owns a block: keep it for reuse, or free it.
define internal void @block.done(ptr %capsule) nounwind {
entry:
  %get = call ptr @api(PyCapsule_GetPointer)
  %block = call ptr %get(ptr %capsule, ptr @owner)
  %p = getelementptr i8, ptr %block, i64 -8
  %size = load i64, ptr %p
  %big = icmp uge i64 %size, POOLED_LEAST
  br i1 %big, label %keep, label %drop
keep:                                               ; in the next place, whose block goes
  %turn = load i64, ptr @turn
  %next = add i64 %turn, 1
  %wrapped = urem i64 %next, POOL_PLACES
  store i64 %wrapped, ptr @turn
  %place = getelementptr ptr, ptr @pool, i64 %turn
  %old = load ptr, ptr %place
  store ptr null, ptr %place
  %none = icmp eq ptr %old, null
  br i1 %none, label %room, label %evict
evict:
  %old.p = getelementptr i8, ptr %old, i64 -8
  %old.size = load i64, ptr %old.p
  %before = load i64, ptr @waiting
  %less = sub i64 %before, %old.size
  store i64 %less, ptr @waiting
  call void @fg.heap.free(ptr %old)
  br label %room
room:
  %held = load i64, ptr @waiting
  %sum = add i64 %held, %size
  %fits = icmp ule i64 %sum, POOLED_MOST
  br i1 %fits, label %store, label %drop
store:
  store i64 %sum, ptr @waiting
  store ptr %block, ptr %place
  ret void
drop:
  call void @fg.heap.free(ptr %block)
  ret void
}

; ---- Results

define internal ptr @array.of(ptr %result, ptr %data, i32 %flags) nounwind alwaysinline {
  %ndim.p = getelementptr %Result.ndim, ptr %result
  %dims.p = getelementptr %Result.dims, ptr %result
  %type.p = getelementptr %Result.number, ptr %result
  %ndim.long = load i64, ptr %ndim.p
  %type.long = load i64, ptr %type.p
  %ndim = trunc i64 %ndim.long to i32
  %type = trunc i64 %type.long to i32
  %dims = load ptr, ptr %dims.p
  %ndarray = call ptr @api(ndarray)
  %f = call ptr @api(PyArray_New)
  %a = call ptr %f(ptr %ndarray, i32 %ndim, ptr %dims, i32 %type,
                  ptr null, ptr %data, i32 0, i32 %flags, ptr null)
  ret ptr %a
}

; An ndarray on an aligned block that a capsule, its base, owns; null and an exception on failure.
define ptr @fg.array(ptr %result, i64 %bytes) nounwind {
entry:
  %block = call ptr @block.new(i64 %bytes)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %memory, label %wrap
memory:
  %raise = call ptr @api(PyErr_NoMemory)
  %ignored = call ptr %raise()
  ret ptr null
wrap:
  %new = call ptr @api(PyCapsule_New)
  %capsule = call ptr %new(ptr %block, ptr @owner, ptr @block.done)
  %lost = icmp eq ptr %capsule, null
  br i1 %lost, label %free, label %array
free:
  call void @fg.heap.free(ptr %block)
  ret ptr null
array:
  %a = call ptr @array.of(ptr %result, ptr %block, i32 1281)
  %none = icmp eq ptr %a, null
  br i1 %none, label %uncapsule, label %own
uncapsule:
  call void @release(ptr %capsule)
  ret ptr null
own:
  %own.f = call ptr @api(PyArray_SetBaseObject)
  %refused = call i32 %own.f(ptr %a, ptr %capsule)
  %bad = icmp ne i32 %refused, 0
  br i1 %bad, label %unmake, label %good
unmake:
  call void @release(ptr %a)
  ret ptr null
good:
  ret ptr %a
}

; A new read-only ndarray of the result's type.
define internal ptr @array.new(ptr %result) nounwind alwaysinline {
entry:
  %bytes.p = getelementptr %Result.nbytes, ptr %result
  %bytes = load i64, ptr %bytes.p
  %big = icmp uge i64 %bytes, ALIGNED_LEAST
  br i1 %big, label %aligned, label %plain
aligned:
  %x = call ptr @fg.array(ptr %result, i64 %bytes)
  br label %made
plain:
  %y = call ptr @array.of(ptr %result, ptr null, i32 0)
  br label %made
made:
  %a = phi ptr [ %x, %aligned ], [ %y, %plain ]
  %none = icmp eq ptr %a, null
  br i1 %none, label %done, label %seal
seal:
  %flags.p = getelementptr i8, ptr %a, i64 64
  %flags = load i32, ptr %flags.p
  %sealed = and i32 %flags, -1025
  store i32 %sealed, ptr %flags.p
  br label %done
done:
  ret ptr %a
}

; A new box, as its %Box says, around the array, which it owns from then on; null and an exception
; on failure.
define internal ptr @box.new(ptr %form, ptr %result, ptr %array) nounwind alwaysinline {
entry:
  %class = load ptr, ptr %form
  %f = call ptr @api(PyType_GenericAlloc)
  %box = call ptr %f(ptr %class, i64 0)
  %none = icmp eq ptr %box, null
  br i1 %none, label %done, label %fill
fill:
  %np.p = getelementptr %Box.np, ptr %form
  %shape.p = getelementptr %Box.shape, ptr %form
  %dtype.p = getelementptr %Box.dtype, ptr %form
  %np.o = load i64, ptr %np.p
  %shape.o = load i64, ptr %shape.p
  %dtype.o = load i64, ptr %dtype.p
  %np = getelementptr i8, ptr %box, i64 %np.o
  %shape = getelementptr i8, ptr %box, i64 %shape.o
  %dtype = getelementptr i8, ptr %box, i64 %dtype.o
  %dtype.object = load ptr, ptr %result
  %shape.q = getelementptr %Result.shape, ptr %result
  %shape.object = load ptr, ptr %shape.q
  call void @hold(ptr %shape.object)
  call void @hold(ptr %dtype.object)
  store ptr %array, ptr %np
  store ptr %shape.object, ptr %shape
  store ptr %dtype.object, ptr %dtype
  br label %done
done:
  ret ptr %box
}
""")
SIZES = {                  # bytes from which results are aligned, and wait for reuse; all waiting
    "ALIGNED_LEAST": 1 << 15, "POOLED_LEAST": 1 << 18, "POOLED_MOST": 1 << 28, "POOL_PLACES": 32}
OWNER = "fgrad.block"
for _word, _value in (*SIZES.items(), ("OWNER", OWNER), ("FUNCTIONS", len(FUNCTIONS))):
    TEXT = TEXT.replace(_word, str(_value))
