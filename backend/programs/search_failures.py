"""What an agent reads where a search has no result: what happened, and what to do next."""

from connectors.errors import QuarryError, TemporarilyUnavailableError
from indexing.runtime.deadline import DeadlineExceededError

GO_ON = "Answer from what was found before, and say what is missing."


def describe_search_error(error: QuarryError | DeadlineExceededError) -> str:
    match error:
        case DeadlineExceededError():
            advice = "Call this tool once more with fewer words, or not again."
            return f"The search did not end in time. {advice} {GO_ON}"
        case TemporarilyUnavailableError():
            seconds = max(1, round(error.retry_after.total_seconds()))
            advice = f"Call this tool again after {seconds} s, or not again."
            return f"The search failed: {_to_sentence(error)} {advice} {GO_ON}"
        case _:
            return f"The search cannot answer: {_to_sentence(error)} Do not call this tool again. {GO_ON}"


def _to_sentence(error: QuarryError) -> str:
    text = str(error)
    return text if text.endswith((".", "!", "?")) else f"{text}."
