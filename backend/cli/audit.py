"""`quarry audit`: who did what, from where, when, and with what outcome."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from backend.cli import command_line
from backend.cli.command_line import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from backend.schemas.source import AuditEntryResponse


Since = Annotated[
    str | None, typer.Option(metavar="DAY", help="Only from this day on, such as 2026-03-01.")
]
Until = Annotated[str | None, typer.Option(metavar="DAY", help="Only to this day, included.")]


def audit(
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only actions on this source.")
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(metavar="SUBJECT", help="Only on this, such as user:ann@example.com."),
    ] = None,
    actor: Annotated[
        str | None,
        typer.Option(metavar="ACTOR", help="Only by this actor, such as user:ann@example.com."),
    ] = None,
    action: Annotated[
        str | None, typer.Option(metavar="ACTION", help="Only this action, such as sign_in.")
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Number of actions to show.")] = 50,
    export: Annotated[
        Literal["csv", "jsonl"] | None,
        typer.Option(help="Print all of them as a file of this format, whatever their number."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List what was done to sources, people, groups and API tokens: by whom, when, and with what outcome."""
    from backend.schemas.base import dump_all
    from backend.sources.audit_export import export_audit
    from backend.sources.service import SourceService
    from backend.store.audit import EVERY_ENTRY, AuditFilter

    with command_line.cli_errors(as_json):
        which = AuditFilter(
            subject=source if subject is None else subject,
            actor=actor,
            action=action,
            since=command_line.parse_moment(since, "--since"),
            until=command_line.parse_end(until, "--until"),
        )
        service = SourceService.of(command_line.open_home().sources)
        if export is not None:
            command_line.print_lines(export_audit(service.iterate_audit(which), export))
            return
        entries = service.list_audit(which, limit=limit)
        if as_json:
            command_line.print_json(dump_all(entries))
        elif entries:
            command_line.console().print(_table(entries))
        else:
            command_line.console().print(
                "No actions yet." if which == EVERY_ENTRY else "No such actions."
            )


def _table(entries: "Sequence[AuditEntryResponse]") -> "Table":
    from rich.table import Table

    from backend.cli.command_line import to_safe_text
    from backend.sources.status_text import format_details

    table = Table("time", "actor", "from", "action", box=None, header_style="dim")
    table.add_column("subject", overflow="fold")
    table.add_column("outcome")
    table.add_column("details", overflow="fold")
    for one in entries:
        time = f"{one.at.astimezone():%Y-%m-%d %H:%M:%S}"
        cells = map(
            to_safe_text, (one.actor, one.address or "", one.action, one.subject, one.outcome)
        )
        table.add_row(time, *cells, to_safe_text(format_details(one.detail), "dim"))
    return table
