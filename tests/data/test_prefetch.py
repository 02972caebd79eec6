"""Batches made ahead by a thread, transformed, and shuffled by a random key."""

import gc
import threading
import time

import numpy as np
import pytest

import fgrad
from fgrad.data import batches
from fgrad.errors import ArgumentError
from fgrad.types import default_dtype, default_float

X, Y = np.arange(23), np.arange(23) * 2


def threads():
    return [t for t in threading.enumerate() if t.name == "fgrad prefetch"]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    assert threads() == []


def noisy(batch, rng):
    return batch[0] + rng.random(len(batch[0])), batch[1]


def lists(made):
    return [[a.tolist() for a in batch] for batch in made]


@pytest.mark.parametrize("n", [1, 2, 5, 100])
def test_prefetched_batches_are_the_same_batches(n):
    options = dict(size=4, seed=3, drop_last=False, transforms=noisy)
    assert lists(batches(X, Y, prefetch=n, **options)) == lists(batches(X, Y, **options))


def test_a_loop_may_be_left_early_and_the_thread_ends():
    for k, _ in enumerate(batches(X, size=2, prefetch=3)):
        if k == 2:
            break
    gc.collect()
    assert threads() == []


def test_an_iterator_that_is_never_begun_starts_no_thread():
    made = iter(batches(X, size=2, prefetch=3))
    assert threads() == []
    next(made)
    assert len(threads()) == 1
    made.close()
    assert threads() == []


def test_what_a_transform_raises_arrives_after_the_batches_before_it():
    def fails(batch, rng):
        if batch[0][0] == 8:
            raise KeyError("broken file")
        return batch
    seen = []
    with pytest.raises(KeyError, match="broken file"):
        for b, in batches(X, size=4, shuffle=False, transforms=fails, prefetch=2):
            seen.append(b[0])
    assert seen == [0, 4]


def test_no_more_than_prefetch_batches_are_made_ahead():
    made = []
    it = iter(batches(X, size=1, transforms=lambda b, rng: made.append(1) or b, prefetch=3))
    next(it)
    time.sleep(0.1)
    assert len(made) <= 1 + 3 + 1                          # given, ready, and the one being made
    it.close()


def test_the_thread_sees_the_settings_of_the_loop():
    seen = []
    with default_dtype("float64"):
        note = lambda b, rng: seen.append(default_float()) or b        # noqa: E731
        list(batches(X, size=20, transforms=note, prefetch=1))
    assert seen == [np.float64]


def test_two_loops_at_once_do_not_mix():
    made = batches(X, size=2, seed=1, prefetch=2)
    assert all(np.array_equal(a, b) for (a,), (b,) in zip(made, made))


def test_transforms_come_one_after_the_other_with_a_generator_of_each_batch():
    first = lambda b, rng: (b[0] + 1,)                     # noqa: E731
    second = lambda b, rng: (b[0] * 10,)                   # noqa: E731
    found = batches(np.arange(2), size=2, shuffle=False, transforms=[first, second])
    assert lists(found) == [[[10, 20]]]
    draw = lambda b, rng: (rng.random(2),)                 # noqa: E731
    draws, again = (lists(batches(np.zeros(4), size=2, seed=1, transforms=draw)) for _ in range(2))
    assert draws == again and draws[0] != draws[1]


def test_transforms_do_not_change_the_order():
    plain = lists(batches(X, size=5, seed=9))
    assert lists(batches(X, size=5, seed=9, transforms=lambda b, rng: b)) == plain


def test_a_random_key_is_an_order():
    def order(key):
        return lists(batches(X, size=5, seed=key))
    assert order(fgrad.random.key(1)) == order(fgrad.random.key(1)) != order(fgrad.random.key(2))
    key = fgrad.random.key(0)
    assert order(fgrad.random.fold_in(key, 1)) != order(fgrad.random.fold_in(key, 2))


def test_an_array_of_keys_is_refused():
    with pytest.raises(ArgumentError, match="needs one key"):
        batches(X, size=5, seed=fgrad.random.split(fgrad.random.key(0)))


@pytest.mark.parametrize("bad", [-1, 1.5, True, "2"])
def test_prefetch_is_a_number_of_batches(bad):
    with pytest.raises(ArgumentError, match="prefetch is a number of batches"):
        batches(X, size=5, prefetch=bad)


def test_a_transform_that_is_none_or_gives_no_tuple_is_named():
    with pytest.raises(ArgumentError, match="a transform is a function"):
        batches(X, size=5, transforms=[3])
    with pytest.raises(ArgumentError, match="gives a batch: a tuple"):
        list(batches(X, size=5, transforms=lambda b, rng: b[0]))
