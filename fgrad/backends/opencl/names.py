"""Names of generated OpenCL C: the user's where C allows it, else with a number behind it.

`Names` hands out each name once.  Underscores are left out: the text of contractions, into which
expressions are put, uses only names with an underscore and the letters b, m, n, k and x.
"""

from __future__ import annotations

import re

WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline
int long register restrict return short signed sizeof static struct switch typedef union unsigned
void volatile while bool half quad complex imaginary uchar ushort uint ulong size_t ptrdiff_t
intptr_t uintptr_t global local constant private kernel generic pipe uniform read_only write_only
read_write image1d_t image2d_t image3d_t sampler_t event_t true false NAN INFINITY exp expm1 log
log1p tanh sin cos tan asin acos atan atan2 sinh cosh erf pow fmod sqrt rsqrt floor ceil rint fabs
abs max min select isnan copysign barrier get_global_id get_group_id get_local_id get_global_size
mad fma clamp sign round trunc dot cross length distance normalize step mix any all degrees
radians hypot fmax fmin printf prefetch linux unix main WIDE b m n k x l""".split()
PATTERNS = re.compile(r"(?:float|double|half|u?(?:char|short|int|long))\d+|[A-Z][A-Z0-9]+|"
                      r"(?:convert|as|vload|vstore|native|atomic|async).*")


class Names:
    """The names in use within one function."""

    def __init__(self, taken=()):
        self.taken = {*WORDS, *taken}

    def __call__(self, word):
        """A free name like the word."""
        head, *rest = re.sub(r"[^A-Za-z0-9_]", "", word).strip("_").split("_")
        plain = head + "".join(part[:1].upper() + part[1:] for part in rest)
        if not plain[:1].isalpha() or PATTERNS.fullmatch(plain):
            plain = f"v{plain}"
        name, number = plain, 1
        while name in self.taken:
            number += 1
            if PATTERNS.fullmatch(f"{plain}{number}"):
                plain = f"v{plain}"
            name = f"{plain}{number}"
        self.taken.add(name)
        return name

    def release(self, name):
        """The name may be used again."""
        self.taken.discard(name)
