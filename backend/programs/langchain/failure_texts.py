"""What an agent reads where a tool has no result: what happened, and what to do next."""

from collections.abc import Callable, Sequence

from backend.chat.prompts import malformed_arguments
from backend.programs.search_failures import GO_ON
from backend.web_search.search_outcome import FailureKind, ProviderAttempt


def describe_invalid_arguments(example: str) -> Callable[[object], str]:
    """Return what makes the text about arguments that do not fit the schema."""
    return lambda _: malformed_arguments(example)


def describe_failed_attempts(attempts: Sequence[ProviderAttempt]) -> str | None:
    """Return why no provider of web search answered; None where one answered and found nothing."""
    failures = [one.failure for one in attempts if one.failure]
    if not failures or any(one.kind is FailureKind.NOTHING_FOUND for one in failures):
        return None
    reasons = " ".join(f"{one.provider}: {one.failure.reason}" for one in attempts if one.failure)
    return f"The search of the web failed. {reasons} Do not call this tool again at once. {GO_ON}"


def describe_refused_query(removed: Sequence[str]) -> str:
    """Return why a query of the web is not sent."""
    return (
        f"This query was not sent to the web: {_quote(removed)} stands in internal documents alone. Search in general words,"
        f" without what only these documents say. {GO_ON}"
    )


def describe_removed_terms(removed: Sequence[str]) -> str:
    """Return what was left out of a query of the web."""
    return (
        f"Left out of the query, because it stands in internal documents alone: {_quote(removed)}."
    )


def _quote(terms: Sequence[str]) -> str:
    return ", ".join(f"“{term}”" for term in terms)
