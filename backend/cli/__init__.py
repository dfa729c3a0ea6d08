"""The `quarry` command, one module for each of its commands. Each parses, calls one function, and prints.

Exit codes: 0 done; 1 failed, or nothing there that this asker may see; 2 wrong use; 3 done, with failures named;
75 not now: the same command may succeed later.
"""

from backend.cli.command_line import app, main

__all__ = ["app", "main"]
