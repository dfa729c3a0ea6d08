"""`quarry explain`: why somebody does not find a document."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli import command_line
from backend.cli.command_line import As, Json, to_safe_text

if TYPE_CHECKING:
    from backend.schemas.explanation import ClauseResponse, ExplanationResponse

MOST_NAMED = 10


def explain(
    document: Annotated[str, typer.Argument(help="The id or the link of the document.")],
    readers: As = None,
    as_json: Json = False,
) -> None:
    """Say why somebody does not find a document: what it requires, and what they hold.

    The audit records it: it tells of documents that you may not read.
    """
    from backend.access import explanation
    from backend.schemas.explanation import ExplanationResponse
    from backend.store.audit import OWNER

    own = command_line.readers(readers)
    with command_line.cli_errors(as_json):
        database = command_line.open_home().database
        found = ExplanationResponse.from_explanation(
            explanation.explain(database, document, own, OWNER)
        )
        if as_json:
            command_line.print_model(found)
        else:
            _print(found)


def _print(found: "ExplanationResponse") -> None:
    console = command_line.console()
    console.print(to_safe_text(found.title or found.document_id, "bold"))
    console.print(to_safe_text(found.sentence), soft_wrap=True)
    for line in _list_facts(found):
        console.print(to_safe_text(line), soft_wrap=True)


def _list_facts(found: "ExplanationResponse") -> Iterator[str]:
    yield from found.accounts
    if found.failure:
        yield f"Its newest version could not be read: {found.failure}"
    for number, clause in enumerate(found.clauses, start=1):
        of = f" {number} of {len(found.clauses)}" if found.clauses[1:] else ""
        yield f"Condition{of}: {_name_some(clause.needed, found)}"
        yield from (f"  {line}" for line in _list_held(clause, found))
    yield f"Indexed: {_format(found.indexed_at)}"
    yield f"Permissions last compared with the source: {_format(found.compared_at)}"
    if found.groups_listed_at:
        yield f"Members of groups last listed: {_format(found.groups_listed_at)}"


def _list_held(clause: "ClauseResponse", found: "ExplanationResponse") -> Iterator[str]:
    if not clause.held:
        yield "not met"
    for each in clause.held[:MOST_NAMED]:
        word = "pending" if each.is_pending else "met"
        path = " → ".join(_name(token, found) for token in each.path)
        yield f"{word} by {path}{f', since {_format(each.since)}' if each.since else ''}"


def _name_some(tokens: tuple[str, ...], found: "ExplanationResponse") -> str:
    named = " or ".join(_name(token, found) for token in tokens[:MOST_NAMED])
    further = len(tokens) - MOST_NAMED
    return f"{named} or {further} more" if further > 0 else named


def _name(token: str, found: "ExplanationResponse") -> str:
    name, source = found.names.get(token), found.source_accounts.get(token)
    if source is not None:
        return f"the source account {name} of {source} ({token})"
    return f"{name} ({token})" if name else token


def _format(moment: datetime | None) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}" if moment else "never"
