"""Clipping makes what is too large smaller, and leaves the rest alone."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import ArgumentError, optim, tree

RNG = np.random.default_rng(0)
TREE = {"w": RNG.normal(size=(4, 3)), "b": RNG.normal(size=3), "k": RNG.normal(size=(2, 2, 3, 4)),
        "s": RNG.normal(size=())}


def clipped(transformation, updates, params=None, dtype="float32"):
    """The updates, eager; those compiled are the same."""
    def update(u, p):
        return transformation.update(u, transformation.init(u), p)[0]

    updates, params = [tree.map(lambda x: fnp.asarray(x, dtype=dtype), t)
                       for t in (updates, params)]
    out = update(updates, params)
    for a, b in zip(tree.leaves(out), tree.leaves(fgrad.jit(update)(updates, params))):
        assert a.dtype == b.dtype == dtype
        np.testing.assert_allclose(a, b, rtol=1e-3 if dtype == "float16" else 1e-6)
    return out


def test_clip_holds_each_element_in_the_range():
    out = clipped(optim.clip(0.5), TREE)
    for k, x in TREE.items():
        np.testing.assert_allclose(out[k], np.clip(x, -0.5, 0.5), rtol=1e-6)


def test_clip_by_global_norm_scales_all_leaves_together():
    size = np.sqrt(sum(np.sum(x * x) for x in TREE.values()))
    out = clipped(optim.clip_by_global_norm(1.0), TREE)
    for k, x in TREE.items():
        np.testing.assert_allclose(out[k], x / size, rtol=1e-5)
    out = clipped(optim.clip_by_global_norm(1.01 * size), TREE)
    np.testing.assert_allclose(out["w"], TREE["w"], rtol=1e-6)


def test_clipping_zero_updates_gives_zero():
    for clip in (optim.clip_by_global_norm(1.0), optim.clip_by_block_norm(1.0),
                 optim.clip_by_block_rms(1.0), optim.adaptive_grad_clip(0.1)):
        np.testing.assert_array_equal(clipped(clip, np.zeros(3), np.zeros(3)), np.zeros(3))


def test_a_nan_is_not_clipped_away():
    out = clipped(optim.clip_by_global_norm(1.0), np.array([1.0, np.nan]))
    assert np.isnan(np.asarray(out)).all()


def test_the_norm_of_short_floats_does_not_overflow():
    updates = np.full(4, 1000.0)
    out = clipped(optim.clip_by_global_norm(1.0), updates, dtype="float16")
    np.testing.assert_allclose(out, np.full(4, 0.5), rtol=1e-3)


def test_leaves_keep_their_dtypes_when_clipped_together():
    updates = {"h": fnp.ones(2, "float16"), "d": fnp.ones(2, "float64")}
    for clip in (optim.clip_by_global_norm(1.0), optim.clip_by_block_rms(0.5),
                 optim.clip_by_block_norm(0.5), optim.clip(0.5)):
        out, _ = clip.update(updates, ())
        assert (out["h"].dtype, out["d"].dtype) == ("float16", "float64")


@pytest.mark.parametrize("size", [0, 1, 5])
def test_clip_by_block_norm_and_rms_scale_each_leaf_by_itself(size):
    updates = {"a": np.full(size, 3.0), "b": np.full(size, 0.01)}
    by_norm = clipped(optim.clip_by_block_norm(1.0), updates)
    np.testing.assert_allclose(by_norm["a"], np.full(size, 1 / max(size, 1) ** 0.5), rtol=1e-6)
    by_rms = clipped(optim.clip_by_block_rms(1.0), updates)
    np.testing.assert_allclose(by_rms["a"], np.ones(size), rtol=1e-6)
    np.testing.assert_allclose(by_rms["b"], updates["b"], rtol=1e-6)


def test_adaptive_grad_clip_looks_at_units():
    params = tree.map(lambda x: 0.3 * x[::-1] if x.ndim else 0.3 * x, TREE)
    out = clipped(optim.adaptive_grad_clip(0.5), TREE, params)
    for k, axis in (("w", 0), ("b", None), ("k", (0, 1, 2)), ("s", None)):
        u, p = TREE[k], params[k]
        size, most = [np.sqrt(np.sum(x * x, axis=axis, keepdims=True)) for x in (u, p)]
        most = 0.5 * np.maximum(most, 1e-3)
        want = np.where(size < most, u, u * most / size)
        np.testing.assert_allclose(out[k], want, rtol=1e-5)


def test_adaptive_grad_clip_without_parameters_says_what_to_do():
    with pytest.raises(ArgumentError, match="adaptive_grad_clip needs the parameters"):
        optim.adaptive_grad_clip(0.1).update(fnp.ones(2), ())
