"""Control flow: loops and branches that stay loops and branches in the program."""

from .checkpoint import barrier, checkpoint, checkpoint_name, checkpoint_policies, kept
from .cond import cond, switch
from .loops import fori_loop, while_loop
from .scan import scan
from .sequences import associative_scan, map
