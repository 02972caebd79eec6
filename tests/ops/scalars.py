"""A tiny evaluator of scalar expressions: the value of a node at an index, by NumPy."""

import itertools

import numpy as np

from fgrad import index, scalar
from fgrad.loop import Buffer
from fgrad.types import ArrayType, computed


class Pulled:
    """An argument of a pull rule that is read from memory; of bf16 the value is f32."""

    def __init__(self, name, value, dtype=None):
        value = np.asarray(value)
        self.dtype = dtype or value.dtype
        self.value = value.astype(computed(self.dtype))
        self.type = ArrayType(self.dtype, value.shape)
        self.shape = value.shape
        self.buffer = Buffer(name, self.type, "input")

    def __call__(self, i):
        assert len(i) == len(self.shape)
        return scalar.load(self.buffer, index.flat(i, self.shape))


def pulled_args(args):
    """(arguments for a pull rule, Buffer → flat values); Arrays may be among the arguments."""
    pulled = [a if isinstance(a, (bool, int, float)) else
              Pulled(f"x{k}", np.asarray(a), a.dtype) for k, a in enumerate(args)]
    return pulled, {p.buffer: p.value.ravel() for p in pulled if isinstance(p, Pulled)}


def at(x, env, memory):
    """The int that an Ix is, where `env` gives the variables."""
    total = x.const
    for a, c in x.terms:
        match a:
            case index.Var():
                v = env[a]
            case index.Dynamic():
                v = int(value(a.node, env, memory, {}))
                assert 0 <= v <= a.hi, "a run-time index left its range"
            case _:
                inner = at(a.ix, env, memory)
                assert inner >= 0, "a quotient of a negative index"
                v = inner // a.n if a.op == "/" else inner % a.n
        total += c * v
    assert x.lo <= total <= x.hi
    return total


def value(root, env, memory, memo):
    """The value of a node."""
    if root not in memo:
        with np.errstate(all="ignore"):
            memo[root] = np.asarray(compute(root, env, memory, memo)).astype(root.dtype)[()]
    return memo[root]


def compute(n, env, memory, memo):
    match n.op:
        case "const":
            return np.array(n.data, n.dtype)
        case "load":
            buffer, where = n.data
            where = at(where, env, memory)
            assert 0 <= where < memory[buffer].size, "a load outside of its array"
            return memory[buffer][where]
        case "index":
            return at(n.data, env, memory)
        case "guard":
            holds = all(lo <= at(x, env, memory) < hi for x, lo, hi in n.data)
            return value(n.args[not holds], env, memory, memo)
        case "reduce":
            return reduced(n, env, memory)
        case "cast":
            return value(n.args[0], env, memory, memo).astype(n.dtype)
        case "bits":
            return np.asarray(value(n.args[0], env, memory, memo)).view(n.dtype)[()]
    return scalar.INSTRUCTIONS[n.op].numpy(*[value(a, env, memory, memo) for a in n.args])


def reduced(n, env, memory):
    how, variables = n.data
    name, identity = scalar.REDUCTIONS[how]
    total = np.array(identity(n.dtype), n.dtype)
    for place in itertools.product(*[range(v.extent) for v in variables]):
        part = value(n.args[0], {**env, **dict(zip(variables, place))}, memory, {})
        total = np.asarray(scalar.INSTRUCTIONS[name].numpy(total, part)).astype(n.dtype)
    return total


def table_of(element, shape, memory, space):
    """The array whose elements `element(index)` gives."""
    variables = [space.variable(n) for n in shape]
    node = element(tuple(index.of(v) for v in variables)) if 0 not in shape else None
    out = np.empty(shape, node.dtype if node is not None else bool)
    for place in itertools.product(*map(range, shape)):
        out[place] = value(node, dict(zip(variables, place)), memory, {})
    return out


def pull(op, args, params, shape):
    """The result of an operation by its pull rule."""
    with index.Space(), np.errstate(all="ignore"):
        pulled, memory = pulled_args(args)
        return table_of(op.pull(*pulled, **params), shape, memory, index.space())


def push(op, args, params):
    """The result of an operation by its push rule, update after update."""
    with index.Space(), np.errstate(all="ignore"):
        pulled, memory = pulled_args(args)
        out, (shape, target) = wide(args[0]), op.push(*pulled, **params)
        variables = [index.space().variable(n) for n in shape]
        if 0 in shape:
            return out
        where, ranges, node = target(tuple(index.of(v) for v in variables))
        for place in itertools.product(*map(range, shape)):
            env = dict(zip(variables, place))
            if all(lo <= at(x, env, memory) < hi for x, lo, hi in ranges):
                found = tuple(at(x, env, memory) for x in where)
                new = value(node, env, memory, {})
                old = out[found]
                out[found] = new if op.how == "set" else step(op.how, old, new)
        return out


def scan(op, args, params):
    """The result of a running reduction by the loop that its scan rule describes."""
    taken, when, axis, reverse = op.scan(**params)
    out = wide(args[0])
    rows, *given = [np.moveaxis(a, axis, 0) for a in (out, *map(wide, args))]
    start = scalar.REDUCTIONS[dict(taken)[0]][1](out.dtype)
    total = np.full(rows.shape[1:], start, out.dtype)
    with np.errstate(all="ignore"):
        for k in range(len(rows))[::-1 if reverse else 1]:
            for number, (i, how) in enumerate(taken, 1):
                total = step(how, total, given[i][k])
                if number == when:
                    rows[k] = total
    return out


def wide(x):
    """A copy of an array, in the dtype in which it is computed."""
    return np.array(x).astype(computed(x.dtype))


def step(how, x, y):
    return scalar.INSTRUCTIONS[scalar.REDUCTIONS[how][0]].numpy(x, y)
