"""Attention: masks, caches, positions, embeddings, and what is said of wrong arguments."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, random
from fgrad.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(2)


def drawn(*shape):
    return fnp.asarray(RNG.standard_normal(shape).astype("float32"))


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("groups", [None, 1])
def test_generation_with_a_cache_equals_the_whole_sequence(rotary, groups):
    block, x = nn.TransformerBlock(2, rotary=rotary, groups=groups), drawn(2, 6, 8)
    params, state = block.init(random.key(0), x)
    whole, _ = block.apply(params, state, x)
    cache = block.cache(2, 9, x)
    first, cache = block.apply(params, cache, x[:, :2])
    step = fgrad.jit(block.apply)
    found = [first]
    for t in range(2, 6):
        y, cache = step(params, cache, x[:, t:t + 1])
        found.append(y)
    np.testing.assert_allclose(fnp.concatenate(found, axis=1), whole, rtol=1e-5, atol=1e-5)
    assert int(cache["seen"]) == 6


def test_attention_is_the_weighted_mean_of_values_per_head():
    q, k, v = drawn(2, 3, 2, 4), drawn(2, 5, 2, 4), drawn(2, 5, 2, 4)
    mask = RNG.random((3, 5)) < 0.6
    mask[0] = False
    out = np.asarray(nn.dot_product_attention(q, k, v, mask=mask, scale=0.3))
    for n in range(2):
        for h in range(2):
            scores = 0.3 * np.asarray(q)[n, :, h] @ np.asarray(k)[n, :, h].T
            shares = np.where(mask, np.exp(scores), 0)
            total = shares.sum(1, keepdims=True)
            shares = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
            np.testing.assert_allclose(out[n, :, h], shares @ np.asarray(v)[n, :, h], atol=1e-5)


def test_a_query_that_may_see_nothing_gives_zeros_and_finite_gradients():
    q = drawn(1, 2, 1, 4)
    mask = fnp.array([[False, False], [True, False]])

    def total(q):
        return fnp.sum(nn.dot_product_attention(q, q * 1e4, q, mask=mask))
    assert not np.asarray(nn.dot_product_attention(q, q, q, mask=mask))[0, 0].any()
    assert np.isfinite(np.asarray(fgrad.grad(total)(q))).all()


def test_causal_queries_and_keys_begin_at_one_place():
    np.testing.assert_array_equal(nn.causal(2, 4), [[1, 0, 0, 0], [1, 1, 0, 0]])


def test_learned_positions_go_on_where_the_cache_ended():
    layer, x = nn.Positions(5), drawn(2, 5, 4)
    params, state = layer.init(random.key(0), x)
    whole, state = layer.apply(params, state, x)
    first, cache = layer.apply(params, layer.cache(2, 5, x), x[:, :2])
    step = fgrad.jit(layer.apply)
    rest, cache = step(params, cache, x[:, 2:])
    np.testing.assert_array_equal(fnp.concatenate([first, rest], axis=1), whole)
    assert state == {} and np.isnan(np.asarray(step(params, cache, x[:, :1])[0])).all()


def test_windows_and_lengths_are_masks():
    q, k = drawn(2, 3, 2, 4), drawn(2, 5, 2, 4)
    apart = np.arange(5) - np.arange(3)[:, None]
    near = (apart >= -1) & (apart <= 0)
    np.testing.assert_allclose(nn.dot_product_attention(q, k, k, local_window_size=(1, 0)),
                               nn.dot_product_attention(q, k, k, mask=near), atol=1e-6)
    lengths, queries = np.array([2, 5]), np.array([3, 1])
    present = (np.arange(3) < queries[:, None])[:, None, :, None] & (
        np.arange(5) < lengths[:, None])[:, None, None, :]
    out, sums = nn.dot_product_attention(q, k, k, query_seq_lengths=queries,
                                         key_value_seq_lengths=lengths, return_residual=True)
    np.testing.assert_allclose(out, nn.dot_product_attention(q, k, k, mask=present), atol=1e-6)
    scores = np.einsum("bthd,bshd->bhts", np.asarray(q), np.asarray(k)) / 2
    with np.errstate(divide="ignore"):           # log 0 is -inf, of queries that see nothing
        want = np.log(np.where(present, np.exp(scores), 0).sum(-1))
    np.testing.assert_allclose(sums, want.transpose(0, 2, 1), rtol=1e-5, atol=1e-5)
    assert not np.asarray(out)[1, 1:].any()


def test_scores_of_half_precision_do_not_overflow():
    q = fnp.full((1, 2, 1, 4), 200.0, "float16")
    out = nn.dot_product_attention(q, q, q, scale=1.0)
    assert out.dtype == "float16" and np.asarray(out).tolist() == np.asarray(q).tolist()


def test_a_cache_that_is_too_short_is_noticed():
    block, x = nn.TransformerBlock(2), drawn(1, 3, 8)
    params, _ = block.init(random.key(0), x)
    with pytest.raises(ShapeError, match="3 positions, and the cache has 2"):
        block.apply(params, block.cache(1, 2, x), x)
    _, cache = block.apply(params, block.cache(1, 3, x), x[:, :2])
    full, cache = fgrad.jit(block.apply)(params, cache, x[:, 2:])
    late, _ = fgrad.jit(block.apply)(params, cache, x[:, :1])
    assert np.isfinite(np.asarray(full)).all() and np.isnan(np.asarray(late)).all()
    with pytest.raises(ArgumentError, match="only where no position sees a later one"):
        nn.MultiHeadAttention(2).cache(1, 3, x)


def test_rotary_products_depend_on_differences_of_positions_only():
    q, k = drawn(1, 1, 1, 6), drawn(1, 1, 1, 6)

    def product(i, j):
        return float(fnp.sum(nn.rotary(q, fnp.array([i])) * nn.rotary(k, fnp.array([j]))))
    assert product(3, 1) == pytest.approx(product(12, 10), abs=1e-4)
    assert abs(product(3, 1) - product(4, 1)) > 1e-4


def test_sinusoidal_positions_are_those_of_the_paper():
    table = np.asarray(nn.sinusoidal_positions(7, 6))
    for t in range(7):
        for k in range(3):
            angle = t / 10_000 ** (k / 3)
            np.testing.assert_allclose(table[t, [k, 3 + k]], [np.sin(angle), np.cos(angle)],
                                       atol=1e-5)


def test_cross_attention_takes_keys_from_the_memory():
    layer, x, memory = nn.MultiHeadAttention(2), drawn(2, 3, 8), drawn(2, 5, 8)
    params, state = layer.init(random.key(0), x)
    y, _ = layer.apply(params, state, x, memory=memory)
    z, _ = layer.apply(params, state, x, memory=memory[:, ::-1])
    assert y.shape == (2, 3, 8)
    np.testing.assert_allclose(y, z, atol=1e-5)         # without positions the order is no matter


def test_embedding_picks_rows_and_its_gradient_adds_up():
    layer, words = nn.Embedding(5, 3), fnp.array([[1, 1], [4, 0]])
    params, state = layer.init(random.key(0), words)
    y, _ = layer.apply(params, state, words)
    np.testing.assert_array_equal(y, np.asarray(params["table"])[np.asarray(words)])
    grads = fgrad.grad(lambda p: fnp.sum(layer.apply(p, {}, words)[0]))(params)
    np.testing.assert_array_equal(np.asarray(grads["table"])[:, 0], [1, 2, 0, 0, 1])
    assert layer.attend(params, y).shape == (2, 2, 5)


def test_wrong_arguments_are_explained():
    with pytest.raises(ArgumentError, match="numbers of rows, and needs integers"):
        nn.Embedding(5, 3).apply({"table": fnp.ones((5, 3))}, {}, fnp.ones(2))
    with pytest.raises(ShapeError, match="3 heads do not divide 8 features"):
        nn.MultiHeadAttention(3).init(random.key(0), drawn(1, 2, 8))
    with pytest.raises(ShapeError, match="4 positions, and there are 3"):
        nn.Positions(3).apply({"positions": fnp.ones((3, 2))}, {}, drawn(1, 4, 2))
    with pytest.raises(ShapeError, match="2 heads cannot share 3 groups"):
        nn.dot_product_attention(drawn(1, 2, 2, 4), drawn(1, 2, 3, 4), drawn(1, 2, 3, 4))
    with pytest.raises(ShapeError, match="even number of features, not 3"):
        nn.sinusoidal_positions(2, 3)


@pytest.mark.parametrize("call", [
    lambda m: nn.dot_product_attention(*[fnp.ones((1, 3, 1, 2))] * 3, mask=m),
    lambda m: nn.softmax(fnp.zeros((3, 3)), where=m),
    lambda m: nn.logsumexp(fnp.zeros((3, 3)), where=m),
    lambda m: fnp.sum(fnp.zeros((3, 3)), where=m)])
def test_a_mask_of_floats_is_refused(call):
    """-inf is not 0, so it counted as visible, and 0.0 as hidden."""
    with pytest.raises(DtypeError, match="is a mask of bools"):
        call(fnp.where(nn.causal(3), 0.0, -fnp.inf))
    assert fnp.array_equal(call(nn.causal(3)), call(nn.causal(3).astype("int32")))


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4)])
def test_attention_of_nothing_is_nothing(shape):
    layer = nn.MultiHeadAttention(2)
    params, _ = layer.init(random.key(0), fnp.ones((1, 3, 4)))
    assert layer.apply(params, {}, fnp.ones(shape))[0].shape == shape
