"""The key of a kernel: text that is equal for kernels which one compiled function can serve.

Buffers are numbered in the order params, outputs, scratch; loops, names and expressions as they are
met.  It holds dtypes, shapes and the schedule, but no name of the user's and no source line.
Backends rely on it, through `Known`, and so does the tuner.
"""

from __future__ import annotations

from .index import Dynamic, Var
from .loop import Accumulate, Contract, For, Let, Start, Store
from .scalar import FloatConstant, walk
from .types import SHORT


def key(kernel):
    """The key of a kernel, as text."""
    return Writer(kernel).text()


class Known:
    """What was made for kernels, once for those that are equal.

    Keys are worked out where another kernel has the same types: until then what was made for the
    first one stands beside it, under None.
    """

    def __init__(self):
        self.alike = {}                          # types → {key: made}

    def get(self, kernel, make):
        """make(kernel), or what was made for an equal one."""
        types = tuple([b.type for b in (*kernel.params, *kernel.outputs)])
        alike = self.alike.setdefault(types, {})
        if not alike:
            alike[None] = kernel, make(kernel)
            return alike[None][1]
        if None in alike:
            first, made = alike.pop(None)
            alike[key(first)] = made
        own = key(kernel)
        if own not in alike:
            alike[own] = make(kernel)
        return alike[own]


class Writer:
    """Numbers what a kernel holds, and writes it line by line."""

    def __init__(self, kernel):
        self.kernel, self.lines = kernel, []
        self.loops, self.names, self.nodes = {}, {}, {}
        groups = (kernel.params, kernel.outputs, kernel.scratch)
        self.buffers = {b: k for k, b in enumerate(b for group in groups for b in group)}
        self.lines += [" ".join(str(b.type) for b in group) for group in groups]
        self.lines += [f"alias {self.buffers[out]} {self.buffers[b]}" for out, b in kernel.aliases]
        if kernel.turns is not None:
            self.lines.append(f"turns {kernel.turns.count} {kernel.turns.groups}")

    def text(self):
        self.body(self.kernel.body)
        return "\n".join(self.lines)

    def loop(self, v):
        return self.loops.setdefault(v, len(self.loops))

    def name(self, text):
        return self.names.setdefault(text, len(self.names))

    def body(self, statements):
        for s in statements:
            match s:
                case For():
                    self.lines.append(f"for {self.loop(s.var)} {s.var.extent} {s.kind} {s.width} "
                                      f"{s.unroll} {s.step} {s.grain} {s.rows}")
                    self.body(s.body)
                    self.lines.append("end")
                case Contract():
                    self.contract(s)
                case Start():
                    self.lines.append(f"start {self.name(s.name)} {s.how} {SHORT[s.dtype]}")
                case Let():
                    self.lines.append(f"let {self.name(s.name)} {self.node(s.expr)}")
                case Accumulate():
                    self.lines.append(f"add {self.name(s.name)} {s.how} {self.node(s.expr)}")
                case Store():
                    expr, at = self.node(s.expr), self.index(s.index)
                    when = self.ranges(s.when)
                    self.lines.append(f"store {self.buffers[s.buffer]} {at} {s.how} {when} {expr}")

    def contract(self, s):
        groups = (s.batch, s.rows, s.columns, s.k)
        loops = "; ".join(" ".join(f"{self.loop(v)}:{v.extent}" for v in vs) for vs in groups)
        self.lines.append(f"contract {loops} {self.node(s.a)} {self.node(s.b)} {self.name(s.name)} "
                          f"{SHORT[s.dtype]} {s.rank} {s.total and self.name(s.total)} "
                          f"{[self.name(n) for n in s.sums]}")
        self.body(s.body)
        self.lines.append("end")

    def node(self, root):
        """The number of an expression; its parts are written first, each once."""
        for n in walk(root):
            if n not in self.nodes:
                args = " ".join(str(self.nodes[a]) for a in n.args)
                line = f"{n.op} {SHORT[n.dtype]} {self.data(n)} {args}"
                self.nodes[n] = len(self.nodes)
                self.lines.append(line)
        return self.nodes[root]

    def data(self, n):
        match n.op:
            case "const":
                return n.data.hex() if isinstance(n.data, FloatConstant) else repr(n.data)
            case "load":
                return f"{self.buffers[n.data[0]]} {self.index(n.data[1])}"
            case "index":
                return self.index(n.data)
            case "name":
                return str(self.name(n.data))
            case "guard":
                return self.ranges(n.data)
        return ""

    def ranges(self, ranges):
        return "[" + ",".join(f"{lo}<={self.index(x)}<{hi}" for x, lo, hi in ranges) + "]"

    def index(self, x):
        """An Ix; its terms in an order that does not depend on where they lie in memory."""
        terms = sorted(f"{c}*{self.atom(a)}" for a, c in x.terms)
        return "+".join([*terms, str(x.const)])

    def atom(self, a):
        match a:
            case Var():
                return str(self.loop(a))
            case Dynamic():
                return f"<{self.node(a.node)}:{a.hi}>"
        return f"({self.index(a.ix)}{a.op}{a.n})"
