"""Builtins in machine code: what they take, what they make, and what they leave to `fallback`."""

import gc
import subprocess
import sys
import threading
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest

import fgrad
from fgrad import slots
from fgrad.backends.forms import ARRAY, BOOL as FLAG, FLOAT, FLOAT64, INT, Attributes, Same
from fgrad.backends.llvm import native_call, runner, target
from fgrad.types import BF16, BOOL, DTYPES, F32, F64, I32, I64, ArrayType
from tests.at_once import at_once

TYPES = {"f4": "float", "f8": "double", "f2": "half", "b1": "i8", "i1": "i8", "i2": "i16",
         "i4": "i32", "i8": "i64"}


class Value:
    __slots__ = ("other", "__weakref__")


class Box(Value):
    """Stands for fgrad.Array."""
    __slots__ = ("np", "_shape", "_dtype")

    def __init__(self, x):
        self.np, self._shape, self._dtype = x, x.shape, x.dtype


slots.read_only(Box, "shape", "dtype")


class Twice:
    """A kernel and its callables: every output is the sum of all inputs, elementwise."""

    def __init__(self, make, inputs, outputs, **options):
        self.missed = []
        text = sums(inputs, outputs, options.get("constants", ()))
        library = target.load(target.compile_text(text))
        self.call = make(library.address("kernel"), inputs, outputs, self.fallback, Box, "step",
                         **options)

    def fallback(self, *args, **keywords):
        self.missed.append((args, keywords))
        return "missed"

    def __call__(self, *args, **keywords):
        return self.call(*args, **keywords)


def sums(inputs, outputs, constants=()):
    """LLVM text of a kernel; inputs, constants and outputs have one dtype and size."""
    kind = TYPES[outputs[0].dtype.str[1:].replace("u", "i")] if outputs else "i8"
    add = "fadd" if outputs and outputs[0].dtype.kind == "f" else "add"
    read = [*range(len(inputs)), *(len(inputs) + len(outputs) + c for c in range(len(constants)))]
    written = range(len(inputs), len(inputs) + len(outputs))
    size = outputs[0].size if outputs else 0
    lines = ["define void @kernel(ptr %data) {", "entry:"]
    for n in [*read, *written]:
        lines += [f"  %q{n} = getelementptr ptr, ptr %data, i64 {n}",
                  f"  %p{n} = load ptr, ptr %q{n}"]
    lines += ["  br label %head", "head:", "  %i = phi i64 [ 0, %entry ], [ %next, %body ]",
              f"  %more = icmp slt i64 %i, {size}",
              "  br i1 %more, label %body, label %done", "body:"]
    total = "0.0" if add == "fadd" else "0"
    for n in read:
        lines += [f"  %e{n} = getelementptr {kind}, ptr %p{n}, i64 %i",
                  f"  %v{n} = load {kind}, ptr %e{n}", f"  %s{n} = {add} {kind} {total}, %v{n}"]
        total = f"%s{n}"
    for n in written:
        lines += [f"  %e{n} = getelementptr {kind}, ptr %p{n}, i64 %i",
                  f"  store {kind} {total}, ptr %e{n}"]
    lines += ["  %next = add i64 %i, 1", "  br label %head", "done:", "  ret void", "}"]
    return "\n".join(lines)


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("FGRAD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def make():
    if not native_call.probe():
        pytest.skip("this interpreter's layouts are not known")
    return native_call.entry


def add_one():
    """The results of calls of a jitted function, which are to be the same without builtins."""
    add = fgrad.jit(lambda x: x + 1)
    return [add(np.arange(3, dtype="f4")).tolist() for _ in range(3)]


def test_machine_code_calls_only_what_every_supported_python_exports():
    """Python 3.10 has PyObject_CallOneArg in its headers alone: every jitted function failed."""
    inline = {"PyObject_CallOneArg", "PyObject_CallNoArgs", "PyObject_Vectorcall", "Py_NewRef"}
    assert not inline & {*runner.FROM_PYTHON}


def test_the_native_way_is_open_where_we_test():
    standard = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: 1)()
    assert native_call.probe() == bool(standard)


def test_the_environment_switches_it_off(monkeypatch):
    monkeypatch.setenv("FGRAD_NATIVE_CALL", "0")
    assert not native_call.probe()
    assert add_one() == [[1, 2, 3]] * 3


@pytest.mark.parametrize("name, wrong", [
    ("DATA", 24), ("NDIM", 28), ("DIMS", 40), ("BASE", 56), ("DESCR", 48), ("FLAGS", 68),
    ("ARRAY_TYPE", 3), ("CONTIGUOUS_ALIGNED", 0x0100), ("OWNS_DATA", 0x0100)])
def test_another_layout_of_arrays_switches_it_off(monkeypatch, name, wrong):
    if not native_call.probe():
        pytest.skip("this interpreter's layouts are not known")
    monkeypatch.setattr(native_call, name, wrong)
    monkeypatch.setattr(native_call, "layouts_hold", native_call.layouts_hold.__wrapped__)
    assert not native_call.probe()
    assert add_one() == [[1, 2, 3]] * 3


@pytest.mark.parametrize("what", ["scalar", "container", "table"])
def test_another_layout_of_objects_switches_it_off(monkeypatch, what):
    word = native_call.word

    def moved(thing, offset, *type):
        return word(thing, offset, *type) + 1 if offset == 16 else word(thing, offset, *type)

    monkeypatch.setattr(native_call, "word", moved)
    monkeypatch.setattr(native_call.ctypes, "string_at", lambda *args: b"?")
    assert not getattr(native_call, f"{what}_layout_holds")()


def test_a_builtin_is_made_where_it_can_be():
    if not native_call.probe():
        pytest.skip("this interpreter's layouts are not known")
    library = target.load(target.compile_text(sums([], [])))
    call = native_call.entry(library.address("kernel"), [], [], print, Box, "step")
    assert isinstance(call, type(len)) and call.__name__ == "step" and call() == ()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d is not BF16], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (2, 0, 4), (2, 3, 4), (1,) * 12])
def test_the_result_is_a_box_of_a_read_only_array(make, dtype, shape):
    type = ArrayType(dtype, shape)
    call = Twice(make, [type], [type])
    x = np.arange(type.size).reshape(shape).astype(dtype)
    for given in (x, Box(x)):
        out = call(given)
        assert out.__class__ is Box and out.np.__class__ is np.ndarray
        assert out.shape == shape == out.np.shape and out.dtype is dtype is out.np.dtype
        assert np.array_equal(out.np, x) and not out.np.flags.writeable
        assert out.np.flags.c_contiguous and out.np.flags.f_contiguous == x.flags.f_contiguous
        assert not hasattr(out, "other")
    assert call.missed == []


def test_boxes_and_arrays_may_be_mixed(make):
    type = ArrayType(F32, (5,))
    call = Twice(make, [type] * 4, [type])
    a, b, c, d = (np.full(5, n, F32) for n in (1, 10, 100, 1000))
    for args in ((a, b, c, d), (Box(a), b, Box(c), d), (a, Box(b), c, Box(d)), (a, a, a, Box(a))):
        values = [getattr(arg, "np", arg) for arg in args]
        assert np.array_equal(call(*args).np, sum(values))
    assert call.missed == []


def test_numpy_scalars_stand_for_arrays_without_axes(make):
    type = ArrayType(F32, ())
    call = Twice(make, [type] * 2, [type])
    assert call(np.float32(2), Box(np.float32(3))).np == 5
    assert call(Box(call(np.array(1, F32), np.float32(1)).np[()]), np.float32(3)).np == 5
    assert call.missed == []
    assert call(np.float64(2), np.float32(3)) == call(2.0, np.float32(3)) == "missed"


MISSES = {
    "dtype": np.zeros((2, 3), F64), "integers": np.zeros((2, 3), I32),
    "shape": np.zeros((3, 2), F32),
    "fewer axes": np.zeros((6,), F32), "more axes": np.zeros((2, 3, 1), F32),
    "strides": np.zeros((3, 2), F32).T, "reversed": np.zeros((2, 3), F32)[::-1],
    "subclass": np.zeros((2, 3), F32).view(np.matrix), "byte order": np.zeros((2, 3), ">f4"),
    "unaligned": np.zeros(25, np.uint8)[1:].view(F32).reshape(2, 3), "scalar": np.float32(1),
    "number": 1.0, "none": None, "list": [[0.0] * 3] * 2, "object": np.zeros((2, 3), object),
}


@pytest.mark.parametrize("kind", MISSES)
def test_anything_else_goes_to_the_fallback(make, kind):
    type, good = ArrayType(F32, (2, 3)), np.ones((2, 3), F32)
    call = Twice(make, [type] * 2, [type])
    bad = [MISSES[kind]]
    if hasattr(bad[0], "dtype"):
        bad.append(Box(bad[0]))
    for x in bad:
        for args in ((good, x), (x, good)):
            assert call(*args) == "missed"
            assert call.missed.pop() == (args, {}) and call.missed == []
    assert np.array_equal(call(good, Box(good)).np, good + good)


def test_wrong_numbers_of_arguments_and_keywords_go_to_the_fallback(make):
    type, x = ArrayType(F32, (2,)), np.ones(2, F32)
    call = Twice(make, [type], [type])
    for args, keywords in (((), {}), ((x, x), {}), ((x,), {"a": 1}), ((), {"a": x})):
        assert call(*args, **keywords) == "missed"
        assert call.missed[-1] == (args, keywords)


def test_a_subclass_or_an_empty_box_goes_to_the_fallback(make):
    class Other(Box):
        pass

    type, x = ArrayType(F32, (2,)), np.ones(2, F32)
    call = Twice(make, [type], [type])
    empty = object.__new__(Box)
    donated = Box(x)
    donated.np = None
    assert call(Other(x)) == call(empty) == call(donated) == "missed"


def test_errors_of_the_fallback_and_of_assemble_come_through(make):
    def broken(*args):
        raise ZeroDivisionError("from below")

    type, x = ArrayType(F32, (2,)), np.ones(2, F32)
    address = target.load(target.compile_text(sums([type], [type]))).address("kernel")
    with pytest.raises(ZeroDivisionError, match="from below"):
        make(address, [type], [type], broken, Box, "step")(1)
    with pytest.raises(ZeroDivisionError, match="from below"):
        make(address, [type], [type], broken, Box, "step", assemble=broken)(x)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_results_are_one_box_a_tuple_or_what_assemble_makes(make, count):
    type, x = ArrayType(F64, (3,)), np.arange(3.0)
    outputs = [type] * count
    plain = Twice(make, [type], outputs)(x)
    boxes = (plain,) if count == 1 else plain
    assert isinstance(boxes, tuple) and len(boxes) == count
    assert all(np.array_equal(box.np, x) for box in boxes)
    made = Twice(make, [type], outputs, assemble=lambda flat: {"flat": flat})(x)
    assert len(made["flat"]) == count and isinstance(made["flat"], tuple)
    assert all(np.array_equal(box.np, x) for box in made["flat"])


FORMS = [[ARRAY], [], {"b": ARRAY, "a": (ARRAY, ARRAY)}, ([ARRAY, {"x": [ARRAY]}, ()], ARRAY),
         ((((ARRAY,),),), {}, [[ARRAY, ARRAY]])]


def leaves(form):
    """How many ARRAYs a form has."""
    if form == ARRAY:
        return 1
    return sum(map(leaves, form.values() if isinstance(form, dict) else form))


def numbered(made):
    """What was made, with the boxes' first elements in place of the boxes."""
    if isinstance(made, Box):
        return float(made.np[0])
    if isinstance(made, dict):
        return {key: numbered(part) for key, part in made.items()}
    return type(made)([numbered(part) for part in made])


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_results_come_in_containers(make, form):
    types = [ArrayType(F64, (3,))] * leaves(form)
    made = Twice(make, types[:1], types, returned=form)(*[np.arange(7.0, 10)] * len(types[:1]))
    count = iter([7.0] * leaves(form))

    def expected(form):
        if form == ARRAY:
            return next(count)
        if isinstance(form, dict):
            return {key: expected(part) for key, part in form.items()}
        return form.__class__([expected(part) for part in form])
    assert numbered(made) == expected(form)
    assert [*made] == [*form] or not isinstance(form, dict)          # in order


class Unhashable(str):
    """A key that can be hashed until it is told otherwise."""
    broken = False

    def __hash__(self):
        if Unhashable.broken:
            raise ZeroDivisionError("no hash")
        return super().__hash__()


def test_a_container_that_cannot_be_made_leaks_nothing(make, monkeypatch):
    types = [ArrayType(F64, (3,))] * 5
    form = [ARRAY, {"a": ARRAY, Unhashable("b"): (ARRAY, ARRAY)}, ARRAY]
    call, x, blocks = Twice(make, types[:1], types, returned=form), np.ones(3), []
    assert len(call(x)) == 3
    monkeypatch.setattr(Unhashable, "broken", True)
    for _ in range(3):
        for _ in range(100):
            with pytest.raises(ZeroDivisionError, match="no hash"):
                call(x)
        gc.collect()
        blocks.append(sys.getallocatedblocks())
    assert blocks[2] - blocks[1] < 100


def test_constants_follow_the_outputs(make):
    type, x = ArrayType(F32, (4,)), np.ones(4, F32)
    constants = [np.full(4, 10, F32), np.full(4, 100, F32)]
    outs = Twice(make, [type], [type] * 2, constants=constants)(x)
    assert [list(out.np) for out in outs] == [[111.0] * 4] * 2
    outs = Twice(make, [], [type] * 2, constants=constants)()
    assert [list(out.np) for out in outs] == [[110.0] * 4] * 2


def test_the_kernel_is_told_where_the_constants_are(make):
    text = """
    define void @kernel(ptr %data, ptr %constants) {
      %out.p = getelementptr ptr, ptr %data, i64 1
      %out = load ptr, ptr %out.p
      %constant = load ptr, ptr %constants
      %x = load float, ptr %constant
      store float %x, ptr %out
      ret void
    }
    """
    type = ArrayType(F32, ())
    address = target.load(target.compile_text(text)).address("kernel")
    call = make(address, [type], [type], print, Box, "step", constants=[np.array(7, F32)])
    assert call(np.float32(1)).np == 7


@pytest.mark.parametrize("release", [False, True])
@pytest.mark.parametrize("size", [1000, 10_000, 5_000_001])
def test_big_results_are_aligned_and_their_memory_returns(make, size, release):
    type = ArrayType(F32, (size,))
    call = Twice(make, [type], [type], unlocks=release)
    x = np.arange(size, dtype=F32)
    kept = [call(x) for _ in range(3)]
    for _ in range(6):
        out = call(x)
        assert np.array_equal(out.np, x)
        if x.nbytes >= 1 << 15:
            assert out.np.ctypes.data % 64 == 0
        del out
    assert all(np.array_equal(box.np, x) for box in kept)
    assert len({box.np.ctypes.data for box in kept}) == 3
    view = kept.pop().np[1:-1]
    kept.clear()
    call(x)
    assert np.array_equal(view, x[1:-1])


def test_too_big_a_result_raises_memory_error(make):
    small, huge = ArrayType(F32, (1,)), ArrayType(F32, (1 << 55,))
    library = target.load(target.compile_text(sums([small], [small])))
    call = make(library.address("kernel"), [small], [small, huge], print, Box, "step")
    with pytest.raises(MemoryError):
        call(np.ones(1, F32))


@pytest.mark.parametrize("made", [{"assemble": lambda flat: flat[1]},
                                  {"returned": [{"a": ARRAY}, (ARRAY,)]}, {}],
                         ids=["assembled", "containers", "a tuple"])
@pytest.mark.parametrize("release", [False, True])
def test_no_reference_is_lost_or_kept(make, release, made):
    type, scalar = ArrayType(F32, (2, 3)), ArrayType(F32, ())
    x, s = np.ones((2, 3), F32), np.float32(1)
    box, inner = Box(x), Box(s)
    idle = target.load(target.compile_text(sums([], []))).address("kernel")
    call = make(idle, [type, type, scalar], [type] * 2, lambda *a: a, Box, "step",
                unlocks=release, **made)
    shape = native_call.extents((2, 3)).shape
    counted = [x, s, box, inner, F32, Box, shape, call]

    def counts():
        gc.collect()
        return [sys.getrefcount(thing) for thing in counted]

    def run():
        for _ in range(200):
            call(x, box, inner)
            call(box, x, s)
            call(box, x, 1)
            call(x)

    run()
    before = counts()
    run()
    assert [after - count for after, count in zip(counts(), before)] == [0] * len(counted)


def test_nothing_leaks_where_allocation_fails(make):
    type, huge = ArrayType(F32, (3,)), ArrayType(F32, (1 << 55,))
    library = target.load(target.compile_text(sums([type], [type])))
    call = make(library.address("kernel"), [type], [type] * 3 + [huge], print, Box, "step")
    x, blocks = np.ones(3, F32), []
    for _ in range(3):
        for _ in range(100):
            with pytest.raises(MemoryError):
                call(x)
        gc.collect()
        blocks.append(sys.getallocatedblocks())
    assert blocks[2] - blocks[1] < 100


def test_a_callable_that_refers_to_itself_is_collected(make):
    class Owner:
        def fallback(self, *args):
            return "missed"

    type = ArrayType(F32, (2,))
    library = target.load(target.compile_text(sums([type], [type])))
    alive = []

    class Mark:
        def __init__(self):
            alive.append(1)

        def __del__(self):
            alive.pop()

    owner = Owner()
    owner.call = make(library.address("kernel"), [type], [type], owner.fallback, Box, "step",
                      keep=Mark())
    assert owner.call(1) == "missed" and alive == [1]
    gc.collect()
    assert alive == [1]
    del owner
    gc.collect()
    assert alive == []


@pytest.mark.parametrize("release", [False, True])
def test_many_threads_may_call_at_once(make, release):
    type = ArrayType(F32, (500,))
    call = Twice(make, [type] * 2, [type] * 2, unlocks=release)
    wrong = []

    def work(n):
        x = np.full(500, n, F32)
        box = Box(x)
        for _ in range(300):
            a, b = call(box, x)
            if not (a.np == 2 * n).all() or not (b.np == 2 * n).all():
                wrong.append(n)

    at_once(work, *[(n,) for n in range(8)])
    assert wrong == [] and call.missed == []


def test_a_class_without_the_slots_is_served_by_python():
    class Plain:
        np = property(lambda self: self.x)

    assert native_call.slots_of(Plain) is None
    assert native_call.slots_of(Box) is not None


def test_boolean_results_are_boxed(make):
    type = ArrayType(BOOL, (3,))
    out = Twice(make, [type], [type])(np.array([True, False, True]))
    assert out.dtype is BOOL and list(out.np) == [True, False, True]


def test_a_warm_start_compiles_nothing():
    program = "import sys; from fgrad.backends.llvm import native_call; native_call.native(); {}"
    for check in ("pass", "assert 'llvmlite' not in sys.modules"):
        subprocess.run([sys.executable, "-c", program.format(check)], check=True, timeout=60)


# ---------------------------------------------------------------------------- forms of arguments


class State(NamedTuple):
    step: object
    moments: object


FORMS = ({"w": ARRAY, "b": [ARRAY, (ARRAY,)]}, State(ARRAY, {"m": ARRAY}), Same(None), FLOAT)


def tree(n=1.0, third=None, rate=0.5, wrap=lambda x: x):
    """Arguments of FORMS; every array is [n, n]."""
    x = wrap(np.full(2, n, F32))
    return {"b": [x, (x,)], "w": x}, State(x, {"m": x}), third, rate


def trees(make, missed):
    """A callable for FORMS that adds up its five arrays, and the float to the first element."""
    type, number = ArrayType(F32, (2,)), ArrayType(F32, ())
    text = """
    define void @kernel(ptr %data, ptr %constants) {
    entry:
      %last.p = getelementptr ptr, ptr %data, i64 5
      %last = load ptr, ptr %last.p
      %rate = load float, ptr %last
      %out.p = getelementptr ptr, ptr %data, i64 6
      %out = load ptr, ptr %out.p
      br label %head
    head:
      %i = phi i64 [ 0, %entry ], [ %next, %head ]
      %sum = phi float [ %rate, %entry ], [ %more, %head ]
      %p = getelementptr ptr, ptr %data, i64 %i
      %x = load ptr, ptr %p
      %v = load float, ptr %x
      %more = fadd float %sum, %v
      %next = add i64 %i, 1
      %again = icmp slt i64 %next, 5
      br i1 %again, label %head, label %done
    done:
      store float %more, ptr %out
      ret void
    }
    """
    address = target.load(target.compile_text(text)).address("kernel")
    return make(address, [type] * 5 + [number], [number], lambda *a: missed.append(a) or "missed",
                Box, "step", forms=FORMS)


def test_trees_of_arguments_are_taken_apart(make):
    missed = []
    call = trees(make, missed)
    assert call(*tree()).np == 5.5
    assert call(*tree(2.0, wrap=Box)).np == 10.5
    assert call(*tree(0.0, rate=1e300)).np == np.inf
    assert np.isnan(call(*tree(0.0, rate=float("nan"))).np)
    assert missed == []


@pytest.mark.parametrize("form, good, bad", [
    (INT, (0, 7, -1, 2 ** 63 - 1, -2 ** 63), (2 ** 63, -2 ** 63 - 1, True, 1.0, np.int64(1), None)),
    (FLAG, (False, True), (0, 1, 2, np.bool_(True), None))])
def test_ints_and_bools_are_taken_as_they_are(make, form, good, bad):
    type, missed = ArrayType(I64 if form == INT else BOOL, ()), []
    text = f"""
    define void @kernel(ptr %data, ptr %constants) {{
      %a = load ptr, ptr %data
      %x = load {(word := "i64" if form == INT else "i8")}, ptr %a
      %out.p = getelementptr ptr, ptr %data, i64 1
      %out = load ptr, ptr %out.p
      store {word} %x, ptr %out
      ret void
    }}
    """
    address = target.load(target.compile_text(text)).address("kernel")
    call = make(address, [type], [type], lambda *a: missed.append(a) or "missed", Box, "step",
                forms=[form])
    assert [call(x).np.item() for x in good] == list(good)
    assert [call(x) for x in bad] == ["missed"] * len(bad) and missed == [(x,) for x in bad]


def test_threads_at_once_keep_one_record_whose_address_all_of_them_hold():
    """Each kept its own, all but the last of which were freed: builtins pointed to nothing."""
    made, seen, barrier = [], [], threading.Barrier(4)

    @native_call.kept
    def record(name):
        barrier.wait(timeout=60)
        made.append(object())
        return made[-1]
    at_once(lambda: seen.append(record("f")), *[()] * 4)
    assert len(made) == 4 and len(set(map(id, seen))) == 1 and record("f") is seen[0]
    for function, key in ((native_call.extents, (3, 5)), (native_call.method, "a name")):
        assert function(key) is function(key)


def test_many_threads_may_make_entries_at_once():
    """It ended with a segmentation fault."""
    script = """if True:
        import random, threading, numpy as np, fgrad, fgrad.numpy as fnp
        f = fgrad.jit(lambda x, s: {"a": x * s + 1, "x": x})
        h = fgrad.jit(lambda x: x / 2)
        wrong = []

        def work(seed):
            drawn = random.Random(seed)
            try:
                for _ in range(1000):
                    v, n = drawn.randrange(1, 50), drawn.randrange(1, 6)
                    if drawn.random() < 0.5:
                        right = f(fnp.full(n, float(v)), v)["a"].tolist() == [v * v + 1] * n
                    else:
                        right = h(np.arange(n)).tolist() == [k / 2 for k in range(n)]
                    wrong.extend([] if right else [(v, n)])
            except BaseException as error:
                wrong.append(error)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[0]"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr


def second_of_three():
    """The address of a kernel that gives the second of three f64[]."""
    text = """
    define void @kernel(ptr %data, ptr %constants) {
      %a.p = getelementptr ptr, ptr %data, i64 1
      %out.p = getelementptr ptr, ptr %data, i64 3
      %a = load ptr, ptr %a.p
      %out = load ptr, ptr %out.p
      %x = load double, ptr %a
      store double %x, ptr %out
      ret void
    }
    """
    return target.load(target.compile_text(text)).address("kernel")


def test_the_inputs_of_a_tree_come_in_the_order_of_its_form(make):
    type, address = ArrayType(F64, ()), second_of_three()
    s, x = np.float64(2), np.array(2.0)
    for forms, args in ((({"a": ARRAY, "b": FLOAT}, FLOAT), ({"b": 2.0, "a": x}, 3.0)),
                        ((FLOAT, [ARRAY], FLOAT64), (1.0, [x], s)),
                        ((FLOAT64, FLOAT64, [ARRAY]), (s, s, [Box(s)])),
                        (((), FLOAT, {}, [FLOAT, []], FLOAT), ((), 1.0, {}, [2.0, []], 3.0))):
        call = make(address, [type] * 3, [type], lambda *a: "missed", Box, "step", forms=forms)
        assert call(*args).np == 2.0


def test_trees_of_another_form_go_to_the_fallback(make):
    missed = []
    call = trees(make, missed)
    x = np.ones(2, F32)
    params, state, none, rate = tree()
    strange = [
        (params, state, none), (params, state, none, rate, rate), (params, state, 0, rate),
        (params, state, none, 1), (params, state, none, np.float64(1)), (params, state, none, True),
        (params, tuple(state), none, rate), (params, list(state), none, rate),
        (params, State(x, {}), none, rate), (params, State(x, {"n": x}), none, rate),
        (params, State(x, OrderedDict(m=x)), none, rate), (params, State(x, x), none, rate),
        ({"w": x}, state, none, rate), (params | {"c": x}, state, none, rate),
        ({"w": x, "c": [x, (x,)]}, state, none, rate),
        ({"w": x, "b": (x, (x,))}, state, none, rate),
        ({"w": x, "b": [x, [x]]}, state, none, rate), ({"w": x, "b": [x]}, state, none, rate),
        ({"w": x, "b": [x, (x, x)]}, state, none, rate),
        ({"w": x, "b": [x, ()]}, state, none, rate),
        ({"w": np.ones(3, F32), "b": [x, (x,)]}, state, none, rate), (x, x, x, x),
    ]
    for args in strange:
        assert call(*args) == "missed", args
    assert len(missed) == len(strange) and call(*tree()).np == 5.5


def test_trees_lose_and_keep_no_reference(make):
    missed = []
    call = trees(make, missed)
    args = tree()
    counted = [*args, args[0]["w"], args[1].moments, State, F32]

    def counts():
        gc.collect()
        return [sys.getrefcount(thing) for thing in counted if thing is not None]

    def run():
        for _ in range(300):
            call(*args)
            call(*args[:3], 1)
        missed.clear()

    run()
    before = counts()
    run()
    assert counts() == before


class Slots:
    __slots__ = ("a", "b", "kind")

    def __init__(self, a, b, kind="mean"):
        self.a, self.b, self.kind = a, b, kind


class Plain(Slots):
    """The same in a dictionary of its own, but for what is not set."""
    __slots__ = ("__dict__",)


@pytest.mark.parametrize("cls", [Slots, Plain])
def test_attributes_are_taken_from_an_instance_of_that_very_class(make, cls):
    type, address = ArrayType(F64, ()), second_of_three()
    form = Attributes(cls, {"a": [ARRAY, ARRAY], "kind": Same("mean"), "b": FLOAT})
    call = make(address, [type] * 3, [type], lambda *a: "missed", Box, "step", forms=(form,))
    x, y = np.array(1.0), np.array(2.0)
    given = cls([x, y], 3.0)
    assert call(given).np == 2.0
    less, other = cls([x, y], 3.0), Slots if cls is Plain else Plain
    del less.b
    strange = [less, cls([x], 3.0), cls([x, y], 3), cls([x, y], 3.0, "sum"), other([x, y], 3.0),
               ([x, y], "mean", 3.0), {"a": [x, y], "kind": "mean", "b": 3.0}, None]
    for wrong in strange:
        assert call(wrong) == "missed", wrong

    def counts():
        gc.collect()
        return [sys.getrefcount(thing) for thing in (given, x, given.a, less, cls)]
    before = counts()
    for _ in range(300):
        call(given)
        call(less)
    assert counts() == before
