"""`quarry audit`: who did what to which source or API token, when, and with what outcome."""

from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli import command_line
from backend.cli.command_line import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from backend.schemas.source import AuditEntryResponse


def audit(
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only actions on this source.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Number of actions to show.")] = 50,
    as_json: Json = False,
) -> None:
    """List the actions on sources and API tokens: who did what, when, and with what outcome."""
    from backend.schemas.base import dump_all
    from backend.sources.service import SourceService

    with command_line.cli_errors(as_json):
        service = SourceService.of(command_line.open_home())
        entries = service.list_audit(source=source, limit=limit)
        if as_json:
            command_line.print_json(dump_all(entries))
        elif entries:
            command_line.console().print(_table(entries))
        else:
            command_line.console().print("No actions yet.")


def _table(entries: "Sequence[AuditEntryResponse]") -> "Table":
    from rich.table import Table

    from backend.cli.command_line import to_safe_text
    from backend.sources.status_text import format_details

    table = Table("time", "actor", "action", box=None, header_style="dim")
    table.add_column("subject", overflow="fold")
    table.add_column("outcome")
    table.add_column("details", overflow="fold")
    for one in entries:
        time = f"{one.at.astimezone():%Y-%m-%d %H:%M:%S}"
        cells = map(to_safe_text, (one.actor, one.action, one.subject, one.outcome))
        table.add_row(time, *cells, to_safe_text(format_details(one.detail), "dim"))
    return table
