"""The passes of the compiler's middle: a Program becomes a Plan.

What `pipeline` offers is imported when it is asked for: a process that finds its compiled programs
on disk runs no pass.
"""

from .. import later

__getattr__, __dir__ = later.names(__name__, {"pipeline": "plan stages",
                                                "target": "CPU Target"})
