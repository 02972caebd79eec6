"""Movement operations: indices that go out of range, and the helpers that rules use."""

import numpy as np
import pytest

import fgrad.numpy as fnp
from fgrad import index, ops
from fgrad.core import Array
from fgrad.errors import ShapeError
from tests.ops import scalars


def A(*shape):
    return Array(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


def test_weave_puts_reduced_indices_at_their_axes():
    assert ops.weave("ac", "bd", (1, 3)) == ("a", "b", "c", "d")
    assert ops.weave("ab", "", ()) == ("a", "b")
    assert ops.weave("", "ab", (0, 1)) == ("a", "b")


def test_to_front_moves_a_batch_axis_or_makes_one():
    assert ops.to_front(A(2, 3, 4), 2).shape == (4, 2, 3)
    assert ops.to_front(A(2, 3), None, 5).shape == (5, 2, 3)


def test_none_is_zero_in_plus():
    x = A(2)
    assert ops.plus(None, x) is x and ops.plus(x, None) is x and ops.plus(None, None) is None


@pytest.mark.parametrize("shape, interior", [((3,), 2), ((1,), 4), ((0,), 3), ((5,), 1)])
def test_pad_inside_is_undone_by_a_strided_slice(shape, interior):
    x = A(*shape)
    wide = ops.pad(x, 7.0, low=(2,), high=(1,), interior=(interior,))
    stop = wide.shape[0] - 1
    back = ops.slice(wide, start=(2,), stop=(max(stop, 2),), stride=(interior + 1,))
    np.testing.assert_array_equal(back.np, x.np)
    assert (wide.np == 7).sum() == wide.size - x.size + (x.np == 7).sum()


def test_reversal_under_a_reshape_reads_the_right_elements():
    x = np.arange(12.0).reshape(4, 3)
    with index.Space() as space:
        pulled, memory = scalars.pulled_args([x])

        def reshaped(i):
            return ops.reshape.pull(*pulled, shape=(12,))(i)

        def mirrored(i):
            return reshaped((index.combine([(i[0], -1)], 11),))
        variables = [space.variable(12)]
        node = mirrored((index.of(variables[0]),))
        got = [scalars.value(node, {variables[0]: k}, memory, {}) for k in range(12)]
    np.testing.assert_array_equal(got, x.ravel()[::-1])


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="reshape cannot make"):
        ops.reshape(A(3), shape=(2,))
    with pytest.raises(ShapeError, match="concatenate needs arrays that differ along axis 0 only"):
        ops.concatenate(A(2), A(3, 3), axis=0)
    with pytest.raises(ShapeError, match="slice does not fit"):
        ops.slice.type(A(3).type, start=(2,), stop=(5,), stride=(1,))
    with pytest.raises(ShapeError, match="broadcast cannot make"):
        ops.broadcast(A(3), shape=(2, 4), axes=(0,))
    with pytest.raises(ShapeError, match="sorted, distinct axes"):
        ops.rev.type(A(3, 3).type, axes=(1, 0))


def test_an_array_of_zeros_has_the_sign_that_was_asked_for():
    for dtype in map(np.dtype, ("float16", "float32", "float64")):
        for value, sign in ((0, False), (0.0, False), (-0.0, True), (False, False)):
            x = np.asarray(fnp.asarray(ops.full(shape=(3,), value=value, dtype=dtype)))
            assert np.all(x == 0) and np.all(np.signbit(x) == sign)
