"""The program inside the sandbox: built into the component, where it is started once, and never imported by Quarry.

Nothing here protects anything, since the code that it runs may change all of it. It only makes answers of what would
end the component: there is no system call behind files, modules that were not built in, and clocks.
"""

import sys

sys.modules["_datetime"] = None  # type: ignore[assignment]
# So that dates are of the module in Python, which asks `time` below for the time.

import ast
import base64  # noqa: F401
import bisect  # noqa: F401
import builtins
import calendar  # noqa: F401
import cmath  # noqa: F401
import collections  # noqa: F401
import contextlib
import copy  # noqa: F401
import csv  # noqa: F401
import dataclasses  # noqa: F401
import datetime  # noqa: F401
import decimal  # noqa: F401
import difflib  # noqa: F401
import enum  # noqa: F401
import fractions  # noqa: F401
import functools  # noqa: F401
import graphlib  # noqa: F401
import hashlib  # noqa: F401
import heapq  # noqa: F401
import importlib.machinery
import io
import itertools
import json  # noqa: F401
import math  # noqa: F401
import numbers  # noqa: F401
import operator  # noqa: F401
import os
import posix
import pprint  # noqa: F401
import random  # noqa: F401
import re  # noqa: F401
import statistics  # noqa: F401
import string  # noqa: F401
import textwrap  # noqa: F401
import time
import traceback  # noqa: F401
import types
import typing  # noqa: F401
import unicodedata  # noqa: F401
import warnings

NAME = "<calculation \ud800>"
"""Of the file of the code. CPython opens it for the line of a syntax error, unless the name cannot be encoded."""
_FILE_CALLS = (
    *("open", "stat", "lstat", "access", "readlink", "listdir", "scandir", "chdir", "getcwd"),
    *("mkdir", "rmdir", "remove", "unlink", "rename", "replace", "link", "symlink", "utime", "truncate"),
)


class WitWorld:
    """What the component exports."""

    def calculate(self, code: str, now: float) -> tuple[str, str]:
        _set_time(now)
        _close_files()
        output, problem = io.StringIO(), ""
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                _execute(code)
            except BaseException as error:
                problem = _describe(error)
        return output.getvalue(), problem


def _execute(code: str) -> None:
    """Run code, and write the value of its last line where that is an expression."""
    parsed = ast.parse(code, NAME)
    last = parsed.body.pop() if parsed.body and isinstance(parsed.body[-1], ast.Expr) else None
    scope: dict[str, object] = {"__name__": "__main__"}
    exec(compile(parsed, NAME, "exec"), scope)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), NAME, "eval"), scope)
        if value is not None:
            print(value)


def _describe(error: BaseException) -> str:
    """Say what went wrong and in which line; empty for the end of the program."""
    if isinstance(error, SystemExit) and not error.code:
        return ""
    is_syntax = isinstance(error, SyntaxError)
    line = error.lineno if is_syntax else _find_line(error.__traceback__)
    said = error.msg if is_syntax else str(error)
    place = f" (line {line})" if line else ""
    return f"{type(error).__name__}{': ' if said else ''}{said}{place}"


def _find_line(at: types.TracebackType | None) -> int | None:
    line = None
    while at is not None:
        line = at.tb_lineno if at.tb_frame.f_code.co_filename == NAME else line
        at = at.tb_next
    return line


def _set_time(now: float) -> None:
    """Stop all clocks at this time, in UTC."""
    local, parts, write = time.localtime, time.gmtime, time.strftime
    time.time = lambda: now
    time.time_ns = lambda: int(now * 1e9)
    time.monotonic = time.perf_counter = time.process_time = lambda: 0.0
    time.localtime = lambda seconds=None, /: local(now if seconds is None else seconds)
    time.gmtime = lambda seconds=None, /: parts(now if seconds is None else seconds)
    time.strftime = lambda form, of=None, /: write(form, time.gmtime() if of is None else of)  # type: ignore[misc]
    time.sleep = lambda seconds, /: None


def _close_files() -> None:
    """Refuse files, and know no module but those that were built in."""
    builtins.open = io.open = _refuse_file  # type: ignore[assignment]
    for module, name in itertools.product((os, posix), _FILE_CALLS):
        setattr(module, name, _refuse_file)
    warnings.simplefilter("ignore")
    sys.stdin = io.StringIO()
    sys.path.clear()
    sys.path_hooks.clear()
    sys.path_importer_cache.clear()
    sys.meta_path[:] = [importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter]


def _refuse_file(*_: object, **__: object) -> None:
    raise PermissionError("a calculation has no files")
