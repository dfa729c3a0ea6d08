"""Explain why a search found nothing, and what may help."""

from collections.abc import Iterator
from dataclasses import dataclass

from backend.search.query_syntax import OperatorKind, ParsedQuery, QueryOperator


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The reason why a query has no results, and another query to try."""

    reason: str
    label: str
    query: str


def suggest_queries(parsed: ParsedQuery) -> tuple[Suggestion, ...]:
    """Suggest queries that require less, those without quotes first."""
    return tuple(_suggest(parsed))


def _suggest(parsed: ParsedQuery) -> Iterator[Suggestion]:
    phrases = parsed.values(OperatorKind.PHRASE)
    if phrases:
        quoted = " and ".join(f"“{phrase}”" for phrase in phrases)
        yield Suggestion(
            f"Every result must contain {quoted}.", "Search without quotes", parsed.without_quotes
        )
    for operator in parsed.operators:
        if operator.kind is not OperatorKind.PHRASE:
            yield _without(parsed, operator)


def _without(parsed: ParsedQuery, operator: QueryOperator) -> Suggestion:
    if operator.kind is OperatorKind.EXCLUDED:
        reason = f"Passages with “{operator.value}” are left out."
        return Suggestion(reason, "Search with them", parsed.without(operator))
    reason = f"Only {_describe(operator)} is searched."
    return Suggestion(reason, "Search without this filter", parsed.without(operator))


def _describe(operator: QueryOperator) -> str:
    match operator.kind:
        case OperatorKind.BEFORE:
            return f"what was updated before {operator.value}"
        case OperatorKind.AFTER:
            return f"what was updated in or after {operator.value}"
        case OperatorKind.PERSON:
            return f"what is by {operator.value}"
        case _:
            return f"the {operator.kind} {operator.value}"
