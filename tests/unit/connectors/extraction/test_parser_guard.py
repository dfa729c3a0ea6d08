import threading
import warnings

import pytest

from connectors.extraction.parser_guard import convert_parser_errors
from connectors.extraction.result import ExtractionError


@pytest.mark.parametrize(
    "error", [KeyError("x"), RuntimeError("deep"), SyntaxError("xml"), OSError("x")]
)
def test_what_a_parser_raises_becomes_a_reason(error: Exception) -> None:
    with pytest.raises(ExtractionError, match="not a valid PDF: "), convert_parser_errors("PDF"):
        raise error


def test_errors_of_its_own_are_named() -> None:
    class Strange(Exception):
        pass

    with (
        pytest.raises(ExtractionError, match="not a valid PDF: Strange"),
        convert_parser_errors("PDF", Strange),
    ):
        raise Strange


def test_a_reason_that_is_already_known_passes() -> None:
    with pytest.raises(ExtractionError, match=r"^a password$"), convert_parser_errors("PDF"):
        raise ExtractionError("a password")


def test_warnings_break_nothing_in_any_thread_and_return_afterwards() -> None:
    before = list(warnings.filters)
    inside, leave = threading.Barrier(2), threading.Event()

    def read() -> None:
        with convert_parser_errors("PDF"):
            inside.wait()
            leave.wait()

    thread = threading.Thread(target=read)
    with convert_parser_errors("PDF"):
        thread.start()
        inside.wait()
    # the other reader is still at work
    warnings.warn("odd", UserWarning, stacklevel=1)
    leave.set()
    thread.join()
    assert list(warnings.filters) == before
    with pytest.raises(UserWarning, match="odd"):
        warnings.warn("odd", UserWarning, stacklevel=1)


def test_what_is_nested_deeper_than_a_parser_goes_is_said_to_be_that() -> None:
    with (
        pytest.raises(ExtractionError, match=r"^it is nested too deeply$"),
        convert_parser_errors("PDF"),
    ):
        raise RecursionError("maximum recursion depth exceeded")
