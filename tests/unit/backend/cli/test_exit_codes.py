"""What an error that ends a command is printed as, and the exit code that goes with it."""

from datetime import timedelta

import pytest
import typer

from backend.chat.events import AnswerFailedError, TurnFailed
from backend.cli.command_line import cli_errors
from backend.search.llm_protocol import CompletionError
from connectors.errors import ConflictError, NotFoundError, TemporarilyUnavailableError
from indexing.index.versions import IndexVersionReplacedError
from indexing.runtime.deadline import DeadlineExceededError

SOON = timedelta(seconds=3)
BUSY = TemporarilyUnavailableError("The index is busy.", SOON)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BUSY, 75, "The index is busy. Try again in 3 s."),
        (IndexVersionReplacedError(None), 75, "The index was removed since"),
        (
            TurnFailed.from_search_error(BUSY).to_error(),
            75,
            "The search failed. The index is busy.",
        ),
        (AnswerFailedError("No answer.", "Shorten it."), 1, "No answer. Shorten it."),
        (NotFoundError("There is none."), 1, "There is none."),
        (ConflictError("It runs.", "Stop it."), 1, "It runs. Stop it."),
        (CompletionError("empty"), 1, "empty"),
        (DeadlineExceededError("late"), 1, "The time limit was reached."),
    ],
)
def test_a_failure_that_may_pass_has_another_exit_code_than_a_refusal(
    error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, cli_errors(as_json=False):
        raise error
    assert (ended.value.exit_code, said in capsys.readouterr().err) == (code, True)
