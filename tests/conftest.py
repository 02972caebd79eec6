"""What the whole test run shares: a compile cache of its own, hypothesis profiles, --update-golden.

FGRAD_FUZZ=n runs n times as many random programs, new ones each time; without it they are the
same in every run.
"""

import os
import signal
import tempfile

from hypothesis import HealthCheck, settings

from tests import young_processors

FUZZ = int(os.environ.get("FGRAD_FUZZ", "0"))

_cache = tempfile.TemporaryDirectory(prefix="fgrad-test-cache-")
os.environ["FGRAD_CACHE"] = _cache.name

young_processors.named()

# A shell that starts a command behind its back (`… &`) lets it ignore Ctrl-C, which is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "fgrad",
    deadline=None,
    derandomize=FUZZ == 0,
    database=None,
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
settings.load_profile("fgrad")


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden/* anew; read them then"
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes seconds; left out by -m 'not slow'")
    if config.getoption("--update-golden"):
        os.environ["FGRAD_UPDATE_GOLDEN"] = "1"
