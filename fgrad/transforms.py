"""Derivatives, batching and staging, as functions of functions.

    grad value_and_grad vjp jvp linearize jacfwd jacrev hessian      derivatives
    vmap                                                             one more axis
    eval_shape make_ir                                               types and programs

Arguments and results are pytrees.  Leaves that are no arrays (strings, functions) reach the
function as they are; grad refuses objects that may hold some.  Transformations nest in any order.
Relies on the interpreters, and on `arguments.py` for their messages; users and everything above
rely on it.
"""

from __future__ import annotations

import functools

import numpy as np

from . import arguments, tree
from .arguments import is_array, lifted
from .core import Array, Value, array_in, as_value, current
from .errors import ArgumentError, AxisError, GradientError, boundary
from .interpreters.backward import backward, transposed
from .interpreters.batch import Axis, batch
from .interpreters.forward import filled, push
from .interpreters.partial import Linear, Linearize
from .interpreters.stage import Specialise, evaluate, stage, staging
from .interpreters.watch import entry
from .ops import broadcast, full, reshape, transpose, zeros_like
from .types import INEXACT_KINDS, SCALARS, WIDE, ArrayType

ONES = {}                  # dtype → the scalar 1, a cotangent; written by `one` only


# ---------------------------------------------------------------------------- grad

@boundary
def value_and_grad(f, argnums=0, argnames=None, has_aux=False, allow_int=False,
                   holomorphic=False):
    """A function that gives (f(…), gradient); the gradient has the tree of the chosen argument.

    argnums: position or name of the argument, or a tuple of them (the gradient is a tuple then).
    argnames: the same by name, in place of argnums.  has_aux: f returns (loss, aux), and the result
    is ((loss, aux), gradient).  allow_int: integer leaves are allowed, and have zeros of their own
    dtype for a gradient; leaves that are no arrays have None.

    f returns a float scalar.  It runs on real values, so `if x > 0` works.  By a complex argument
    z = x + iy the gradient of a real f is ∂f/∂x - i ∂f/∂y, as in JAX; a step against its conjugate
    makes f smaller.  holomorphic: f returns a complex number, and the result is its derivative.
    Raises GradientError for other results and for integer arguments, ArgumentError for arguments
    that f does not have.

    >>> import fgrad
    >>> fgrad.value_and_grad(lambda x: x * x)(3.0)
    (Array(9., f32[]), Array(6., f32[]))
    """
    places = arguments.Places(f, argnums, argnames, "grad", allows_int=True)

    @entry
    @functools.wraps(f, updated=())
    def value_and_grad(*args, **kwargs):
        value, found, aux = derived(f, places, has_aux, allow_int, holomorphic, args, kwargs)
        return ((value, aux) if has_aux else value), found

    return arguments.named(value_and_grad, f"value_and_grad_{arguments.name_of(f)}")


@boundary
def grad(f, argnums=0, argnames=None, has_aux=False, allow_int=False, holomorphic=False):
    """A function that gives the gradient of f; with has_aux, (gradient, aux).

    The options and errors are those of value_and_grad.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> fgrad.grad(lambda x: x * x)(3.0)
    Array(6., f32[])
    >>> def loss(params, x):
    ...     return fnp.sum((x @ params["w"] + params["b"]) ** 2)
    >>> fgrad.grad(loss)({"w": fnp.ones(2), "b": 0.5}, fnp.array([[1.0, 2.0]]))
    {'b': Array(7., f32[]), 'w': Array([ 7., 14.], f32[2])}
    """
    places = arguments.Places(f, argnums, argnames, "grad", allows_int=True)

    @entry
    @functools.wraps(f, updated=())
    def grad(*args, **kwargs):
        _, found, aux = derived(f, places, has_aux, allow_int, holomorphic, args, kwargs)
        return (found, aux) if has_aux else found

    return arguments.named(grad, f"grad_{arguments.name_of(f)}")


def derived(f, places, has_aux, allow_int, holomorphic, args, kwargs):
    """(value, gradient, aux) of f(*args, **kwargs): what grad and value_and_grad choose from."""
    leaves, structure = tree.flatten(places.take(args, kwargs))
    owner = Linearize(current())
    inputs = []
    for k, x in enumerate(leaves):               # a comprehension would be a call, with closures
        if x.__class__ is Array and x.dtype.kind in INEXACT_KINDS:
            inputs.append(owner.input(x))
        else:
            inputs.append(differentiated(owner, x, k, structure, places, allow_int))
    args, kwargs = places.put(tree.unflatten(structure, inputs), args, kwargs)
    try:
        out = owner.run(functools.partial(f, **kwargs) if kwargs else f, *args)
        out, aux = arguments.pair_of(out, f) if has_aux else (out, None)
        out = scalar_result(out, f, holomorphic, places.what)
    finally:
        owner.finish()
    cts = backward(owner, (out,), (one(out),))
    grads = [gradient(x, cts) for x in inputs]
    aux = tree.map(owner.value, aux) if has_aux else None
    return owner.value(out), tree.unflatten(structure, grads), aux


def differentiated(owner, x, k, structure, places, allow_int):
    """Leaf k of the chosen arguments as an input of the owner; what has no derivative stays as it
    is.
    """
    if not is_array(x):
        arguments.check_fixed(places, structure, k, x)
        return x
    if arguments.type_of(x).dtype.kind in INEXACT_KINDS:
        return owner.input(lifted(x))
    if not allow_int:
        raise arguments.not_a_float(places, structure, k, x)
    return x


def scalar_result(out, f, holomorphic=False, what="grad"):
    """The result as a Value.  Raises GradientError unless it is a float scalar, or if holomorphic a
    complex one.
    """
    if not is_array(out):
        raise arguments.not_scalar(out, f, what)
    value = as_value(out)
    if value.shape != () or value.dtype.kind not in INEXACT_KINDS:
        raise arguments.not_scalar(out, f, what)
    if holomorphic != (value.dtype.kind == "c"):
        raise arguments.not_real(value, f, holomorphic)
    return value


def one(out):
    """The cotangent 1 of a scalar; an operation, and no closed-over array, where a program is
    written: it belongs to the derivative of the line that made `out`.
    """
    dtype, stage = out.dtype, staging(current())
    if stage is not None:
        return stage.marked(out, lambda: full(shape=(), value=1.0, dtype=dtype))
    if dtype not in ONES:
        ONES[dtype] = array_in(np.ones(()), dtype)
    return ONES[dtype]


def gradient(x, cts):
    """The gradient by an input: its cotangent, zeros of an integer, None of what is no array."""
    if x.__class__ is Linear:
        ct = cts[x.node]
        return zeros_like(x.primal) if ct is None else ct
    return zeros_like(as_value(x)) if is_array(x) else None


# ---------------------------------------------------------------------------- vjp, jvp, linearize

@entry
def vjp(f, *primals, has_aux=False):
    """(f(*primals), pull): pull(ct) gives a tuple, the cotangent of each primal.

    ct has the tree, shapes and dtypes of f's result (of its first part with has_aux; then the
    result is (out, pull, aux)).  pull may be called often, and under other transformations.
    Integer leaves have zeros of their own dtype, leaves that are no arrays None.  Raises TreeError
    or ShapeError for other ct.

    >>> import fgrad
    >>> out, pull = fgrad.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> pull(1.0)
    (Array(3., f32[]), Array(2., f32[]))
    """
    arguments.check_function(f, "vjp")
    owner, inputs, structure, out, aux = recorded(f, primals, has_aux)
    results, out_structure = tree.flatten(out)
    pull = Pull(f, owner, inputs, structure, results, out_structure)
    out = tree.unflatten(out_structure, [owner.value(x) for x in results])
    return (out, pull, tree.map(owner.value, aux)) if has_aux else (out, pull)


def recorded(f, primals, has_aux):
    """(owner, input leaves, their tree, result, aux) of f under Linearize."""
    leaves, structure = tree.flatten(primals)
    owner = Linearize(current())
    inputs = [owner.input(lifted(x)) if arguments.is_float(x) else x for x in leaves]
    try:
        out = owner.run(f, *tree.unflatten(structure, inputs))
    finally:
        owner.finish()
    out, aux = arguments.pair_of(out, f) if has_aux else (out, None)
    return owner, inputs, structure, tree.map(lambda x: as_value(x) if is_array(x) else x, out), aux


class Pull:
    """The function of vjp that takes cotangents back."""

    def __init__(self, f, owner, inputs, structure, results, out_structure):
        self.f, self.owner, self.inputs, self.structure = f, owner, inputs, structure
        self.results, self.out_structure = results, out_structure

    def __repr__(self):
        return f"<the cotangent function of {arguments.name_of(self.f)}>"

    @entry
    def __call__(self, ct):
        """A tuple: the cotangent of each primal."""
        cts, structure = tree.flatten(ct)
        tree.check_same(self.out_structure, structure,
                        "the cotangent must have the tree of the result of "
                        f"`{arguments.name_of(self.f)}`")
        paths = tree.paths(structure)
        cts = [self.checked(x, c, path) if is_array(x) else None
               for x, c, path in zip(self.results, cts, paths)]
        return tree.unflatten(self.structure, self.flat(cts))

    def checked(self, x, ct, path):
        arguments.check_same_type("the cotangent function of vjp", tree.path_text("ct", path), ct,
                                  x.type, f"the result of `{arguments.name_of(self.f)}`")
        return arguments.like(ct, x)

    def flat(self, cts):
        """The cotangents of the input leaves, from those of the result leaves."""
        found = backward(self.owner, self.results, cts)
        return [gradient(x, found) for x in self.inputs]


@entry
def jvp(f, primals, tangents, has_aux=False):
    """(f(*primals), the derivative of f there in the direction `tangents`); with has_aux also aux.

    primals and tangents are tuples of pytrees of equal trees, shapes and dtypes.  The tangents of
    integer leaves are ignored: they do not move.  Raises TreeError, ShapeError or ArgumentError
    otherwise.

    >>> import fgrad
    >>> fgrad.jvp(lambda x: x * x, (3.0,), (1.0,))
    (Array(9., f32[]), Array(6., f32[]))
    """
    return pushed_forward(f, primals, tangents, has_aux, "jvp")


def pushed_forward(f, primals, tangents, has_aux, what):
    """The result of jvp, for the transformation `what`."""
    arguments.check_function(f, what)
    leaves, ts, structure = arguments.direction(f, primals, tangents, what)
    seen = {}

    def flat(*xs):
        out = f(*tree.unflatten(structure, arguments.put(leaves, places, xs)))
        out, aux = arguments.pair_of(out, f) if has_aux else (out, None)
        seen["out"], seen["structure"] = tree.flatten(out)
        seen["aux"], seen["tree of aux"] = tree.flatten(aux)
        return [*filter(is_array, seen["out"]), *[x for x in seen["aux"] if isinstance(x, Value)]]

    places = [k for k, x in enumerate(leaves) if arguments.is_float(x)]
    values, out_ts = push(flat, [lifted(leaves[k]) for k in places], ts)
    n = sum(map(is_array, seen["out"]))
    outs = arguments.put_arrays(seen["out"], values[:n])
    tangents = arguments.put_arrays(seen["out"], filled(values[:n], out_ts[:n]))
    pair = tree.unflatten(seen["structure"], outs), tree.unflatten(seen["structure"], tangents)
    known = iter(values[n:])
    aux = [next(known) if isinstance(x, Value) else x for x in seen["aux"]]
    return (*pair, tree.unflatten(seen["tree of aux"], aux)) if has_aux else pair


@entry
def linearize(f, *primals, has_aux=False):
    """(f(*primals), push): push(*tangents) is the derivative there, linear, without running f
    again; with has_aux, where f returns (out, aux), also aux.

    Where f has no reverse derivative, as with a while_loop, push is that of jvp, and runs f.

    >>> import fgrad
    >>> out, push = fgrad.linearize(lambda x: x * x, 3.0)
    >>> push(1.0), push(10.0)
    (Array(6., f32[]), Array(60., f32[]))
    """
    arguments.check_function(f, "linearize")
    try:
        out, pull, *aux = vjp(f, *primals, has_aux=has_aux)
    except GradientError:
        pull = None
    if pull is None or not all([op.reversible for op in pull.owner.operations]):
        return linearized_forward(f, primals, has_aux)
    results = [x for x in pull.results if is_array(x)]

    @entry
    def pushed(*tangents):
        """The tangent of the result."""
        _, ts, _ = arguments.direction(f, primals, tangents, "linearize")
        # transposing the transposed: cotangents of the inputs are linear in those of the results
        found = transposed(lambda *cts: backward(pull.owner, results, cts), results, ts)
        return tree.unflatten(pull.out_structure,
                              arguments.put_arrays(pull.results, filled(results, found)))
    return out, pushed, *aux


def linearized_forward(f, primals, has_aux):
    """The result of linearize, by jvp."""
    primals = tree.map(lambda x: lifted(x) if arguments.is_float(x) else x, primals)
    still = tree.map(lambda x: zeros_like(x) if arguments.is_float(x) else x, primals)
    out, _, *aux = pushed_forward(f, primals, still, has_aux, "linearize")

    @entry
    def pushed(*tangents):
        """The tangent of the result."""
        return pushed_forward(f, primals, tangents, has_aux, "linearize")[1]
    return out, pushed, *aux


@boundary
def linear_transpose(f, *primals):
    """A function of cotangents of f's result that gives a tuple, the cotangent of each primal.

    f is linear; primals are arrays, or ArrayTypes, of its arguments' types: their values
    play no role.  Raises GradientError where f is not linear.

    >>> import fgrad
    >>> fgrad.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    (Array(6., f32[]),)
    """
    arguments.check_function(f, "linear_transpose")
    leaves, structure = tree.flatten(primals)
    likes = [arguments.type_of(x) for x in leaves]

    @entry
    def pulled(ct):
        """A tuple: the cotangent of each primal."""
        seen = {}

        def flat(*xs):
            results, seen["out"] = tree.flatten(f(*tree.unflatten(structure, xs)))
            cts, given = tree.flatten(ct)
            tree.check_same(seen["out"], given, "the cotangent must have the tree of the result of "
                            f"`{arguments.name_of(f)}`")
            seen["cts"] = [arguments.like(c, as_value(x)) for c, x in zip(cts, results)]
            return results
        try:
            found = transposed(flat, likes, Later(seen))
        except GradientError:
            raise GradientError(
                f"linear_transpose needs a linear function, and `{arguments.name_of(f)}` is not.",
                fix="vjp(f, *primals) gives the derivative of any function at a point") from None
        return tree.unflatten(structure, filled(likes, found))
    return pulled


class Later:
    """Cotangents that are known once the function has run."""

    def __init__(self, seen):
        self.seen = seen

    def __iter__(self):
        return iter(self.seen["cts"])


@entry
def hvp(f, primals, tangents):
    """The Hessian of f times `tangents`, without the Hessian: the derivative of the gradient.

    primals, tangents: tuples, one entry per argument of f, which returns a float scalar.  The
    result has the tree of the gradient: that of the argument, or a tuple for several.

    >>> import fgrad
    >>> fgrad.hvp(lambda x: x ** 3, (2.0,), (1.0,))
    Array(12., f32[])
    """
    arguments.check_function(f, "hvp")
    arguments.check_tuple(f, "primals", primals, "hvp")
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    places = arguments.Places(f, argnums, None, "hvp")

    @functools.wraps(f, updated=())
    def gradient_of(*args):
        return derived(f, places, False, False, False, args, {})[1]
    return pushed_forward(gradient_of, primals, tangents, False, "hvp")[1]


# ---------------------------------------------------------------------------- vmap

@boundary
def vmap(f, in_axes=0, out_axes=0, axis_name=None, axis_size=None):
    """A function that applies f to each element along an axis of its arguments, all at once.

    in_axes: per argument the axis to map over, or None for what all elements share; an int stands
    for all arguments, and entries may be trees of ints and None.  out_axes: where results have that
    axis; None for a result that is the same for all.  Keyword arguments are mapped over axis 0.
    axis_size is needed only when no argument is mapped; collective operations know the axis by
    axis_name.

    Raises ShapeError, with a table, when sizes differ, AxisError for an axis that an argument
    lacks, ArgumentError when in_axes does not fit the arguments.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> fgrad.vmap(fgrad.grad(lambda x: x ** 2))(fnp.array([1.0, 2.0, 3.0]))
    Array([2., 4., 6.], f32[3])
    >>> points, origin = fnp.array([[3.0, 4.0], [0.0, 1.0]]), fnp.zeros(2)
    >>> fgrad.vmap(lambda p, q: fnp.linalg.norm(p - q), in_axes=(0, None))(points, origin)
    Array([5., 1.], f32[2])
    """
    arguments.check_function(f, "vmap")

    @entry
    @functools.wraps(f, updated=())
    def vmapped(*args, **kwargs):
        leaves, structure = tree.flatten((args, kwargs))
        names = arguments.LeafNames(f, args, kwargs)
        places, arrays, axes = mapped_arguments(f, in_axes, args, leaves, names)
        size = arguments.mapped_size(arrays, axes, names, places, axis_size, f)
        seen = {}

        def flat(*xs):
            given, named = tree.unflatten(structure, arguments.put(leaves, places, xs))
            seen["out"], seen["structure"] = tree.flatten(f(*given, **named))
            return [x for x in seen["out"] if is_array(x)]

        values, dims = batch(flat, arrays, axes, Axis(size, axis_name))
        targets = out_axes_of(out_axes, seen["out"], seen["structure"], f)
        values = [placed(x, d, to, size, f) for x, d, to in zip(values, dims, targets)]
        return tree.unflatten(seen["structure"], arguments.put_arrays(seen["out"], values))

    return arguments.named(vmapped, f"vmap_{arguments.name_of(f)}")


def mapped_arguments(f, in_axes, args, leaves, names):
    """Of the leaves that are mapped: (positions, values, axes); others reach f as they are."""
    arguments.check_arity(in_axes, args, f)
    axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    axes = arguments.axes_of_leaves(axes, args, "in_axes", f)
    axes += [0] * (len(leaves) - len(axes))
    places = [k for k, x in enumerate(leaves) if axes[k] is not None and is_array(x)]
    arrays = [lifted(leaves[k]) for k in places]
    axes = [arguments.normal_axis(axes[k], x, names, k) for k, x in zip(places, arrays)]
    return places, arrays, axes


def out_axes_of(out_axes, outs, structure, f):
    """Per array leaf of the result, where its mapped axis goes."""
    axes = arguments.axes_of_leaves(out_axes, tree.unflatten(structure, outs), "out_axes", f)
    return [d for x, d in zip(outs, axes) if is_array(x)]


def placed(x, d, to, size, f):
    """x with its mapped axis, now at d, at `to`."""
    if to is None:
        if d is not None:
            raise ArgumentError(
                f"vmap with out_axes=None: a result of `{arguments.name_of(f)}` is not the same "
                "for all elements.",
                given=str(x.type), fix="out_axes=0 for that result")
        return x
    ndim = x.ndim + (d is None)
    if not -ndim <= to < ndim:
        raise AxisError(f"vmap cannot put its axis at {to}: a result of `{arguments.name_of(f)}` "
                        f"has {ndim} axes with it.", given=f"out_axes={to}",
                        expected=f"an axis from {-ndim} to {ndim - 1}")
    to %= ndim
    if d is None:
        return broadcast(x, shape=(*x.shape[:to], size, *x.shape[to:]), axes=(to,))
    if d == to:
        return x
    perm = [a for a in range(ndim) if a != d]
    perm.insert(to, d)
    return transpose(x, perm=tuple(perm))


# ---------------------------------------------------------------------------- jacobians

@boundary
def jacrev(f, argnums=0, argnames=None, has_aux=False, holomorphic=False):
    """The derivative of every result element by every argument element, in reverse: for few
    results.

    Per result leaf a tree like the argument, of arrays [*result's shape, *argument's shape].
    Raises GradientError for integer arguments.  With has_aux, (jacobian, aux).  Complex numbers
    need `holomorphic`: the derivative is that of a function of complex numbers.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> fgrad.jacrev(lambda x: x * x)(fnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], f32[2,2])
    """
    return jacobian_in_reverse(f, argnums, argnames, has_aux, holomorphic, "jacrev")


def jacobian_in_reverse(f, argnums, argnames, has_aux, holomorphic, what):
    """The result of jacrev, for the transformation `what`."""
    places = arguments.Places(f, argnums, argnames, what)

    @entry
    @functools.wraps(f, updated=())
    def jacobian(*args, **kwargs):
        chosen, inner = by_chosen(f, places, args, kwargs, holomorphic)
        _, pull, *aux = vjp(inner, chosen, has_aux=has_aux)
        results = [x for x in pull.results if is_array(x)]
        columns = [jacobian_row(pull, results, k) for k in range(len(results))]
        whole = arguments.put_arrays(pull.results,
                                     [tree.unflatten(pull.structure, c)[0] for c in columns])
        found = tree.unflatten(pull.out_structure, whole)
        return (found, *aux) if has_aux else found
    return arguments.named(jacobian, f"{what}_{arguments.name_of(f)}")


def jacobian_row(pull, results, k):
    """Per input leaf, the derivative of result k by it."""
    x = results[k]

    def each(ct):
        cts = iter([ct if j == k else None for j in range(len(results))])
        found = pull.flat([next(cts) if is_array(r) else None for r in pull.results])
        return [c for c in found if c is not None]
    rows = vmap(each)(basis(x)) if x.size else [zeros_rows(c) for c in pull.inputs if is_array(c)]
    rows = [reshape(r, shape=(*x.shape, *r.shape[1:])) for r in rows]
    return arguments.put_arrays(pull.inputs, rows)


def zeros_rows(x):
    """No rows like x."""
    return zeros_like(ArrayType(x.dtype, (0, *x.shape)))


def basis(x):
    """Arrays like x, each with one 1, along a new first axis."""
    return array_in(np.eye(x.size).reshape(x.size, *x.shape), x.dtype)


def by_chosen(f, places, args, kwargs, holomorphic):
    """(the chosen arguments, f as a function of them); raises GradientError for integers among
    them, and for complex numbers unless holomorphic.
    """
    chosen = places.take(args, kwargs)
    leaves, structure = tree.flatten(chosen)
    for k, x in enumerate(leaves):
        if not is_array(x):
            continue
        kind = arguments.type_of(x).dtype.kind
        if kind in INEXACT_KINDS and holomorphic != (kind == "c"):
            raise arguments.not_holomorphic(places.what, places.leaf_name(structure, k), x)
        if kind not in INEXACT_KINDS:
            raise arguments.not_a_float(places, structure, k, x)

    def inner(chosen):
        given, named = places.put(chosen, args, kwargs)
        return f(*given, **named)
    return chosen, arguments.named(inner, arguments.name_of(f))


@boundary
def jacfwd(f, argnums=0, argnames=None, has_aux=False, holomorphic=False):
    """The derivative of every result element by every argument element, forward: for few arguments.

    The result and errors are those of jacrev.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> fgrad.jacfwd(lambda x: x * x)(fnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], f32[2,2])
    """
    return jacobian_forward(f, argnums, argnames, has_aux, holomorphic, "jacfwd")


def jacobian_forward(f, argnums, argnames, has_aux, holomorphic, what):
    """The result of jacfwd, for the transformation `what`."""
    places = arguments.Places(f, argnums, argnames, what)

    @entry
    @functools.wraps(f, updated=())
    def jacobian(*args, **kwargs):
        chosen, inner = by_chosen(f, places, args, kwargs, holomorphic)
        leaves, structure = tree.flatten(chosen)
        leaves = [lifted(x) if is_array(x) else x for x in leaves]
        per_leaf, aux = [], None
        for k, x in enumerate(leaves):
            if is_array(x):
                columns, aux = jacobian_columns(inner, leaves, structure, k, has_aux)
                per_leaf.append(columns)
        if not per_leaf:                         # as many derivatives by nothing as results
            out = inner(chosen)
            out, aux = out if has_aux else (out, None)
            per_leaf = [out]
        outs = tree.structure(per_leaf[0])
        arrays = [k for k, x in enumerate(leaves) if is_array(x)]
        whole = []
        for rows in zip(*map(tree.leaves, per_leaf)):
            filled_in = [None] * len(leaves)
            for k, row in zip(arrays, rows):
                filled_in[k] = row
            whole.append(tree.unflatten(structure, filled_in))
        found = tree.unflatten(outs, whole)
        return (found, aux) if has_aux else found
    return arguments.named(jacobian, f"{what}_{arguments.name_of(f)}")


def jacobian_columns(f, leaves, structure, k, has_aux):
    """(the derivative of f's result by leaf k, aux): a tree like the result, each leaf [*result,
    *leaf].
    """
    x, seen = leaves[k], {}

    def of_leaf(y):
        return f(tree.unflatten(structure, [*leaves[:k], y, *leaves[k + 1:]]))

    def each(t):
        _, tangent, *aux = jvp(of_leaf, (x,), (t,), has_aux=has_aux)
        seen["aux"] = aux[0] if has_aux else None
        return tangent
    columns = vmap(each, axis_size=x.size, out_axes=-1)(basis(x))

    def apart(c):
        return reshape(c, shape=(*c.shape[:-1], *x.shape)) if is_array(c) else c
    return tree.map(apart, columns), seen["aux"]


@boundary
def hessian(f, argnums=0, argnames=None, has_aux=False, holomorphic=False):
    """The second derivatives of f by the chosen argument: jacfwd of jacrev; options as there.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> fgrad.hessian(lambda x: x[0] ** 2 * x[1])(fnp.array([1.0, 3.0]))
    Array([[6., 2.],
           [2., 0.]], f32[2,2])
    """
    inner = jacobian_in_reverse(f, argnums, argnames, has_aux, holomorphic, "hessian")
    inner = arguments.named(inner, arguments.name_of(f))
    return jacobian_forward(inner, argnums, argnames, has_aux, holomorphic, "hessian")


# ---------------------------------------------------------------------------- types and programs

def traced(f, args, kwargs, fixed=()):
    """The Trace of a call; arguments are arrays or ArrayTypes, Python numbers static where their
    value is needed, and those at the positions `fixed`.
    """
    leaves, structure = tree.flatten((args, kwargs))
    names = arguments.leaf_names(f, args, kwargs)
    static = {k for k, (part, which, *_) in enumerate(tree.paths(structure))
              if part == 0 and which in fixed}
    while True:
        places = [k for k, x in enumerate(leaves)
                  if k not in static and (is_array(x) or isinstance(x, ArrayType))]
        classes = [leaves[k].__class__ for k in places]
        numbers = {j: WIDE if cls is np.float64 else True for j, cls in enumerate(classes)
                   if cls in SCALARS or cls is np.float64}
        whole = frozenset(j for j in numbers if classes[j] in (bool, int))

        def flat(*xs):
            given, named = tree.unflatten(structure, arguments.put(leaves, places, xs))
            return f(*given, **named)
        try:
            return stage(flat, [arguments.staged_type(leaves[k]) for k in places],
                         name=arguments.name_of(f),
                         names=[names[k] for k in places], numbers=numbers, specialisable=whole)
        except Specialise as signal:
            if signal.owner.specialisable is not whole:
                raise
            static.update(places[j] for j in signal.arguments)


@entry
def eval_shape(f, *args, **kwargs):
    """The tree of f's result with ArrayTypes for leaves; nothing is computed.

    Arguments are arrays or ArrayTypes.

    >>> import fgrad
    >>> fgrad.eval_shape(lambda x: x @ x.T, fgrad.ArrayType("float32", (1000, 20)))
    f32[1000,1000]
    """
    arguments.check_function(f, "eval_shape")
    trace = traced(f, args, kwargs)
    return tree.unflatten(trace.out, trace.program.out_types)


@boundary
def make_ir(f, static_argnums=()):
    """A function that gives the Program of f for its arguments, arrays or ArrayTypes; `print` shows
    it.  JAX's name for it, make_jaxpr, is the same function.

    static_argnums: the position, or positions, of arguments that reach f as they are.

    >>> import fgrad
    >>> import fgrad.numpy as fnp
    >>> def f(x):
    ...     return fnp.sin(x) * x
    >>> program = fgrad.make_ir(f)(fgrad.ArrayType("float32", (3,)))
    >>> program.inputs, [eqn.op for eqn in program.eqns]
    ((x: f32[3],), [sin, mul])
    """
    arguments.check_function(f, "make_ir")
    fixed = arguments.positions(f, "make_ir", "static_argnums", static_argnums)

    @entry
    @functools.wraps(f, updated=())
    def make_ir(*args, **kwargs):
        return traced(f, args, kwargs, fixed).program
    return make_ir


make_jaxpr = make_ir


def run_program(program, *args):
    """The results of a Program on arrays, as a tuple: equation by equation, through every
    transformation.

    Raises ArgumentError when the number or the types of the arguments are wrong.
    """
    values = [as_value(x) for x in args]
    if [x.type for x in values] != program.in_types:
        raise ArgumentError(f"the program {program.name} was given other arguments than it takes.",
                            given=", ".join(str(x.type) for x in values),
                            expected=", ".join(map(str, program.in_types)))
    return evaluate(program, values)
