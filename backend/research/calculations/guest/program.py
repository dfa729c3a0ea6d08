"""The program inside the sandbox: built into the component, where it is started once, and never imported by Quarry.

Nothing here protects anything, since the code that it runs may change all of it. It only makes answers of what would
end the component: there is no system call behind files, modules that were not built in, and clocks.
"""

import sys

sys.modules["_datetime"] = None  # type: ignore[assignment]
# So that dates are of the module in Python, which asks `time` below for the time.

import ast
import base64
import bisect
import builtins
import calendar
import cmath
import collections
import contextlib
import copy
import csv
import dataclasses
import datetime
import decimal
import difflib
import enum
import fractions
import functools
import graphlib
import hashlib
import heapq
import importlib.machinery
import io
import itertools
import json
import linecache
import math
import numbers
import operator
import os
import posix
import pprint
import random
import re
import statistics
import string
import textwrap
import time
import tokenize
import traceback
import types
import typing
import unicodedata
import warnings

NAME = "<calculation \ud800>"
"""Of the file of the code. CPython opens it for the line of a syntax error, unless the name cannot be encoded."""
_FILE_CALLS = ("open", "stat", "lstat", "listdir", "scandir", "getcwd", "mkdir", "remove")


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
        return _encode(output.getvalue()), _encode(problem)


def _encode(text: str) -> str:
    """Replace what has no form in UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _execute(code: str) -> None:
    """Run code, and write the value of its last line where that is an expression."""
    parsed = ast.parse(code, NAME)
    scope: dict[str, object] = {"__name__": "__main__"}
    match parsed.body:
        case [*first, ast.Expr(value=last)]:
            exec(compile(ast.Module(first, []), NAME, "exec"), scope)
            value = eval(compile(ast.Expression(last), NAME, "eval"), scope)
            if value is not None:
                print(value)
        case _:
            exec(compile(parsed, NAME, "exec"), scope)


def _describe(error: BaseException) -> str:
    """Say what went wrong and in which line; empty for the end of the program."""
    match error:
        case SystemExit(code=None | 0):
            return ""
        case SyntaxError():
            line, said = error.lineno, error.msg
        case _:
            line, said = _find_line(error.__traceback__), str(error)
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
    time.strftime = lambda form, *of: write(form, *(of or [time.gmtime()]))
    time.sleep = lambda _, /: None


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
