"""Random numbers agree with those of jax.random 0.10.2, bit for bit or to rounding."""

import copy
import pickle
import re
import threading
import warnings

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import random, tree
from fgrad.errors import ArgumentError, KeyReuseWarning
from fgrad.numpy.special import erf_inv
from fgrad.ops import random as hash_of

# jax.random.X(jax.random.key(42), ...), with jax_threefry_partitionable=True
GOLDEN = {'split': [[1832780943, 270669613], [64467757, 2916123636], [2465931498, 255383827]],
 'fold_in': [2547012911, 1371500959],
 'bits': [2098992034, 2919706841, 2646866425, 2409546199, 1935504149],
 'bits8': [162, 217, 249, 215, 21],
 'uniform': [[0.48870956897735596, 0.6797971725463867, 0.6162714958190918],
             [0.5610160827636719, 0.4506446123123169, 0.58586585521698]],
 'uniform_range': [1.4209669828414917, 2.758580207824707, 2.3139004707336426],
 'uniform16': [0.076171875, 0.1904296875, 0.9755859375, 0.7568359375],
 'normal': [-0.02830461598932743, 0.4671318531036377, 0.2957029640674591, 0.15354591608047485,
            -0.12403281778097153,
            0.21692314743995667],
 'normal_scalar': -0.02830461598932743,
 'randint': [5, 9, 8, 8, 2, 0],
 'randint8': [196, 18, 183, 193],
 'randint_full': [977810628, 1236381714, -1367112521],
 'bernoulli': [False, False, False, False, False, False, True, False],
 'permutation': [7, 4, 2, 5, 3, 6, 8, 9, 0, 1],
 'permutation_rows': [[4, 5], [0, 1], [2, 3]],
 'categorical': [[2, 0], [2, 0], [1, 0], [1, 2]],
 'categorical_axis0': [2, 2],
 'exponential': [0.670817494392395, 1.1388006210327148, 0.9578199982643127, 0.8232924938201904],
 'gumbel': [0.3340933918952942, 0.952019453048706, 0.7255305647850037, 0.5481715202331543],
 'laplace': [0.022839652374386787, -0.4456535577774048, -0.2646729052066803, -0.1301453858613968],
 'truncated_normal': [0.14770005643367767, 0.5684449076652527, 0.42102551460266113,
                      0.29997000098228455,
                      0.0691138207912445],
 'choice': [1, 5, 4, 4, 5],
 'choice_without': [4, 2, 5, 3, 6],
 'choice_p': [2, 2, 2, 2, 2, 2],
 'choice_p_without': [3, 2, 1],
 'rademacher': [1, -1, -1, -1, 1],
 'uniform64': [0.4267275666499091, 0.015010069515314584, 0.5741444178995352],
 'normal64': [-0.18471174528191162, -2.169824560397754, 0.18693555179382582, 0.6122653570510959],
 'randint64': [463982253477, 604929009943, 848939357151],
 'erfinv64': [-4.320005388048932, -1.8213863677184494, -0.47693627620446977, 0.0,
              8.862269254759594e-06,
              0.2724627147267544, 1.163087153676674, 3.123413274341634, 5.675915739744714]}

P = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
LOGITS = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]], np.float32))
EXACT = {
    "split": lambda k: random.split(k, 3).data,
    "fold_in": lambda k: random.fold_in(k, 7).data,
    "bits": lambda k: random.bits(k, (5,)),
    "bits8": lambda k: random.bits(k, (5,), "uint8"),
    "uniform": lambda k: random.uniform(k, (2, 3)),
    "uniform16": lambda k: random.uniform(k, (4,), "float16"),
    "uniform64": lambda k: random.uniform(k, (3,), "float64"),
    "randint": lambda k: random.randint(k, (6,), -3, 11),
    "randint8": lambda k: random.randint(k, (4,), 0, 256, "uint8"),
    "randint_full": lambda k: random.randint(k, (3,), -2**31, 2**31 - 1),
    "randint64": lambda k: random.randint(k, (3,), -5, 10**12, "int64"),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (8,)),
    "permutation": lambda k: random.permutation(k, 10),
    "permutation_rows": lambda k: random.permutation(k, np.arange(6).reshape(3, 2)),
    "categorical": lambda k: random.categorical(k, LOGITS, shape=(4, 2)),
    "categorical_axis0": lambda k: random.categorical(k,
                                                      np.arange(6, dtype=np.float32).reshape(3, 2),
                                                      axis=0),
    "choice": lambda k: random.choice(k, 7, (5,)),
    "choice_without": lambda k: random.choice(k, 7, (5,), replace=False),
    "choice_p": lambda k: random.choice(k, 4, (6,), p=P),
    "choice_p_without": lambda k: random.choice(k, 4, (3,), replace=False, p=P),
    "rademacher": lambda k: random.rademacher(k, (5,))}
NEAR = {
    "uniform_range": lambda k: random.uniform(k, (3,), minval=-2.0, maxval=5.0),
    "normal": lambda k: random.normal(k, (6,)),
    "normal_scalar": lambda k: random.normal(k),
    "normal64": lambda k: random.normal(k, (4,), "float64"),
    "exponential": lambda k: random.exponential(k, (4,)),
    "gumbel": lambda k: random.gumbel(k, (4,)),
    "laplace": lambda k: random.laplace(k, (4,)),
    "truncated_normal": lambda k: random.truncated_normal(k, -1.0, 2.0, (5,))}


@pytest.mark.parametrize("name", EXACT)
def test_bits_are_those_of_jax(name):
    np.testing.assert_array_equal(np.asarray(EXACT[name](random.key(42))), np.array(GOLDEN[name]))


@pytest.mark.parametrize("name", NEAR)
def test_numbers_are_those_of_jax_to_rounding(name):
    np.testing.assert_allclose(np.asarray(NEAR[name](random.key(42))), GOLDEN[name],
                               rtol=1e-14 if "64" in name else 2e-6)


def test_erf_inv_is_the_inverse_of_erf():
    x = np.array([-0.999999999, -0.99, -0.5, 0.0, 1e-5, 0.3, 0.9, 0.99999, 1 - 1e-15])
    np.testing.assert_allclose(np.asarray(erf_inv(x)), GOLDEN["erfinv64"], rtol=1e-14)
    assert erf_inv([1.0, -1.0, 0.0]).tolist() == [np.inf, -np.inf, 0.0]
    np.testing.assert_allclose(np.asarray(erf_inv(x[1:7].astype("f4"))), GOLDEN["erfinv64"][1:7],
                               rtol=1e-6)


def test_seeds_of_every_size_give_keys():
    words = {s: random.key(s).data.tolist() for s in (0, 1, -1, 2**31, 2**32 + 5, np.int64(3))}
    assert words == {0: [0, 0], 1: [0, 1], -1: [0, 2**32 - 1], 2**31: [0, 2**31], 2**32 + 5: [1, 5],
                     3: [0, 3]}
    with pytest.raises(ValueError, match="64 bits"):
        random.key(2**64)
    with pytest.raises(TypeError, match="needs an int, not float"):
        random.key(0.5)


def test_sizes_0_and_1():
    k = random.key(1)
    assert random.normal(k, (0,)).shape == (0,) and random.normal(random.clone(k),
                                                                  (1, 0, 2)).shape == (1, 0, 2)
    assert random.permutation(random.key(2), 1).tolist() == [0]
    assert random.permutation(random.key(2), 0).tolist() == []
    assert random.choice(random.key(2), 3, (0,)).shape == (0,)


def test_numbers_stay_in_their_range():
    u = np.asarray(random.uniform(random.key(3), (20000,), minval=-1.0, maxval=3.0))
    assert u.min() >= -1 and u.max() < 3 and abs(u.mean() - 1) < 0.05
    z = np.asarray(random.normal(random.key(4), (20000,)))
    assert abs(z.mean()) < 0.05 and abs(z.std() - 1) < 0.05
    t = np.asarray(random.truncated_normal(random.key(5), -0.5, 0.5, (5000,)))
    assert t.min() >= -0.5 and t.max() <= 0.5
    n = np.asarray(random.randint(random.key(6), (5000,), fnp.array([0]), fnp.array([5])))
    assert set(n) == {0, 1, 2, 3, 4}
    assert sorted(random.permutation(random.key(7), 100).tolist()) == list(range(100))


def test_rows_are_shuffled_together_or_each_for_itself():
    x = np.arange(12).reshape(4, 3)
    rows = random.permutation(random.key(0), x)
    assert sorted(rows[:, 0].tolist()) == [0, 3, 6, 9]
    np.testing.assert_array_equal(np.asarray(rows[:, 1] - rows[:, 0]), 1)
    each = np.asarray(random.permutation(random.key(0), x, independent=True))
    np.testing.assert_array_equal(np.sort(each, 0), x)


def test_using_a_key_twice_is_noticed_once():
    k = random.key(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(4):
            random.normal(k, (3,))
    (notice,) = caught
    assert notice.category is KeyReuseWarning
    assert re.match(r"key from test_random.py:\d+ was already used at test_random.py:\d+",
                    str(notice.message))


def test_a_split_key_counts_as_used():
    k = random.key(1)
    random.split(k)
    with pytest.warns(KeyReuseWarning):
        random.uniform(k)


def test_clones_and_folded_keys_are_no_reuse():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        k = random.key(0)
        a = random.normal(random.clone(k), (3,))
        b = random.normal(k, (3,))
        assert a.tolist() == b.tolist()
        for step in range(3):
            random.normal(random.fold_in(k, step))
        k1, k2 = random.split(random.key(0))
        assert random.normal(k1).item() != random.normal(k2).item()


def test_keys_are_compared_by_their_words():
    k, keys = random.key(0), random.split(random.key(1), 3)
    assert k == random.key(0) and not k != random.clone(k) and k != random.key(1)
    assert (keys == keys[1]).tolist() == [False, True, False]
    assert (keys != keys[1]).tolist() == [True, False, True]
    assert k != 0 and k is not None and k in [k] and {k: 1}[k] == 1


def test_an_array_of_keys_has_a_shape_that_can_be_changed():
    keys = random.split(random.key(0), 6)
    assert (keys.ndim, keys.size, random.key(0).ndim, random.key(0).size) == (1, 6, 0, 1)
    for pairs in (keys.reshape(2, -1), keys.reshape((2, 3))):
        assert pairs.shape == (2, 3)
        assert (pairs[1, 2] == keys[5]) and (pairs.ravel() == keys).all()


def test_a_tree_of_keys_maps_beside_a_tree_of_arrays():
    keys = {"w": random.key(0), "b": [random.key(1)]}
    params = {"w": fnp.ones(3), "b": [fnp.zeros((2, 1))]}
    draw = lambda k, p: random.uniform(random.clone(k), p.shape)
    for found in (tree.map(draw, keys, params), fgrad.jit(lambda: tree.map(draw, keys, params))(),
                  tree.map_with_path(lambda _, k: random.uniform(k, (3,)), keys)):
        assert found["w"].tolist() == random.uniform(random.key(0), (3,)).tolist()
    assert found["b"][0].shape == (3,)
    drawn = tree.map(lambda k: {"x": random.normal(k)}, keys)
    assert drawn["w"]["x"] == random.normal(random.key(0))
    both = tree.map(lambda *words: fnp.stack(words), keys["w"], keys["b"][0])
    assert both.shape == (2,) and both[1] == random.key(1)


def test_a_key_is_no_array_and_the_message_says_how_to_reach_its_words():
    for function in (lambda k: fnp.stack([k, k]), fnp.ravel, lambda k: fnp.where(True, k, k)):
        with pytest.raises(ArgumentError, match="a Key is not an array") as found:
            function(random.key(0))
        assert "fgrad.tree.map(function, x, …)" in str(found.value)


def test_a_number_is_no_key():
    with pytest.raises(TypeError, match=r"normal expects a key; use random.key\(0\)"):
        random.normal(0, (3,))
    with pytest.raises(TypeError, match="uniform expects a key"):
        random.uniform((3,))
    with pytest.raises(TypeError, match="normal needs one key, and this is an array of keys"):
        random.normal(random.split(random.key(0), 2))
    with pytest.raises(TypeError, match="normal makes floats, not i32"):
        random.normal(random.key(0), (3,), "int32")
    with pytest.raises(ValueError, match="choice cannot draw 5 different elements of 3"):
        random.choice(random.key(0), 3, (5,), replace=False)


def test_keys_are_trees_and_arrays_of_keys():
    keys = random.split(random.key(0), (2, 3))
    assert keys.shape == (2, 3) and len(keys) == 2 and keys[0, 1].shape == ()
    assert tree.leaves(keys)[0].shape == (2, 3, 2)
    again = tree.map(lambda x: x, keys)
    np.testing.assert_array_equal(np.asarray(again.data), np.asarray(keys.data))
    np.testing.assert_array_equal(np.asarray(random.wrap_key_data(random.key_data(keys)).data),
                                  np.asarray(keys.data))
    assert copy.deepcopy(random.key(5)).data.tolist() == [0, 5]
    assert pickle.loads(pickle.dumps(random.key(5))).data.tolist() == [0, 5]


def test_a_generator_counts_by_itself():
    rng, same = random.Generator(0), random.Generator(0)
    a, b = rng.normal((3,)), rng.normal((3,))
    assert a.tolist() != b.tolist()
    assert same.normal((3,)).tolist() == a.tolist()
    assert rng.uniform((4,), 2.0, 3.0).shape == (4,) and rng.random().shape == ()
    assert rng.integers(10, shape=(5,)).dtype == np.int32
    assert rng.permutation(4).shape == (4,) and rng.choice([1.0, 2.0], (3,)).shape == (3,)
    assert rng.bernoulli(0.5, (2,)).dtype == bool and rng.split(3).shape == (3,)
    again = tree.map(lambda x: x, rng)
    assert again.normal((2,)).tolist() == rng.normal((2,)).tolist()


@pytest.mark.parametrize("n", [0, 1, 2, 4, 5])
def test_a_few_counters_are_hashed_by_ints_as_many_are_by_arrays(n):
    draw = np.random.default_rng(n)
    for _ in range(20):
        key = draw.integers(0, 2**32, 2).astype(np.uint32)
        count = draw.integers(0, 2**64, n, dtype=np.uint64)
        for ours, theirs in zip(hash_of.hashed(key, count), hash_of.hashed_arrays(key, count)):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_array_equal(ours, theirs)
        keys = random.wrap_key_data(np.stack([key, key]))
        many = random.fold_in(keys, fnp.array([n, 7], "uint32"))
        one = random.fold_in(random.wrap_key_data(key), n)
        np.testing.assert_array_equal(np.asarray(one.data), np.asarray(many.data)[0])


def test_threads_that_share_a_generator_draw_different_keys():
    rng, found = random.Generator(0), []
    threads = [threading.Thread(target=lambda: found.extend(
        [tuple(rng.key().data.tolist()) for _ in range(50)])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 200


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("low, high", [(-5, 7), (0, 1000), (-1000, 2 ** 40), (3, 3)])
@pytest.mark.parametrize("arrays", [False, True])
def test_random_integers_lie_within_what_the_bounds_leave_of_their_dtype(dtype, low, high, arrays):
    """Those of 8 and 16 bits were drawn with 32, and wrapped around."""
    limits = np.iinfo(dtype)
    ends = [fnp.array(v, "int64") for v in (low, high)] if arrays else (low, high)
    found = np.asarray(random.randint(random.key(3), (500,), *ends, dtype))
    assert found.dtype == dtype
    least, most = max(low, limits.min), min(high - 1, limits.max)
    assert least <= found.min() and found.max() <= max(least, most)
