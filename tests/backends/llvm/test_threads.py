"""The thread pool: every part runs once, whatever else happens in the process."""

import ctypes
import os
import subprocess
import sys
import textwrap

import pytest

from fgrad import config, errors
from fgrad.backends.llvm import codegen, host, target, threads
from tests.at_once import at_once

# count: adds 1 to its own element.  nest: runs count over 4 parts of its own.  order: notes when
# its part began.  slow: adds numbers for a while, then counts.  who: is slow and notes the thread.
BODIES = """
@clock = internal global i64 0
declare void @fg.par_run(ptr, ptr, i64)
define void @count(ptr %ctx, i64 %part) {
  %p = getelementptr i64, ptr %ctx, i64 %part
  %x = load i64, ptr %p
  %y = add i64 %x, 1
  store i64 %y, ptr %p
  ret void
}
define void @nest(ptr %ctx, i64 %part) {
  %start = shl i64 %part, 2
  %p = getelementptr i64, ptr %ctx, i64 %start
  call void @fg.par_run(ptr @count, ptr %p, i64 4)
  ret void
}
define void @order(ptr %ctx, i64 %part) {
  %now = atomicrmw add ptr @clock, i64 1 seq_cst
  %p = getelementptr i64, ptr %ctx, i64 %part
  store i64 %now, ptr %p
  ret void
}
define void @slow(ptr %ctx, i64 %part) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %x = phi double [ 1.0, %entry ], [ %y, %head ]
  %y = fadd double %x, 1.0
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, 200000
  br i1 %more, label %head, label %done
done:
  %used = fptosi double %y to i64
  %zero = sub i64 %used, 200001
  %p = getelementptr i64, ptr %ctx, i64 %part
  %old = load i64, ptr %p
  %one = add i64 %zero, 1
  %new = add i64 %old, %one
  store i64 %new, ptr %p
  ret void
}
declare i64 @pthread_self()
define void @who(ptr %ctx, i64 %part) {
  %p = getelementptr i64, ptr %ctx, i64 %part
  store i64 1, ptr %p
  call void @slow(ptr %ctx, i64 %part)
  %me = call i64 @pthread_self()
  store i64 %me, ptr %p
  ret void
}
define void @many(ptr %body, ptr %ctx, i64 %parts, i64 %times) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  call void @fg.par_run(ptr %body, ptr %ctx, i64 %parts)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %times
  br i1 %more, label %head, label %done
done:
  ret void
}
"""

PRELUDE = """
import ctypes, os, sys, threading, time
from fgrad.backends.llvm import target, threads
pool = threads.pool()
pool.loaded()
library = target.load(target.compile_text(sys.argv[1]))

def counts(body="count", parts=8, times=1, length=None):
    memory = (ctypes.c_int64 * (length or parts))()
    many(library.address(body), ctypes.addressof(memory), parts, times)
    return list(memory)

many = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
    library.address("many"))

def started():                                   # the workers, which begin with the first region
    before = set(os.listdir("/proc/self/task"))
    counts(parts=2)
    return set(os.listdir("/proc/self/task")) - before

def child_of(work):
    child = os.fork()
    if child == 0:
        os._exit(0 if work() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


@pytest.fixture(scope="module")
def library():
    threads.pool().loaded()
    return target.load(target.compile_text(BODIES))


@pytest.fixture(scope="module")
def many(library):
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        library.address("many"))

    def counts(body, parts, times, length=None):
        memory = (ctypes.c_int64 * (length or max(parts, 1)))()
        run(library.address(body), ctypes.addressof(memory), parts, times)
        return list(memory)
    return counts


def in_a_process(program, size=3):
    """Runs a program that knows PRELUDE, with a pool of `size`; fails if it fails or hangs."""
    environment = os.environ | {"FGRAD_THREADS": str(size)}
    subprocess.run([sys.executable, "-c", PRELUDE + textwrap.dedent(program), BODIES], check=True,
                   timeout=60, env=environment)


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("FGRAD_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("parts", [-1, 0, 1, 2, 3, 7, 64, 1001])
def test_every_part_runs_once_in_every_region(many, parts):
    assert many("count", parts, 50) == [50] * parts or parts < 1
    if parts < 1:
        assert many("count", parts, 50) == [0]


def test_light_regions_wake_nobody_until_they_make_up_for_it():
    """Waking a worker took some us, which is longer than many a region."""
    in_a_process("""
        from fgrad.backends.llvm.threads import LIGHT, told

        def threads_of(us):
            memory = (ctypes.c_int64 * 8)()
            many(library.address("who"), ctypes.addressof(memory), told(8, us), 1)
            return set(memory)

        def asleep():
            threads_of(LIGHT)                    # not light: it wakes them
            time.sleep(0.1)
        for attempt in range(20):                # on a crowded machine they are late to sleep
            asleep()
            first = [threads_of(LIGHT / 4) for _ in range(3)]
            if set.union(*first) == {threading.get_ident()}:
                break
        else:
            sys.exit("light regions were shared")
        for attempt in range(100):
            asleep()
            if len(set.union(*[threads_of(LIGHT / 4) for _ in range(8)])) > 1:
                sys.exit()
        sys.exit("no light region was shared")
    """)


def test_nested_regions_run_in_place(many):
    assert many("nest", 16, 20, length=64) == [20] * 64


def test_parts_begin_in_ascending_order_where_one_thread_runs_them():
    in_a_process("begun = counts('order', 9); assert begun == sorted(begun), begun", size=1)


def test_concurrent_regions_all_finish(many):
    results = [None] * 6

    def work(n):
        results[n] = many("count", 5 + n, 3000)

    at_once(work, *[(n,) for n in range(6)])
    assert results == [[3000] * (5 + n) for n in range(6)]


def test_python_may_run_a_region(library):
    memory = (ctypes.c_int64 * 5)()
    threads.pool().run(library.address("count"), ctypes.addressof(memory), 5)
    assert list(memory) == [1] * 5


def test_there_is_one_pool(monkeypatch):
    assert threads.pool() is threads.pool()
    assert 1 <= threads.pool().size <= threads.MOST + 1


def test_the_number_of_threads_is_chosen_by_the_environment(monkeypatch):
    monkeypatch.setenv("FGRAD_THREADS", "3")
    assert config.threads() == 3
    for text in ("none", "0", "-1", "1.5"):
        monkeypatch.setenv("FGRAD_THREADS", text)
        with pytest.warns(UserWarning, match=f"FGRAD_THREADS={text} is not a number of threads"):
            assert config.threads() == config.processors()


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="no /proc")
def test_workers_start_with_the_first_region_that_needs_them():
    in_a_process("""
        tasks = lambda: len(os.listdir("/proc/self/task"))
        before = tasks()
        counts(parts=1)
        assert tasks() == before and pool.size == 3
        counts(parts=2)
        assert tasks() == before + 2, (before, tasks())
    """)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="no /proc")
def test_workers_take_no_signals():
    in_a_process("""
        import signal
        workers = started()
        assert len(workers) == 2
        for task in workers | {str(os.getpid())}:
            status = dict(line.split(":\\t") for line in open(f"/proc/self/task/{task}/status"))
            blocked = int(status["SigBlk"], 16) >> (signal.SIGINT - 1) & 1
            assert blocked == (task in workers)
    """)


def test_sleeping_workers_wake():
    in_a_process("""
        for _ in range(20):
            assert counts(parts=6) == [1] * 6
            time.sleep(0.005)
    """)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task") or config.processors() < 2,
                    reason="no /proc, or one processor")
def test_workers_keep_off_the_processor_of_their_caller():
    """In a virtual machine a caller that had slept woke a worker on its own processor, and both
    took turns there.
    """
    in_a_process("""
        libc, everywhere = ctypes.CDLL(None), os.sched_getaffinity(0)

        def is_apart():
            while True:
                cpu = libc.sched_getcpu()
                counts(parts=2)
                if libc.sched_getcpu() == cpu:       # it did not move in between
                    return os.sched_getaffinity(worker) == everywhere - {cpu}

        [worker] = map(int, started())
        assert len(os.sched_getaffinity(worker)) == len(everywhere) - 1
        for cpu in sorted(everywhere)[:2]:
            os.sched_setaffinity(0, {cpu})
            os.sched_setaffinity(0, everywhere)
            for attempt in range(20):                # on a crowded machine it is late to sleep
                start = time.perf_counter()
                while time.perf_counter() < start + 0.05:
                    pass
                if is_apart():
                    break
            else:
                sys.exit("the worker was not moved")
    """, size=2)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="no /proc")
def test_workers_that_have_no_processors_of_their_own_go_anywhere():
    in_a_process("""
        workers = started()
        assert len(workers) == pool.size - 1
        for task in workers:
            assert os.sched_getaffinity(int(task)) == os.sched_getaffinity(0)
    """, size=config.processors() + 1)


def test_more_threads_than_processors_finish():
    in_a_process("assert counts(parts=40, times=500) == [500] * 40", size=16)


def test_one_thread_runs_serially():
    in_a_process("assert pool.size == 1 and counts(parts=9, times=3) == [3] * 9", size=1)


@needs_fork
def test_a_child_starts_its_own_workers():
    in_a_process("""
        assert child_of(lambda: counts(parts=5) == [1] * 5) == 0       # before any region
        counts()
        proc = "/proc/self/task"
        tasks = lambda: len(os.listdir(proc)) if os.path.isdir(proc) else 0
        grow = 2 if os.path.isdir(proc) else 0                         # workers of a child
        def work():
            again = child_of(lambda: counts(parts=5, times=9) == [9] * 5)
            before = tasks()
            return again == 0 and counts(parts=5, times=9) == [9] * 5 and tasks() == before + grow
        assert child_of(work) == 0
        assert counts(parts=5, times=100) == [100] * 5                 # the parent is unharmed
    """)


@needs_fork
def test_fork_while_a_region_runs_in_another_thread():
    in_a_process("""
        running = threading.Thread(target=lambda: results.append(counts("slow", 64, 20)))
        results = []
        running.start()
        for _ in range(15):
            assert child_of(lambda: counts(parts=7, times=5) == [5] * 7) == 0
        running.join()
        assert results == [[20] * 64]
    """)


@pytest.mark.parametrize("ending", ["pass", "time.sleep(0.01)", "sys.exit(0)", "counts('slow')"])
def test_a_process_ends_cleanly_with_workers(ending):
    in_a_process(f"""
        counts()
        {ending}
    """)


def test_a_process_ends_while_a_daemon_thread_runs_regions():
    in_a_process("""
        threading.Thread(target=lambda: counts(times=10**9), daemon=True).start()
        time.sleep(0.05)
    """)


def test_a_warm_start_compiles_nothing():
    in_a_process("assert pool.size == 3")
    program = """if True:
        import sys
        from fgrad.backends.llvm import threads
        threads.pool().loaded()
        assert threads.pool().size == 2 and "llvmlite" not in sys.modules
    """
    environment = os.environ | {"FGRAD_THREADS": "2"}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env=environment)


def test_where_there_are_no_threads_the_pool_is_of_one(monkeypatch):
    monkeypatch.setattr(threads, "has_threads", lambda: False)
    assert threads.Pool(4).size == 1
    assert "pthread" not in threads.text(1) and "pthread" in threads.text(2)


def test_the_module_without_threads_runs_every_part():
    library = target.load(target.compile_text(threads.text(1).replace("fg.par_run", "in_place")))
    bodies = target.load(target.compile_text(BODIES))
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
        library.address("in_place"))
    for parts in (0, 1, 5):
        memory = (ctypes.c_int64 * 6)()
        run(bodies.address("count"), ctypes.addressof(memory), parts)
        assert list(memory) == [1] * parts + [0] * (6 - parts)


@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "riscv64-unknown-linux-gnu"])
def test_the_module_is_one_for_other_processors_too(triple, monkeypatch):
    llvm = codegen.llvm
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        machine = llvm.Target.from_triple(triple).create_target_machine(reloc="pic", jit=True)
    except RuntimeError:
        pytest.skip("this LLVM does not know it")
    monkeypatch.setattr(host, "HOST", host.HOST._replace(triple=triple))
    module = llvm.parse_assembly(threads.text(2), llvm.create_context())
    module.verify()
    assert b"fg.par_run" in machine.emit_object(module)


@pytest.mark.parametrize("name, read, default", [
    ("FGRAD_NANS", config.nans, False), ("FGRAD_STRICT", config.strict_promotion, False),
    ("FGRAD_NATIVE_CALL", config.native_call, True),
    ("FGRAD_TRACEBACK", config.full_traceback, False)])
def test_switches_say_once_what_they_cannot_be(monkeypatch, name, read, default):
    monkeypatch.delenv(name, raising=False)
    assert read() is default
    monkeypatch.setenv(name, "perhaps")
    errors.NOTICED.clear()
    with pytest.warns(errors.FgradWarning, match=f"{name}=perhaps is not ") as said:
        assert read() is default and read() is default
    assert len(said) == 1 and said[0].filename == __file__


@pytest.mark.parametrize("words, on", [
    ("1 true True YES on", True), ("0 false False no OFF", False)])
def test_switches_are_words_too(monkeypatch, words, on):
    for word in words.split():
        monkeypatch.setenv("FGRAD_STRICT", word)
        monkeypatch.setenv("FGRAD_NATIVE_CALL", word)
        assert config.strict_promotion() is on and config.native_call() is on
