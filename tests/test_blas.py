"""How NumPy is loaded."""

import os
import subprocess
import sys

SCRIPT = """if True:
    import os, time
    before = dict(os.environ)
    import fgrad.numpy
    assert dict(os.environ) == before
    time.sleep(0.01)
    start = time.process_time()
    time.sleep(0.05)
    print(time.process_time() - start)"""


def while_it_sleeps(**variables):
    """Seconds of processor time that a process with fgrad takes in 50 ms of doing nothing."""
    env = {name: x for name, x in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env | variables, check=True,
                          capture_output=True, text=True)
    return float(done.stdout)


def test_threads_of_numpy_leave_the_cores_alone_and_the_environment_is_as_it_was():
    assert min(while_it_sleeps() for _ in range(3)) < 0.02


def test_how_long_threads_of_numpy_wait_can_be_chosen():
    """The script asserts that the variable keeps its value."""
    assert while_it_sleeps(OPENBLAS_THREAD_TIMEOUT="4") < 0.05
