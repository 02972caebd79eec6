"""Large pages for memory that malloc gave, as LLVM text: `@large.pages(ptr %from, i64 %bytes)`.

Linux is asked for them (MADV_HUGEPAGE), as NumPy asks for its arrays: every page of 4 KiB costs a
fault at first use, and 31 MB of them 8 ms.  Elsewhere nothing is asked for.  Relies on nothing;
`runner` and `native_results` rely on it.
"""

from __future__ import annotations

import sys

ASKED = """
declare i32 @madvise(ptr, i64, i32)

define internal void @large.pages(ptr %from, i64 %bytes) nounwind {
entry:
  %large = icmp uge i64 %bytes, 4194304
  br i1 %large, label %ask, label %done
ask:
  %start = ptrtoint ptr %from to i64
  %end = add i64 %start, %bytes
  %up = add i64 %start, 2097151
  %first = and i64 %up, -2097152
  %last = and i64 %end, -2097152
  %size = sub i64 %last, %first
  %at = inttoptr i64 %first to ptr
  %ignored = call i32 @madvise(ptr %at, i64 %size, i32 14)
  br label %done
done:
  ret void
}
"""

NOT_ASKED = """
define internal void @large.pages(ptr %from, i64 %bytes) nounwind {
  ret void
}
"""

TEXT = ASKED if sys.platform == "linux" else NOT_ASKED
