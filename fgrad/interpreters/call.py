"""The `call` operation: a Program as one operation, whose rules are Programs made from it, once
each.

    jvp_program      inputs, tangents             →  outputs, tangents
    vjp_program      inputs  →  outputs, residuals   and   residuals, cotangents  →  cotangents
    transposed_program   constants, cotangents    →  cotangents, where it is linear in the others
    batch_program    inputs with one more axis    →  outputs with one more axis, in front

`inline` replaces calls by their equations, for the compiler.  Relies on every other interpreter;
jit and custom rules rely on it.
"""

from __future__ import annotations

from ..core import NOTHING, Primitive, current
from ..errors import GradientError
from ..ir import Equation, Program, Var
from ..later import lazily
from ..ops import to_front
from .backward import pull, transposed
from .batch import batch
from .forward import filled, push
from .stage import evaluate, stage

compiled = lazily("fgrad.compile", "run_call")    # waits for a thread that is loading it


# ---------------------------------------------------------------------- programs from programs

def derived(program, prefix, function, types, names):
    """The Program of function(*tracers), named after the one it is made from."""
    return stage(function, types, name=f"{prefix}_{program.name}", names=names).program


def jvp_program(program, mask):
    """inputs, tangents of the masked ones → outputs, then their tangents."""
    n = len(program.inputs)
    types, names = program.in_types, names_of(program)

    def pushed(*args):
        outs, ts = push(lambda *xs: evaluate(program, xs), args[:n],
                        merged([None] * n, args[n:], mask))
        return *outs, *filled(outs, ts)
    return derived(program, "jvp", pushed, [*types, *chosen(types, mask)],
                   [*names, *prefixed("d", chosen(names, mask))])


def vjp_program(program, mask):
    """(forward, backward): inputs → outputs, residuals;   residuals, cotangents → cotangents of the
    masked.
    """
    whole = joint_program(program, mask, (True,) * len(program.outputs))
    return split(whole, len(program.inputs), len(program.outputs))


def vjp_if_all(program, mask):
    """`vjp_program`, or None where not every output has a reverse derivative."""
    try:
        return program.derive(vjp_program, mask)
    except GradientError:
        return None


def joint_program(program, mask, live):
    """inputs, cotangents of the live outputs → outputs, cotangents of the masked inputs."""
    n = len(program.inputs)

    def joint(*args):
        xs, cts = args[:n], merged([None] * len(live), args[n:], live)
        active = chosen(xs, mask)
        outs, pulled = pull(lambda *ys: evaluate(program, merged(xs, ys, mask)), active)
        return *outs, *filled(active, pulled(cts))
    return derived(program, "vjp", joint, [*program.in_types, *chosen(program.out_types, live)],
                   [*names_of(program), *chosen(ct_names(program), live)])


def dependent(program, mask):
    """Per output: can it depend on the masked inputs?"""
    reached = set(chosen(program.inputs, mask))
    for eqn in program.eqns:
        own = tuple([a in reached for a in eqn.args])
        if True in own:
            depends = eqn.op.depends
            found = eqn.outs if depends is None else chosen(eqn.outs, depends(own, eqn.params))
            reached.update(found)
    return tuple([v in reached for v in program.outputs])


def transposed_program(program, mask):
    """constants, cotangents of outputs → cotangents of the masked inputs, in which the program is
    linear.
    """
    n = len(program.inputs) - sum(mask)
    likes = chosen(program.inputs, mask)
    other = [not m for m in mask]

    def backwards(*args):
        consts, cts = args[:n], args[n:]
        known = merged([None] * len(mask), consts, other)
        found = transposed(lambda *xs: evaluate(program, merged(known, xs, mask)), likes, cts)
        return tuple(filled(likes, found))
    return derived(program, "transpose", backwards,
                   [*chosen(program.in_types, other), *program.out_types],
                   [*chosen(names_of(program), other), *ct_names(program)])


def batch_program(program, dims, axis):
    """The program over one more Axis, in front of every result."""
    return batched(program, dims, axis, (True,) * len(program.outputs))[0]


def batched(program, dims, axis, forced=()):
    """(the Program over one more Axis, which results have it: in front, those of `forced` always).
    """
    n, mask = axis.size, []
    forced = (*forced, *[False] * (len(program.outputs) - len(forced)))

    def function(*args):
        outs, out_dims = batch(lambda *xs: evaluate(program, xs), args, dims, axis)
        mask[:] = [f or d is not None for f, d in zip(forced, out_dims)]
        return tuple([to_front(x, d, n) if m else x for x, d, m in zip(outs, out_dims, mask)])
    made = derived(program, "vmap", function, wider(program, dims, n), names_of(program))
    return made, tuple(mask)


def wider(program, dims, n):
    """The types of the inputs with one more axis of n where dims say."""
    return [v.type if d is None else v.type.with_shape(v.shape[:d] + (n,) + v.shape[d:])
            for v, d in zip(program.inputs, dims)]


def names_of(program):
    return [v.name for v in program.inputs]


def ct_names(program):
    """The names of the cotangents of the results: ct, ct2, …"""
    return ["ct"] * len(program.outputs)


def prefixed(letter, names):
    return [name and f"{letter}_{name}" for name in names]


def chosen(values, mask):
    """The values where the mask is true."""
    return [v for v, m in zip(values, mask) if m]


def merged(values, others, mask):
    """The values, with `others`, in order, where the mask is true."""
    others = iter(others)
    return [next(others) if m else v for v, m in zip(values, mask)]


def split(program, n, m):
    """Two programs: what needs only the first n inputs (and gives the first m outputs), and the
    rest.

    The first gives its residuals, what the second reads of it, as further outputs; the second takes
    them as its first inputs.
    """
    unknown = set(program.inputs[n:])
    first, second = [], []
    for eqn in program.eqns:
        late = any(v in unknown for v in eqn.variables)
        (second if late else first).append(eqn)
        if late:
            unknown.update(eqn.outs)
    constant = {v for v, _ in program.hidden}
    wanted = dict.fromkeys(v for eqn in second for v in eqn.variables)
    wanted.update(dict.fromkeys(program.outputs[m:]))
    residuals = [v for v in wanted if v not in unknown and v not in constant]
    return (part(program, program.inputs[:n], first, (*program.outputs[:m], *residuals)),
            part(program, (*residuals, *program.inputs[n:]), second, program.outputs[m:]))


def part(program, inputs, eqns, outputs):
    """A Program of some equations of another, with the closed-over arrays that these read."""
    used = {v for eqn in eqns for v in eqn.variables} | set(outputs)
    return Program(program.name, inputs, eqns, outputs,
                   [(v, a) for v, a in program.hidden if v in used])


# ---------------------------------------------------------------------------- the operation

class Call(Primitive):
    """The results of a Program.   `device` is where jit was asked to run it, or None.

    `run(args, params)` gives the value outside of every transformation, by compiled code; the
    compile driver is loaded for the first, and takes the place of `run`.
    """
    multiple = True
    settles = False
    transparent = True

    def __call__(self, *args, program, device=None):
        params = {"program": program} if device is None else {"program": program, "device": device}
        return current().process(self, args, params)

    def run(self, args, params):
        return compiled()(args, params)

    def evaluate(self, args, params):
        return self.run(args, params)

    def type(self, *types, program, device=None):
        return program.out_types

    def forward(self, args, tangents, params):
        mask = tuple([t is not None for t in tangents])
        pushed = params["program"].derive(jvp_program, mask)
        out = self(*args, *chosen(tangents, mask), **{**params, "program": pushed})
        m = len(out) // 2
        return out[:m], out[m:]

    def linearize(self, below, args, active, params):
        """The row holds the residuals, and the program that gives cotangents from them."""
        program, mask = params["program"], tuple([node >= 0 for node in active])
        both = program.derive(vjp_if_all, mask)
        if both is None:
            outs = below.process(self, args, params)
            return outs, (later, outs, args, {**params, "mask": mask}, chosen(active, mask))
        return recorded(below, args, active, both, len(program.outputs), params)

    def depends(self, mask, params):
        return params["program"].derive(dependent, mask)

    def record(self, outs, args, active, params):
        """As in linearize: the row holds the constants, and the transposed program."""
        mask = tuple([node >= 0 for node in active])
        back = params["program"].derive(transposed_program, mask)
        consts = [a for a, m in zip(args, mask) if not m]
        return self, outs, consts, {**params, "program": back}, chosen(active, mask)

    def pullback(self, cts, outs, residuals, active, params):
        return self(*residuals, *filled(outs, cts), **params)

    def axis_names(self, params):
        return params["program"].axis_names

    def batch_over(self, axis, dims, args, params):
        program = params["program"].derive(batch_program, dims, axis)
        return self(*args, **{**params, "program": program}), 0


call = Call("call")


class Later(Call):
    """A row of a call of which not every result has a reverse derivative: what gives cotangents is
    made when it is known of which there are any.
    """
    reversible = False

    def pullback(self, cts, outs, args, active, params):
        program, live = params["program"], tuple([ct is not None for ct in cts])
        whole = program.derive(joint_program, params["mask"], live)
        others = {k: v for k, v in params.items() if k != "mask"}
        found = call(*args, *chosen(cts, live), **{**others, "program": whole})
        return found[len(program.outputs):]


later = Later("call_later")


def recorded(below, args, active, programs, m, params=NOTHING):
    """(outs, row) of an operation with m results, whose derivative two Programs give: arguments →
    results, residuals;   residuals, cotangents → cotangents of the active arguments.
    """
    first, second = programs
    every = below.process(call, args, {**params, "program": first})
    return every[:m], (call, every[:m], every[m:], {**params, "program": second},
                       [node for node in active if node >= 0])


# ---------------------------------------------------------------------------- inline

def inline(program):
    """The Program with the equations of nested programs in place of calls, all the way down.

    Closed-over arrays of nested programs become its own, each array once.
    """
    hidden = {id(a): (v, a) for v, a in program.hidden}
    env = {v: hidden[id(a)][0] for v, a in program.hidden}
    eqns = []
    expand(program, env, eqns, hidden, None)
    outputs = [env.get(v, v) for v in program.outputs]
    return Program(program.name, program.inputs, eqns, outputs, hidden.values())


def is_flat(program):
    """Does `inline` change nothing: no nested programs, and no array that is closed over twice?"""
    arrays = {id(a) for _, a in program.hidden}
    return len(arrays) == len(program.hidden) and not any(
        eqn.op.transparent or eqn.op.nested for eqn in program.eqns)


def expand(program, env, eqns, hidden, mark):
    """Appends the equations of `program`; env: its variables → those of the whole, its own for
    itself.
    """
    for eqn in program.eqns:
        args = [env.get(a, a) if a.__class__ is Var else a for a in eqn.args]
        if eqn.op.transparent:
            inner = eqn.params["program"]
            inside = dict(zip(inner.inputs, args))
            for v, a in inner.hidden:
                inside[v] = hidden.setdefault(id(a), (Var(v.type, v.name), a))[0]
            inside.update({v: Var(v.type, v.name) for e in inner.eqns for v in e.outs})
            expand(inner, inside, eqns, hidden, eqn.mark or mark)
            env.update(zip(eqn.outs, [inside[v] for v in inner.outputs]))
        else:
            outs, params = [env.get(v, v) for v in eqn.outs], eqn.params
            if eqn.op.nested:
                def lift(a):
                    return hidden.setdefault(id(a), (Var(a.type), a))[0]
                args, params = eqn.op.opened(args, params, lift)
            eqns.append(Equation(eqn.op, args, params, outs, eqn.source, eqn.mark or mark))
