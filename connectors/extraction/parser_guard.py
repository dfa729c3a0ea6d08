"""Run third-party parsers: suppress their warnings, convert their exceptions."""

import struct
import threading
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from connectors.extraction.result import ExtractionError
from connectors.text_cleaning import to_one_line

# What parsers raise on damaged files besides errors of their own.
_PARSER_ERRORS = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, OSError),
    *(RuntimeError, SyntaxError, TypeError, ValueError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)
_LONGEST_REASON = 200


class _WarningSilencer:
    """Ignores warnings while any thread parses, because warning filters are process-wide."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.parsers = 0
        self.before = warnings.catch_warnings()

    def begin(self) -> None:
        with self.lock:
            if self.parsers == 0:
                self.before = warnings.catch_warnings()
                self.before.__enter__()
                warnings.simplefilter("ignore")
            self.parsers += 1

    def end(self) -> None:
        with self.lock:
            self.parsers -= 1
            if self.parsers == 0:
                self.before.__exit__(None, None, None)


_SILENCER = _WarningSilencer()


@contextmanager
def convert_parser_errors(what: str, *errors: type[Exception]) -> Iterator[None]:
    """Convert exceptions of a parser of `what`; `errors` are its own exception classes.

    Raises:
        ExtractionError: whatever the parser raised.
    """
    _SILENCER.begin()
    try:
        yield
    except RecursionError as error:
        raise ExtractionError("it is nested too deeply") from error
    except _PARSER_ERRORS + errors as error:
        reason = to_one_line(str(error))[:_LONGEST_REASON] or type(error).__name__
        raise ExtractionError(f"it is not a valid {what}: {reason}") from error
    finally:
        _SILENCER.end()
