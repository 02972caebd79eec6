"""The machine code behind `native_call.py`, as LLVM text: `fg.call`, the entry of every builtin.

RECORDS of `native_results.py` are also the ctypes structures there.  The offsets 8, 16, 24, 32, 56
and 64 are those of type, data, ndim, dims, descr and flags in an ndarray; in other objects 16 is a
float's value or a container's length, and 24 a tuple's items or the pointer to a list's.  They are
checked there before any of this runs.  It runs with the interpreter's lock held; a kernel may give
it up meanwhile.  Relies on `native_results` and `native_donation`.
"""

from __future__ import annotations

from . import native_donation, native_results
from .native_results import declared, with_places

TYPES = declared("Argument", "Node", "Call", "State")
TEXT = native_results.TEXT + TYPES + native_donation.TEXT + with_places("""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; ---- Arguments.  `place` notes the data and the owner of the next input.

define internal void @place(ptr %state, ptr %data, ptr %owner) nounwind alwaysinline {
  %data.p = getelementptr %State.data, ptr %state
  %held.p = getelementptr %State.held, ptr %state
  %index.p = getelementptr %State.index, ptr %state
  %datas = load ptr, ptr %data.p
  %helds = load ptr, ptr %held.p
  %i = load i64, ptr %index.p
  %data.i = getelementptr ptr, ptr %datas, i64 %i
  %held.i = getelementptr ptr, ptr %helds, i64 %i
  store ptr %data, ptr %data.i
  store ptr %owner, ptr %held.i
  %i1 = add i64 %i, 1
  store i64 %i1, ptr %index.p
  ret void
}

; Places a box, ndarray or NumPy scalar that is what the next input's Argument says; else false, as
; for a float64, which is a number.
define internal i1 @array(ptr %state, ptr %given) nounwind alwaysinline {
entry:
  %box.class = load ptr, ptr %state
  %arguments.p = getelementptr %State.arguments, ptr %state
  %index.p = getelementptr %State.index, ptr %state
  %arguments = load ptr, ptr %arguments.p
  %i = load i64, ptr %index.p
  %ndarray = call ptr @api(ndarray)
  %want = getelementptr %Argument, ptr %arguments, i64 %i
  %class.p = getelementptr i8, ptr %given, i64 8
  %class = load ptr, ptr %class.p
  %boxed = icmp eq ptr %class, %box.class
  br i1 %boxed, label %unbox, label %array
unbox:
  %np.p = getelementptr %State.np, ptr %state
  %np.offset = load i64, ptr %np.p
  %inner.p = getelementptr i8, ptr %given, i64 %np.offset
  %inner = load ptr, ptr %inner.p
  %vacant = icmp eq ptr %inner, null
  br i1 %vacant, label %miss, label %unboxed
unboxed:
  %inner.class.p = getelementptr i8, ptr %inner, i64 8
  %inner.class = load ptr, ptr %inner.class.p
  br label %array
array:
  %a = phi ptr [ %given, %entry ], [ %inner, %unboxed ]
  %a.class = phi ptr [ %class, %entry ], [ %inner.class, %unboxed ]
  %a.data.p = getelementptr i8, ptr %a, i64 16
  %is.array = icmp eq ptr %a.class, %ndarray
  br i1 %is.array, label %match, label %scalar
scalar:
  %scalar.p = getelementptr %Argument.scalar, ptr %want
  %scalar.class = load ptr, ptr %scalar.p
  %is.scalar = icmp eq ptr %a.class, %scalar.class
  %float64 = call ptr @api(float64)
  %is.boxed = icmp ne ptr %class, %float64                  ; else it is a number
  %is.one = and i1 %is.scalar, %is.boxed
  br i1 %is.one, label %taken, label %miss
match:
  %dtype.p = getelementptr i8, ptr %a, i64 56
  %ndim.p = getelementptr i8, ptr %a, i64 24
  %flags.p = getelementptr i8, ptr %a, i64 64
  %dtype = load ptr, ptr %dtype.p
  %ndim.short = load i32, ptr %ndim.p
  %flags = load i32, ptr %flags.p
  %ndim = zext i32 %ndim.short to i64
  %want.dtype = load ptr, ptr %want
  %want.ndim.p = getelementptr %Argument.ndim, ptr %want
  %want.ndim = load i64, ptr %want.ndim.p
  %kind = and i32 %flags, 257
  %same.dtype = icmp eq ptr %dtype, %want.dtype
  %same.ndim = icmp eq i64 %ndim, %want.ndim
  %same.kind = icmp eq i32 %kind, 257
  %same.1 = and i1 %same.dtype, %same.ndim
  %same = and i1 %same.1, %same.kind
  br i1 %same, label %shape, label %miss
shape:
  %dims.p = getelementptr i8, ptr %a, i64 32
  %dims = load ptr, ptr %dims.p
  %want.dims.p = getelementptr %Argument.dims, ptr %want
  %want.dims = load ptr, ptr %want.dims.p
  br label %axis
axis:
  %k = phi i64 [ 0, %shape ], [ %k1, %extent ]
  %axis.more = icmp slt i64 %k, %ndim
  br i1 %axis.more, label %extent, label %matched
extent:
  %n.p = getelementptr i64, ptr %dims, i64 %k
  %want.n.p = getelementptr i64, ptr %want.dims, i64 %k
  %n = load i64, ptr %n.p
  %want.n = load i64, ptr %want.n.p
  %k1 = add i64 %k, 1
  %same.n = icmp eq i64 %n, %want.n
  br i1 %same.n, label %axis, label %miss
matched:
  %a.data = load ptr, ptr %a.data.p
  br label %taken
taken:
  %data = phi ptr [ %a.data.p, %scalar ], [ %a.data, %matched ]
  %boxes.p = getelementptr %State.boxes, ptr %state
  %boxes = load ptr, ptr %boxes.p
  %donates = icmp ne ptr %boxes, null
  br i1 %donates, label %note, label %good
note:
  %box.i = getelementptr ptr, ptr %boxes, i64 %i
  %box = select i1 %boxed, ptr %given, ptr null
  store ptr %box, ptr %box.i
  br label %good
good:
  call void @place(ptr %state, ptr %data, ptr %a)
  ret i1 true
miss:
  ret i1 false
}

; Places a Python float, as f32 or f64 (bytes 4 or 8).
define internal void @number(ptr %state, ptr %given, i64 %bytes) nounwind {
entry:
  %value.p = getelementptr i8, ptr %given, i64 16
  %wide = icmp eq i64 %bytes, 8
  br i1 %wide, label %as.is, label %convert
as.is:
  call void @place(ptr %state, ptr %value.p, ptr %given)
  ret void
convert:
  %index.p = getelementptr %State.index, ptr %state
  %numbers.p = getelementptr %State.numbers, ptr %state
  %i = load i64, ptr %index.p
  %numbers = load ptr, ptr %numbers.p
  %slot = getelementptr i64, ptr %numbers, i64 %i
  %value = load double, ptr %value.p
  %short = fptrunc double %value to float
  store float %short, ptr %slot
  call void @place(ptr %state, ptr %slot, ptr %given)
  ret void
}

; Places a Python int or bool, as i64, whose first byte is that of a bool; false beyond 64 bits.
define internal i1 @whole(ptr %state, ptr %given) nounwind {
entry:
  %beyond.p = alloca i32
  %index.p = getelementptr %State.index, ptr %state
  %numbers.p = getelementptr %State.numbers, ptr %state
  %i = load i64, ptr %index.p
  %numbers = load ptr, ptr %numbers.p
  %slot = getelementptr i64, ptr %numbers, i64 %i
  %f = call ptr @api(PyLong_AsLongLongAndOverflow)
  %value = call i64 %f(ptr %given, ptr %beyond.p)
  store i64 %value, ptr %slot
  %beyond = load i32, ptr %beyond.p
  %fits = icmp eq i32 %beyond, 0
  br i1 %fits, label %here, label %miss
here:
  call void @place(ptr %state, ptr %slot, ptr %given)
  ret i1 true
miss:
  ret i1 false
}

; Places what the object holds, if it is what the node says; the node behind it, or null.
define internal ptr @walk(ptr %state, ptr %node, ptr %given) nounwind {
entry:
  %kind = load i64, ptr %node
  %next = getelementptr %Node, ptr %node, i64 1
  %is.leaf = icmp eq i64 %kind, 0
  br i1 %is.leaf, label %leaf, label %other
leaf:
  %good = call i1 @array(ptr %state, ptr %given)
  %after = select i1 %good, ptr %next, ptr null
  ret ptr %after
other:
  %count.p = getelementptr %Node.count, ptr %node
  %object.p = getelementptr %Node.object, ptr %node
  %keys.p = getelementptr %Node.keys, ptr %node
  %count = load i64, ptr %count.p
  %object = load ptr, ptr %object.p
  %keys = load ptr, ptr %keys.p
  %is.same = icmp eq i64 %kind, 2
  br i1 %is.same, label %same, label %typed
same:
  %identical = icmp eq ptr %given, %object
  %after.same = select i1 %identical, ptr %next, ptr null
  ret ptr %after.same
typed:
  %class.p = getelementptr i8, ptr %given, i64 8
  %class = load ptr, ptr %class.p
  %expected = icmp eq ptr %class, %object
  br i1 %expected, label %sort, label %miss
sort:
  %size.p = getelementptr i8, ptr %given, i64 16
  %inside = getelementptr i8, ptr %given, i64 24
  switch i64 %kind, label %miss [ i64 1, label %float  i64 3, label %tuple
                                  i64 4, label %list   i64 5, label %dict
                                  i64 6, label %compare  i64 7, label %whole ]
whole:
  %is.whole = call i1 @whole(ptr %state, ptr %given)
  %after.whole = select i1 %is.whole, ptr %next, ptr null
  ret ptr %after.whole
float:
  call void @number(ptr %state, ptr %given, i64 %count)
  ret ptr %next
tuple:
  br label %sized
list:
  %list.items = load ptr, ptr %inside
  br label %sized
dict:
  %dict.size.f = call ptr @api(PyDict_Size)
  %dict.size = call i64 %dict.size.f(ptr %given)
  br label %compare
sized:
  %items = phi ptr [ %inside, %tuple ], [ %list.items, %list ]
  %size = load i64, ptr %size.p
  br label %compare
compare:
  %length = phi i64 [ %dict.size, %dict ], [ %size, %sized ], [ %count, %sort ]
  %things = phi ptr [ null, %dict ], [ %items, %sized ], [ null, %sort ]
  %is.sequence = icmp ne ptr %things, null
  %is.dict = icmp eq i64 %kind, 5
  %fits = icmp eq i64 %length, %count
  br i1 %fits, label %child, label %miss
child:
  %c = phi i64 [ 0, %compare ], [ %c1, %walked ]
  %child.node = phi ptr [ %next, %compare ], [ %child.next, %walked ]
  %child.more = icmp slt i64 %c, %count
  br i1 %child.more, label %fetch, label %done
fetch:
  br i1 %is.sequence, label %by.place, label %by.name
by.name:
  %key.p = getelementptr ptr, ptr %keys, i64 %c
  %key = load ptr, ptr %key.p
  br i1 %is.dict, label %by.key, label %by.attribute
by.attribute:
  %get.attribute = call ptr @api(PyObject_GetAttr)
  %attribute = call ptr %get.attribute(ptr %given, ptr %key)
  %lacks = icmp eq ptr %attribute, null
  br i1 %lacks, label %clear, label %fetched
clear:
  %clear.f = call ptr @api(PyErr_Clear)
  call void %clear.f()
  ret ptr null
by.key:
  %get = call ptr @api(PyDict_GetItem)
  %found = call ptr %get(ptr %given, ptr %key)
  %absent = icmp eq ptr %found, null
  br i1 %absent, label %miss, label %fetched
by.place:
  %item.p = getelementptr ptr, ptr %things, i64 %c
  %item = load ptr, ptr %item.p
  br label %fetched
fetched:
  %thing = phi ptr [ %found, %by.key ], [ %item, %by.place ], [ %attribute, %by.attribute ]
  %lent = phi ptr [ null, %by.key ], [ null, %by.place ], [ %attribute, %by.attribute ]
  %child.next = call ptr @walk(ptr %state, ptr %child.node, ptr %thing)
  %is.lent = icmp ne ptr %lent, null
  br i1 %is.lent, label %give.back, label %answered
give.back:                                          ; the instance keeps the arrays that it holds
  call void @release(ptr %lent)
  br label %answered
answered:
  %lost = icmp eq ptr %child.next, null
  br i1 %lost, label %miss, label %walked
walked:
  %c1 = add i64 %c, 1
  br label %child
done:
  ret ptr %child.node
miss:
  ret ptr null
}

; ---- Results.  The next node's object, of the results from the next one on; null and an exception
; on failure.  %at: pointers to the next node and the next result, which move on.

define internal ptr @put.together(ptr %at) nounwind {
entry:
  %leaf.p = getelementptr ptr, ptr %at, i64 1
  %node = load ptr, ptr %at
  %next = getelementptr %Node, ptr %node, i64 1
  store ptr %next, ptr %at
  %kind = load i64, ptr %node
  %count.p = getelementptr %Node.count, ptr %node
  %keys.p = getelementptr %Node.keys, ptr %node
  %count = load i64, ptr %count.p
  %keys = load ptr, ptr %keys.p
  switch i64 %kind, label %leaf [ i64 3, label %tuple  i64 4, label %list  i64 5, label %dict ]
leaf:
  %item.p = load ptr, ptr %leaf.p
  %item = load ptr, ptr %item.p
  %behind = getelementptr ptr, ptr %item.p, i64 1
  store ptr %behind, ptr %leaf.p
  ret ptr %item
tuple:
  %tuple.new = call ptr @api(PyTuple_New)
  %a.tuple = call ptr %tuple.new(i64 %count)
  %tuple.set = call ptr @api(PyTuple_SetItem)
  br label %made
list:
  %list.new = call ptr @api(PyList_New)
  %a.list = call ptr %list.new(i64 %count)
  %list.set = call ptr @api(PyList_SetItem)
  br label %made
dict:
  %dict.new = call ptr @api(PyDict_New)
  %a.dict = call ptr %dict.new()
  br label %made
made:
  %out = phi ptr [ %a.tuple, %tuple ], [ %a.list, %list ], [ %a.dict, %dict ]
  %place = phi ptr [ %tuple.set, %tuple ], [ %list.set, %list ], [ null, %dict ]
  %by.key = icmp eq ptr %place, null
  %none = icmp eq ptr %out, null
  br i1 %none, label %nothing, label %head
head:
  %i = phi i64 [ 0, %made ], [ %i1, %placed ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %part, label %done
part:
  %one = call ptr @put.together(ptr %at)
  %lost = icmp eq ptr %one, null
  br i1 %lost, label %fail, label %set
set:
  br i1 %by.key, label %set.key, label %set.place
set.place:                                          ; takes the part over
  %ignored = call i32 %place(ptr %out, i64 %i, ptr %one)
  br label %placed
set.key:
  %key.p = getelementptr ptr, ptr %keys, i64 %i
  %key = load ptr, ptr %key.p
  %dict.set = call ptr @api(PyDict_SetItem)
  %refused = call i32 %dict.set(ptr %out, ptr %key, ptr %one)
  call void @release(ptr %one)
  %bad = icmp ne i32 %refused, 0
  br i1 %bad, label %fail, label %placed
placed:
  %i1 = add i64 %i, 1
  br label %head
done:
  ret ptr %out
fail:
  call void @release(ptr %out)
  ret ptr null
nothing:
  ret ptr null
}

; ---- The entry: PyObject *(PyObject *self, PyObject **args, Py_ssize_t count, PyObject *keywords)

define ptr @fg.call(ptr %self, ptr %args, i64 %count, ptr %keywords) nounwind uwtable {
entry:
  %call.p = getelementptr i8, ptr %self, i64 16
  %call = load ptr, ptr %call.p
  %fallback.p = getelementptr %Call.fallback, ptr %call
  %arity.p = getelementptr %Call.arity, ptr %call
  %arity = load i64, ptr %arity.p
  %all = icmp eq i64 %count, %arity
  %bare = icmp eq ptr %keywords, null
  %plain = and i1 %all, %bare
  br i1 %plain, label %room, label %miss

room:
  %inputs.p = getelementptr %Call.inputs, ptr %call
  %inputs = load i64, ptr %inputs.p
  %outputs.p = getelementptr %Call.outputs, ptr %call
  %constants.p = getelementptr %Call.constants, ptr %call
  %outputs = load i64, ptr %outputs.p
  %constants = load i64, ptr %constants.p
  %arrays = add i64 %inputs, %outputs
  %pointers = add i64 %arrays, %constants
  %data = alloca ptr, i64 %pointers                 ; what the kernel is given
  %room.held = add i64 %arrays, 1
  %held = alloca ptr, i64 %room.held                ; the objects that own the data
  %made = getelementptr ptr, ptr %held, i64 %inputs
  %box.class = load ptr, ptr %call
  %np.p = getelementptr %Call.np, ptr %call
  %np.offset = load i64, ptr %np.p
  %arguments.p = getelementptr %Call.arguments, ptr %call
  %results.p = getelementptr %Call.results, ptr %call
  %arguments = load ptr, ptr %arguments.p
  %results = load ptr, ptr %results.p
  %nodes.p = getelementptr %Call.nodes, ptr %call
  %nodes = load ptr, ptr %nodes.p
  %room.state = sub i64 %room.held, %outputs
  %numbers = alloca i64, i64 %room.state            ; Python floats, converted
  %state = alloca %State
  %gone.p = getelementptr %Call.gone, ptr %call
  %gone = load ptr, ptr %gone.p
  %donates = icmp ne ptr %gone, null
  %room.boxes = select i1 %donates, i64 %inputs, i64 0
  %some.boxes = alloca ptr, i64 %room.boxes         ; those that the inputs were in
  %boxes = select i1 %donates, ptr %some.boxes, ptr null
  %state.1 = getelementptr %State.np, ptr %state
  %state.2 = getelementptr %State.arguments, ptr %state
  %state.3 = getelementptr %State.data, ptr %state
  %state.4 = getelementptr %State.held, ptr %state
  %state.5 = getelementptr %State.index, ptr %state
  %state.6 = getelementptr %State.numbers, ptr %state
  %state.7 = getelementptr %State.boxes, ptr %state
  store ptr %box.class, ptr %state
  store i64 %np.offset, ptr %state.1
  store ptr %arguments, ptr %state.2
  store ptr %data, ptr %state.3
  store ptr %held, ptr %state.4
  store i64 0, ptr %state.5
  store ptr %numbers, ptr %state.6
  store ptr %boxes, ptr %state.7
  br label %arg

arg:                                                ; for every argument: match, and find its data
  %i = phi i64 [ 0, %room ], [ %i1, %arg.taken ]
  %node = phi ptr [ %nodes, %room ], [ %node.next, %arg.taken ]
  %arg.more = icmp slt i64 %i, %arity
  br i1 %arg.more, label %open, label %allocate
open:
  %given.p = getelementptr ptr, ptr %args, i64 %i
  %given = load ptr, ptr %given.p
  %node.next = call ptr @walk(ptr %state, ptr %node, ptr %given)
  %strange = icmp eq ptr %node.next, null
  br i1 %strange, label %miss, label %arg.taken
arg.taken:
  %i1 = add i64 %i, 1
  br label %arg

allocate:                                           ; arrays for the results that take over none
  %j = phi i64 [ 0, %arg ], [ %j1, %allocated ], [ %j1, %later ]
  %ij = phi i64 [ %inputs, %arg ], [ %ij1, %allocated ], [ %ij, %later ]
  %allocate.more = icmp slt i64 %j, %outputs
  br i1 %allocate.more, label %new, label %ready
new:
  %result = getelementptr %Result, ptr %results, i64 %j
  %made.j = getelementptr ptr, ptr %made, i64 %j
  %taken.p = getelementptr %Result.taken, ptr %result
  %taken = load i64, ptr %taken.p
  %j1 = add i64 %j, 1
  %takes.none = icmp eq i64 %taken, 0
  br i1 %takes.none, label %fresh, label %later
later:
  store ptr null, ptr %made.j
  br label %allocate
fresh:
  %out = call ptr @array.new(ptr %result)
  %out.none = icmp eq ptr %out, null
  br i1 %out.none, label %fail, label %allocated
allocated:
  %out.data.p = getelementptr i8, ptr %out, i64 16
  %out.data = load ptr, ptr %out.data.p
  %data.ij = getelementptr ptr, ptr %data, i64 %ij
  store ptr %out.data, ptr %data.ij
  store ptr %out, ptr %made.j
  %ij1 = add i64 %ij, 1
  br label %allocate
ready:
  br i1 %donates, label %take.over, label %run
take.over:
  %is.taken = call i1 @take(ptr %call, ptr %boxes, ptr %held)
  br i1 %is.taken, label %own, label %put.back
put.back:
  call void @release_all(ptr %made, i64 %outputs)
  br label %miss
own:                                                ; what was taken is a result's from here on
  %o = phi i64 [ 0, %take.over ], [ %o1, %owned ]
  %own.more = icmp slt i64 %o, %outputs
  br i1 %own.more, label %own.one, label %run
own.one:
  %own.result = getelementptr %Result, ptr %results, i64 %o
  %own.taken.p = getelementptr %Result.taken, ptr %own.result
  %own.taken = load i64, ptr %own.taken.p
  %o1 = add i64 %o, 1
  %own.none = icmp eq i64 %own.taken, 0
  br i1 %own.none, label %owned, label %own.array
own.array:
  %own.input = sub i64 %own.taken, 1
  %held.o = getelementptr ptr, ptr %held, i64 %own.input
  %made.o = getelementptr ptr, ptr %made, i64 %o
  %array.o = load ptr, ptr %held.o
  store ptr %array.o, ptr %made.o
  br label %owned
owned:
  br label %own

run:
  %rest = getelementptr ptr, ptr %data, i64 %ij
  %constant.p = getelementptr %Call.constant_data, ptr %call
  %constant = load ptr, ptr %constant.p
  %constant.bytes = shl i64 %constants, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %constant, i64 %constant.bytes, i1 false)
  %kernel.p = getelementptr %Call.kernel, ptr %call
  %kernel = load ptr, ptr %kernel.p
  %gil.p = getelementptr %Call.unlocks, ptr %call
  %gil = load i64, ptr %gil.p
  %keep.gil = icmp eq i64 %gil, 0
  br i1 %keep.gil, label %short, label %long
short:
  call void %kernel(ptr %data, ptr %rest)
  br i1 %donates, label %let.go, label %box
let.go:
  call void @let.go(ptr %call, ptr %boxes)
  br label %box
long:                                               ; another thread may empty a box meanwhile
  %h = phi i64 [ 0, %run ], [ %h1, %hold.one ]
  %hold.more = icmp slt i64 %h, %inputs
  br i1 %hold.more, label %hold.one, label %unlocking
hold.one:
  %held.h = getelementptr ptr, ptr %held, i64 %h
  %owner = load ptr, ptr %held.h
  call void @hold(ptr %owner)
  %h1 = add i64 %h, 1
  br label %long
unlocking:
  call void %kernel(ptr %data, ptr %rest)
  call void @release_all(ptr %held, i64 %inputs)
  br i1 %donates, label %drop, label %looked
drop:
  call void @let.go(ptr %call, ptr %boxes)
  br label %looked
looked:
  %occurred = call ptr @api(PyErr_Occurred)
  %exception = call ptr %occurred()
  %fine = icmp eq ptr %exception, null
  br i1 %fine, label %box, label %fail

box:                                                ; put every array into a box, in its place
  %b = phi i64 [ 0, %short ], [ 0, %let.go ], [ 0, %looked ], [ %b1, %boxed.one ]
  %box.more = icmp slt i64 %b, %outputs
  br i1 %box.more, label %box.one, label %return
box.one:
  %made.b = getelementptr ptr, ptr %made, i64 %b
  %bare.array = load ptr, ptr %made.b
  %box.result = getelementptr %Result, ptr %results, i64 %b
  %new.box = call ptr @box.new(ptr %call, ptr %box.result, ptr %bare.array)
  %box.none = icmp eq ptr %new.box, null
  br i1 %box.none, label %fail, label %boxed.one
boxed.one:
  store ptr %new.box, ptr %made.b
  %b1 = add i64 %b, 1
  br label %box

return:
  %assemble.p = getelementptr %Call.assemble, ptr %call
  %assemble = load ptr, ptr %assemble.p
  %native = icmp eq ptr %assemble, null
  br i1 %native, label %formed, label %gather
formed:
  %form.p = getelementptr %Call.returned, ptr %call
  %form = load ptr, ptr %form.p
  %form.kind = load i64, ptr %form
  %single = icmp eq i64 %form.kind, 0
  br i1 %single, label %return.one, label %build
return.one:
  %only = load ptr, ptr %made
  ret ptr %only
build:
  store ptr %form, ptr %state                       ; its room is free now
  store ptr %made, ptr %state.1
  %built = call ptr @put.together(ptr %state)
  %unbuilt = icmp eq ptr %built, null
  br i1 %unbuilt, label %give.back, label %return.built
return.built:
  ret ptr %built
give.back:                                          ; an exception is set; what is in no container
  %first.left = load ptr, ptr %state.1
  %behind.made = getelementptr ptr, ptr %made, i64 %outputs
  %left.from = ptrtoint ptr %first.left to i64
  %left.to = ptrtoint ptr %behind.made to i64
  %left.bytes = sub i64 %left.to, %left.from
  %left = lshr i64 %left.bytes, 3
  call void @release_all(ptr %first.left, i64 %left)
  ret ptr null
gather:
  %tuple.new = call ptr @api(PyTuple_New)
  %tuple = call ptr %tuple.new(i64 %outputs)
  %tuple.none = icmp eq ptr %tuple, null
  br i1 %tuple.none, label %fail, label %put
put:
  %t = phi i64 [ 0, %gather ], [ %t1, %put.one ]
  %put.more = icmp slt i64 %t, %outputs
  br i1 %put.more, label %put.one, label %assembled
put.one:
  %made.t = getelementptr ptr, ptr %made, i64 %t
  %item = load ptr, ptr %made.t
  %set = call ptr @api(PyTuple_SetItem)
  %ignored = call i32 %set(ptr %tuple, i64 %t, ptr %item)
  %t1 = add i64 %t, 1
  br label %put
assembled:
  store ptr %tuple, ptr %held
  %vector = call ptr @api(PyObject_Vectorcall)
  %final = call ptr %vector(ptr %assemble, ptr %held, i64 1, ptr null)
  call void @release(ptr %tuple)
  ret ptr %final

fail:                                               ; an exception is set; give back what was made
  %count.made = phi i64 [ %j, %fresh ], [ %outputs, %looked ], [ %outputs, %box.one ],
      [ %outputs, %gather ]
  call void @release_all(ptr %made, i64 %count.made)
  ret ptr null

miss:
  %fallback = load ptr, ptr %fallback.p
  %python = call ptr @api(PyObject_Vectorcall)
  %answer = call ptr %python(ptr %fallback, ptr %args, i64 %count, ptr %keywords)
  ret ptr %answer
}
""")
