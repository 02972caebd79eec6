"""Scalar expressions as values of a text: what is worked out, in which order, in any language.

A value is (text, is it a vector).  Relies on `scalar`'s nodes alone; the emitters of LLVM text and
of OpenCL C rely on it.
"""

from __future__ import annotations


class Expressions:
    """Works out scalar nodes: `compute` one whose arguments are known, `pending` what lacks.

    The heirs say what a number, a name, a load, an index and a guard are, and what is `known`.
    """

    def pending(self, root):
        """The unknown nodes that `root` needs, arguments first; none that a guard hides."""
        order, seen, stack = [], set(), [(root, False)]
        while stack:
            n, done = stack.pop()
            if done:
                order.append(n)
            elif n not in seen and self.known(n) is None:
                seen.add(n)
                if not n.args or n.op == "guard":
                    order.append(n)
                else:
                    stack.append((n, True))
                    stack.extend([(a, False) for a in reversed(n.args)])
        return order

    def compute(self, n):
        """(text, is it a vector) of a node whose arguments are known."""
        match n.op:
            case "const":
                return self.number(n), False
            case "name":
                return self.named(n)
            case "load":
                return self.load(n)
            case "index":
                return self.index_value(n)
            case "guard":
                return self.guard(n)
        got = [self.value(a) for a in n.args]
        wide = any(w for _, w in got)
        lanes = self.lanes if wide else 1
        args = [self.splat(v, a.dtype) if wide else v[0] for v, a in zip(got, n.args)]
        if n.op == "cast":
            return self.instructions.cast(args[0], n.args[0].dtype, n.dtype, lanes), wide
        if n.op == "bits":
            return self.instructions.bits(args[0], n.args[0].dtype, n.dtype, lanes), wide
        return self.instructions.apply(n.op, args, n.args[-1].dtype, lanes), wide
