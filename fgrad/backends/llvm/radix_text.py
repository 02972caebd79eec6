"""The text of the radix sort: rows of words, byte by byte, each pass stable.

A word is unsigned and sorts as a number.  An element becomes one as it is read and an element again
as it is written: x ^ (its sign, all over, & mask) ^ top.  A float has all bits but the highest as
mask and an integer none; what has a sign has the highest bit as top.

    row: count, for each byte, how many words have each of its 256 values, and leave out the bytes
         that are the same in all; for the others, the lowest first, move the words to the places
         that the counts give

A vector that several threads sort is cut into sides by words between them (`splitters`): they count
what they have for each side, move it there, then sort sides.  `radix.py` fills in the %Job and runs
the functions of its parts, void(ptr job, i64 part).  Relies on `quick_text`, whose functions do the
same for values where vectors are compared.
"""

from __future__ import annotations

from typing import NamedTuple

from . import quick_text
from .text import declarations


class Kind(NamedTuple):
    """Words of so many bits, which are sorted by their bytes from `first` on.

    place: the bits that are the place of an element, where that is all that is asked for.
    """
    bits: int
    first: int = 0
    place: int = 0

    @property
    def digits(self):
        """The bytes they are sorted by."""
        return self.bits // 8 - self.first


PLACE = 2**32 - 1          # the lower half of a word with an element and its place
KINDS = {"short": Kind(32), "long": Kind(64),
         "places": Kind(64, 4, PLACE),           # where elements are equal, as they lie
         "pairs": Kind(64, 0, PLACE)}            # where elements are equal, by their places
POINTERS = ("source", "target", "work", "counts", "given", "splitters")
NUMBERS = ("rows", "n", "parts", "mask", "top", "last_mask", "last_top")
FIELDS = POINTERS + NUMBERS
MAPS = "mask top last_mask last_top"
SIDES = 16                 # of a vector that several threads sort

HEAD = f"""
%Job = type {{ {", ".join(["ptr"] * len(POINTERS) + ["i64"] * len(NUMBERS))} }}
"""

# Every word of %source to its place in %target by one byte; %counts are the places of the next.
PASS = """
define internal void @{turn}.{name}(ptr noalias %source, ptr noalias %target, ptr noalias %counts,
                                    i64 %n, i64 %shift, {w} %mask, {w} %top) nounwind {{
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %from = getelementptr {w}, ptr %source, i64 %i
  %x = load {w}, ptr %from
{read}{digit}
  %count = getelementptr i64, ptr %counts, i64 %digit
  %place = load i64, ptr %count
  %after = add i64 %place, 1
  store i64 %after, ptr %count
{written}
  %to = getelementptr {w}, ptr %target, i64 %place
  store {w} {out}, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %body, label %done
done:
  ret void
}}
"""

# A row, from %source to %target by way of %work.  The first pass reads elements and the last writes
# them, into the target; so there are two passes at least, and an even number where the target is
# the source.  Passes by bytes that are the same in all fill up.
ROW = """
define internal void @row.{name}(ptr %source, ptr %target, ptr %work, ptr %counts, i64 %n,
    {w} %mask, {w} %top, {w} %last_mask, {w} %last_top) nounwind {{
entry:
  %moving = alloca [{digits} x i64]
  %some = icmp ne i64 %n, 0
  br i1 %some, label %begin, label %done
begin:
  call void @llvm.memset.p0.i64(ptr %counts, i8 0, i64 {room}, i1 false)
  %x0 = load {w}, ptr %source
{word0}
  br label %count
count:
  %i = phi i64 [ 0, %begin ], [ %i1, %count ]
  %from = getelementptr {w}, ptr %source, i64 %i
  %x = load {w}, ptr %from
{word}{counted}
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %n
  br i1 %more, label %count, label %digit
digit:
  %d = phi i64 [ 0, %count ], [ %d1, %summed ]
  %wanted = phi i64 [ 0, %count ], [ %wanted1, %summed ]
  %row = getelementptr [256 x i64], ptr %counts, i64 %d
  %d.8 = mul i64 %d, 8
  %shift = add i64 %d.8, {below}
{first_byte}
  %first.at = getelementptr i64, ptr %row, i64 %first
  %alike = load i64, ptr %first.at
  %moves = icmp ne i64 %alike, %n
  %moves.1 = zext i1 %moves to i64
  %moving.d = getelementptr i64, ptr %moving, i64 %d
  store i64 %moves.1, ptr %moving.d
  %wanted1 = add i64 %wanted, %moves.1
  br label %sum
sum:
  %v = phi i64 [ 0, %digit ], [ %v1, %sum ]
  %before = phi i64 [ 0, %digit ], [ %before1, %sum ]
  %v.at = getelementptr i64, ptr %row, i64 %v
  %here = load i64, ptr %v.at
  store i64 %before, ptr %v.at
  %before1 = add i64 %before, %here
  %v1 = add i64 %v, 1
  %v.more = icmp ult i64 %v1, 256
  br i1 %v.more, label %sum, label %summed
summed:
  %d1 = add i64 %d, 1
  %d.more = icmp ult i64 %d1, {digits}
  br i1 %d.more, label %digit, label %plan
plan:
  %same = icmp eq ptr %source, %target
  %few = icmp ult i64 %wanted1, 2
  %least = select i1 %few, i64 2, i64 %wanted1
  %odd = and i64 %least, 1
  %one = select i1 %same, i64 %odd, i64 0
  %total = add i64 %least, %one
  %idle = sub i64 %total, %wanted1
  br label %turn
turn:
  %t = phi i64 [ 0, %plan ], [ %t1, %ran ]
  %left = phi i64 [ %total, %plan ], [ %left1, %ran ]
  %spare = phi i64 [ %idle, %plan ], [ %spare1, %ran ]
  %from.t = phi ptr [ %source, %plan ], [ %from1, %ran ]
  %moving.t = getelementptr i64, ptr %moving, i64 %t
  %does = load i64, ptr %moving.t
  %does.not = xor i64 %does, 1
  %can = icmp ne i64 %spare, 0
  %must = icmp ne i64 %does, 0
  %go = or i1 %can, %must
  br i1 %go, label %run, label %ran
run:
  %spare.r = sub i64 %spare, %does.not
  %left.r = sub i64 %left, 1
  %side = and i64 %left.r, 1
  %working = icmp ne i64 %side, 0
  %to = select i1 %working, ptr %work, ptr %target
  %row.t = getelementptr [256 x i64], ptr %counts, i64 %t
  %t.8 = mul i64 %t, 8
  %shift.t = add i64 %t.8, {below}
  %is.first = icmp eq i64 %left, %total
  br i1 %is.first, label %first.turn, label %later
first.turn:
  call void @first.{name}(ptr %from.t, ptr %to, ptr %row.t, i64 %n, i64 %shift.t,
                          {w} %mask, {w} %top)
  br label %ran
later:
  %is.last = icmp eq i64 %left.r, 0
  br i1 %is.last, label %last.turn, label %next.turn
next.turn:
  call void @next.{name}(ptr %from.t, ptr %to, ptr %row.t, i64 %n, i64 %shift.t, {w} 0, {w} 0)
  br label %ran
last.turn:
  call void @last.{name}(ptr %from.t, ptr %to, ptr %row.t, i64 %n, i64 %shift.t,
                         {w} %last_mask, {w} %last_top)
  br label %ran
ran:
  %left1 = phi i64 [ %left, %turn ],
    [ %left.r, %first.turn ], [ %left.r, %next.turn ], [ %left.r, %last.turn ]
  %spare1 = phi i64 [ %spare, %turn ],
    [ %spare.r, %first.turn ], [ %spare.r, %next.turn ], [ %spare.r, %last.turn ]
  %from1 = phi ptr [ %from.t, %turn ],
    [ %to, %first.turn ], [ %to, %next.turn ], [ %to, %last.turn ]
  %t1 = add i64 %t, 1
  %t.more = icmp ult i64 %t1, {digits}
  br i1 %t.more, label %turn, label %done
done:
  ret void
}}
"""

# The rows of one part.
ROWS = """
define void @rows.{name}(ptr %job, i64 %part) nounwind {{
entry:
{rows_fields}{share}
  %mine = mul i64 %part, %n
  %work.p = getelementptr {w}, ptr %work, i64 %mine
  %counts.p = getelementptr [{digits} x [256 x i64]], ptr %counts, i64 %part
  br label %head
head:
  %r = phi i64 [ %lo, %entry ], [ %r1, %body ]
  %more = icmp ult i64 %r, %hi
  br i1 %more, label %body, label %done
body:
  %at = mul i64 %r, %n
  %from = getelementptr {w}, ptr %source, i64 %at
  %to = getelementptr {w}, ptr %target, i64 %at
  call void @{sort}.{name}(ptr %from, ptr %to, ptr %work.p, ptr %counts.p, i64 %n, {maps})
  %r1 = add i64 %r, 1
  br label %head
done:
  ret void
}}
"""

# The words of one part, and for each the place in %counts of its side: as many splitters are below.
EACH = """
define void @{what}.{name}(ptr %job, i64 %part) nounwind {{
entry:
{vector_fields}{share_n}
  %mine = getelementptr [{sides} x i64], ptr %counts, i64 %part
  %between = load <{sides} x {w}>, ptr %splitters, align {bytes}
  br label %head
head:
  %i = phi i64 [ %lo, %entry ], [ %i1, %body ]
  %more = icmp ult i64 %i, %hi
  br i1 %more, label %body, label %done
body:
  %from = getelementptr {w}, ptr %source, i64 %i
  %x = load {w}, ptr %from
{word}
  %word.0 = insertelement <{sides} x {w}> poison, {w} %word, i64 0
  %word.v = shufflevector <{sides} x {w}> %word.0, <{sides} x {w}> poison,
                          <{sides} x i32> zeroinitializer
  %below = icmp ugt <{sides} x {w}> %word.v, %between
  %bits = bitcast <{sides} x i1> %below to i{sides}
  %number = call i{sides} @llvm.ctpop.i{sides}(i{sides} %bits)
  %side = zext i{sides} %number to i64
  %slot = getelementptr i64, ptr %mine, i64 %side
  %place = load i64, ptr %slot
  %after = add i64 %place, 1
  store i64 %after, ptr %slot
{then}
  %i1 = add i64 %i, 1
  br label %head
done:
  ret void
}}
"""
MOVE = """  %to = getelementptr {w}, ptr %target, i64 %place
  store {w} %word, ptr %to"""

# A side, in %target, sorted; `given` are the places of the first words of the sides.
SIDE = """
define void @side.{name}(ptr %job, i64 %part) nounwind {{
entry:
{side_fields}
  %lo.at = getelementptr i64, ptr %given, i64 %part
  %hi.at = getelementptr i64, ptr %lo.at, i64 1
  %lo = load i64, ptr %lo.at
  %hi = load i64, ptr %hi.at
  %count = sub i64 %hi, %lo
  %words = getelementptr {w}, ptr %target, i64 %lo
  %room = getelementptr {w}, ptr %work, i64 %lo
  %counts.p = getelementptr [{digits} x [256 x i64]], ptr %counts, i64 %part
  call void @{sort}.{name}(ptr %words, ptr %words, ptr %room, ptr %counts.p, i64 %count, {maps})
  ret void
}}
"""

# Words whose upper half is an element of 32 bits, their lower half its place in its row; where
# `given` holds places the word is of the element there, in their order.  All NaN are the last word,
# and -0.0 is 0.0.
WORDS = """
define void @words.{form}(ptr %job, i64 %part) nounwind {{
entry:
{words_fields}
  %whole = mul i64 %rows, %n
{share_whole}
  %column = urem i64 %lo, %n
  %ordered = icmp ne ptr %given, null
  br label %head
head:
  %i = phi i64 [ %lo, %entry ], [ %i1, %body ]
  %j = phi i64 [ %column, %entry ], [ %j2, %body ]
  %more = icmp ult i64 %i, %hi
  br i1 %more, label %read, label %done
read:
  br i1 %ordered, label %look, label %body
look:
  %look.at = getelementptr i64, ptr %given, i64 %i
  %looked = load i64, ptr %look.at
  br label %body
body:
  %place = phi i64 [ %j, %read ], [ %looked, %look ]
  %start = sub i64 %i, %j
  %at = add i64 %start, %place
  %from = getelementptr i32, ptr %source, i64 %at
{element}
  %upper = zext i32 %key to i64
  %high = shl i64 %upper, 32
  %low = and i64 %place, 4294967295
  %pair = or i64 %high, %low
  %to = getelementptr i64, ptr %target, i64 %i
  store i64 %pair, ptr %to
  %i1 = add i64 %i, 1
  %j1 = add i64 %j, 1
  %end = icmp eq i64 %j1, %n
  %j2 = select i1 %end, i64 0, i64 %j1
  br label %head
done:
  ret void
}}
"""


def text(name, compares):
    """The text of all functions for a kind of words.

    compares: the bytes of the vectors of them that are compared, 0 if none are.  Words with a place
    may have to stay in the order that they have, which nothing but counting does; so both ways are
    there.
    """
    own = functions(name, compares if name != "places" else 0)
    if compares and name == "places":
        own += functions("pairs", compares)
    body = "\n".join(own)
    return HEAD + "\n".join([*declarations(body), body])


def functions(name, compares):
    """Their texts, for a kind of words."""
    kind = KINDS[name]
    parts = pieces(name, kind, compares)
    out = [PASS.format(**parts, turn=turn, **read_and_written(turn, kind))
           for turn in ("first", "next", "last")]
    out += [one.format_map(parts) for one in (ROW, ROWS, SIDE)]
    if kind.first:
        read = fields("source target given rows n parts mask top", "i32")
        out += [WORDS.format(form=form, element=element, words_fields=read,
                             share_whole=share("%whole"))
                for form, element in (("float", float_element()), ("integer", integer_element()))]
    if compares:
        return out + quick_text.functions(name, kind, FIELDS, SIDES, compares)
    out += [EACH.format(**parts, what=what, then=then.format_map(parts))
            for what, then in (("count", ""), ("move", MOVE))]
    return out


def pieces(name, kind, compares):
    """What the functions of a kind are made of."""
    w, bits = f"i{kind.bits}", kind.bits
    return {
        "name": name, "w": w, "bytes": bits // 8, "sides": SIDES, "digits": kind.digits,
        "room": 2048 * kind.digits,
        "below": 8 * kind.first, "counted": counted(kind),
        "word": as_word("word", "%x", bits), "word0": as_word("word0", "%x0", bits),
        "first_byte": byte("first", "%word0", bits, "%shift"),
        "sort": "quick.row" if compares else "row",
        "maps": f"{w} %mask, {w} %top, {w} %last_mask, {w} %last_top",
        "rows_fields": fields(f"source target work counts rows n parts {MAPS}", w),
        "vector_fields": fields("source target counts splitters n parts mask top", w),
        "side_fields": fields(f"target work counts given {MAPS}", w),
        "share": share("%rows"), "share_n": share("%n")}


def read_and_written(turn, kind):
    """What a pass does with words: the first makes them of elements, the last elements of them; of
    a word with a place the last leaves the place.
    """
    w, bits, read, written, word, out = f"i{kind.bits}", kind.bits, "", "", "%x", "%x"
    if turn == "first" and not kind.first:
        read, word, out = as_word("word", "%x", bits), "%word", "%word"
    if turn == "last":
        out, written = "%out", (
            f"  %out = and {w} %x, {kind.place}\n" if kind.place else
            f"  %y = xor {w} %x, %top\n" + as_word("out", "%y", bits, top="0"))
    return {"read": read, "digit": byte("digit", word, bits, "%shift"), "written": written,
            "out": out}


def fields(names, word="i64"):
    """The lines that read fields of %job as %`name`; those that map elements are words."""
    out = ""
    for name in names.split():
        kind, read = "ptr" if name in POINTERS else "i64", f"%{name}"
        short = word != "i64" and name in NUMBERS[3:]
        out += (f"  %{name}.at = getelementptr %Job, ptr %job, i64 0, i32 {FIELDS.index(name)}\n"
                f"  {read}{'.long' if short else ''} = load {kind}, ptr %{name}.at\n")
        if short:
            out += f"  {read} = trunc i64 {read}.long to {word}\n"
    return out


def share(whole):
    """The lines for %lo and %hi, what of 0..`whole` is the part's."""
    return (f"  %share.lo = mul i64 {whole}, %part\n"
            f"  %lo = udiv i64 %share.lo, %parts\n"
            f"  %share.hi = add i64 %share.lo, {whole}\n"
            f"  %hi = udiv i64 %share.hi, %parts\n")


def as_word(name, x, bits, top="%top"):
    """The lines for %`name`, the word of an element."""
    return (f"  %{name}.s = ashr i{bits} {x}, {bits - 1}\n"
            f"  %{name}.m = and i{bits} %{name}.s, %mask\n"
            f"  %{name}.x = xor i{bits} {x}, %{name}.m\n"
            f"  %{name} = xor i{bits} %{name}.x, {top}\n")


def byte(name, word, bits, shift):
    """The lines for %`name`, the byte of a word above so many bits, as i64."""
    long = word if bits == 64 else f"%{name}.z"
    return (("" if bits == 64 else f"  {long} = zext i{bits} {word} to i64\n")
            + f"  %{name}.r = lshr i64 {long}, {shift}\n"
              f"  %{name} = and i64 %{name}.r, 255\n")


def counted(kind):
    """The lines that count %word by each of its bytes."""
    out = ""
    for d in range(kind.digits):
        out += byte(f"b{d}", "%word", kind.bits, 8 * (kind.first + d))
        out += (f"  %b{d}.row = getelementptr [256 x i64], ptr %counts, i64 {d}\n"
                f"  %b{d}.at = getelementptr i64, ptr %b{d}.row, i64 %b{d}\n"
                f"  %b{d}.old = load i64, ptr %b{d}.at\n"
                f"  %b{d}.new = add i64 %b{d}.old, 1\n"
                f"  store i64 %b{d}.new, ptr %b{d}.at\n")
    return out


def integer_element():
    """The lines for %key, the word of an integer."""
    return "  %x = load i32, ptr %from\n" + as_word("key", "%x", 32)


def float_element():
    """The lines for %key, the word of a float."""
    return ("  %f = load float, ptr %from\n"
            "  %g = fadd float %f, 0.0\n"
            "  %x = bitcast float %g to i32\n"
            + as_word("number", "%x", 32) +
            "  %nan = fcmp uno float %f, %f\n"
            "  %key = select i1 %nan, i32 -1, i32 %number\n")
