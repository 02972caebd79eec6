"""A pytree as one vector, and back."""

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad.errors import ShapeError
from fgrad.flatten_util import ravel_pytree

TREE = {"w": fnp.array([[1.0, 2.0], [3.0, 4.0]]), "b": [fnp.array(5), fnp.zeros((0,))]}


def test_unravel_gives_the_tree_with_its_dtypes_and_shapes():
    vector, unravel = ravel_pytree(TREE)
    assert vector.tolist() == [5, 1, 2, 3, 4] and vector.dtype == np.float32
    back = unravel(vector)
    assert fgrad.tree.structure(back) == fgrad.tree.structure(TREE)
    for x, y in zip(fgrad.tree.leaves(back), fgrad.tree.leaves(TREE)):
        assert x.type is y.type and (np.asarray(x) == np.asarray(y)).all()


def test_it_is_differentiated_and_compiled():
    vector, unravel = ravel_pytree(TREE)
    loss = fgrad.jit(lambda v: (unravel(v)["w"] ** 2).sum())
    assert fgrad.grad(loss)(vector).tolist() == [0, 2, 4, 6, 8]


def test_a_vector_of_another_size_is_refused():
    with pytest.raises(ShapeError):
        ravel_pytree(TREE)[1](fnp.zeros(3))


def test_a_tree_without_leaves_is_an_empty_vector():
    vector, unravel = ravel_pytree({})
    assert vector.shape == (0,) and unravel(vector) == {}
