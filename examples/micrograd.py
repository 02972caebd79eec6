"""A neuron drawn with the value and the gradient of every number in it: micrograd's first lecture.

    python examples/micrograd.py                          the numbers, as a table
    python examples/micrograd.py --picture neuron.svg     the graph: forward values, backward slopes

What you learn: fgrad stages a function into a small program; the program is plain data, so that ten
lines evaluate it again, with a nudge added to each step; and the slope at each nudge is what
backpropagation would have stored in `.grad`.  Chain rule and graph need no `Value` class.
Answers: micrograd ("draw_dot", the neuron done by hand), MiniTorch module 1, TinyTorch autograd.
"""

import argparse

import fgrad
import fgrad.numpy as fnp
from fgrad.ir_text import variable_names

INPUTS = {"x1": 2.0, "x2": 0.0, "w1": -3.0, "w2": 1.0, "b": 6.8813735870195432}


def neuron(x1, x2, w1, w2, b):
    """The neuron of the lecture: its gradients there are -1.5, 0.5, 1, 0 and 0.5."""
    x1w1 = x1 * w1
    x2w2 = x2 * w2
    total = x1w1 + x2w2
    n = total + b
    return fnp.tanh(n)


def values(program, inputs, nudges):
    """The number at every variable: each equation's operation, applied to what came before.

    A nudge is added to each variable, in program order; all of them zero change nothing.
    """
    nudge, known = iter(nudges), {}
    for variable, x in zip(program.inputs, inputs):
        known[variable] = x + next(nudge)
    for eqn in program.eqns:
        args = [known.get(a, a) for a in eqn.args]             # a plain number stands for itself
        known[eqn.outs[0]] = eqn.op(*args, **eqn.params) + next(nudge)
    return known


def forward_and_backward(program, inputs):
    """({variable: value}, {variable: ∂ result / ∂ variable})"""
    zeros = [0.0] * (len(program.inputs) + len(program.eqns))
    result = lambda nudges: values(program, inputs, nudges)[program.outputs[0]]
    forward = values(program, inputs, zeros)
    return forward, dict(zip(forward, fgrad.grad(result)(zeros)))


def places(program):
    """{variable: (column, row)}: a variable is one column right of the last of its arguments."""
    column = {v: 0 for v in program.inputs}
    for eqn in program.eqns:
        column[eqn.outs[0]] = 1 + max(column.get(a, 0) for a in eqn.args)
    rows = dict.fromkeys(column.values(), 0)
    out = {}
    for v, c in column.items():
        out[v], rows[c] = (c, rows[c]), rows[c] + 1
    return out


def svg(program, forward, backward, width=190, height=64):
    """The graph as the text of an SVG file: a box for each variable, a line for each argument."""
    at, name = places(program), variable_names(program)
    maker = {e.outs[0]: e.op.name for e in program.eqns}
    wide = (1 + max(c for c, _ in at.values())) * width
    high = (1 + max(r for _, r in at.values())) * height
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
           'font-family="monospace" font-size="11"><rect width="100%" height="100%" fill="white"/>']
    for eqn in program.eqns:
        c, r = at[eqn.outs[0]]
        for a in eqn.args:
            if a in at:
                c0, r0 = at[a]
                out.append(f'<line x1="{c0 * width + 150}" y1="{r0 * height + 30}" '
                           f'x2="{c * width + 10}" y2="{r * height + 30}" stroke="#888"/>')
    for v, (c, r) in at.items():
        x, y = c * width + 10, r * height + 10
        title = f"{name[v]} ← {maker[v]}" if v in maker else name[v]
        out.append(f'<rect x="{x}" y="{y}" width="140" height="44" rx="5" stroke="#1f6fb2" '
                   f'fill="{"#e8f1fa" if v in maker else "#fdf3e3"}"/>'
                   f'<text x="{x + 8}" y="{y + 17}" font-weight="bold">{title}</text>'
                   f'<text x="{x + 8}" y="{y + 34}">{forward[v]:.4f}  '
                   f'<tspan fill="#d1495b">grad {backward[v]:.4f}</tspan></text>')
    return "\n".join([*out, "</svg>", ""])


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", metavar="FILE", help="write the graph as SVG")
    parser.add_argument("--short", action="store_true", help="as it is: the whole takes a second")
    args = parser.parse_args(argv)
    inputs = [fnp.array(x) for x in INPUTS.values()]
    program = fgrad.make_ir(neuron)(*inputs)
    print(program)
    forward, backward = forward_and_backward(program, inputs)
    for variable, name in variable_names(program).items():
        print(f"{name:6} {forward[variable]:9.4f}   grad {backward[variable]:8.4f}")
    if args.picture:
        with open(args.picture, "w", encoding="utf8") as file:
            file.write(svg(program, forward, backward))
    slopes = fgrad.grad(neuron, argnums=(0, 1, 2, 3, 4))(*inputs)        # the same, as users do it
    print("gradients:", ", ".join(f"{n} {g:.4f}" for n, g in zip(INPUTS, slopes)))


if __name__ == "__main__":
    main()
