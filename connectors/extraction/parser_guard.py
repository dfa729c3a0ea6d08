"""Around the parsers of others: their warnings kept quiet, their failures turned into reasons."""

import struct
import threading
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from connectors.extraction.result import ExtractionError
from connectors.text_cleaning import to_one_line

# What parsers raise on bytes that break the promises of a format, besides errors of their own.
_BROKEN = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, OSError),
    *(RuntimeError, SyntaxError, TypeError, ValueError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)
_LONGEST_REASON = 200


class _Quiet:
    """Warnings are ignored while any thread reads: their filters belong to the whole process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.readers = 0
        self.before = warnings.catch_warnings()

    def begin(self) -> None:
        with self.lock:
            if self.readers == 0:
                self.before = warnings.catch_warnings()
                self.before.__enter__()
                warnings.simplefilter("ignore")
            self.readers += 1

    def end(self) -> None:
        with self.lock:
            self.readers -= 1
            if self.readers == 0:
                self.before.__exit__(None, None, None)


_QUIET = _Quiet()


@contextmanager
def convert_parser_errors(what: str, *errors: type[Exception]) -> Iterator[None]:
    """Run a parser of others over bytes that claim to be `what`; `errors` are its own.

    Raises:
        ExtractionError: in place of whatever the parser raises.
    """
    _QUIET.begin()
    try:
        yield
    except _BROKEN + errors as error:
        reason = to_one_line(str(error))[:_LONGEST_REASON] or type(error).__name__
        raise ExtractionError(f"it is not a whole {what}: {reason}") from error
    finally:
        _QUIET.end()
