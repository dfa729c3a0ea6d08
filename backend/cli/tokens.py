"""`quarry tokens`: what programs prove themselves with to `quarry serve`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.table import Table

from backend.access.api_tokens import LONGEST_LIFETIME, ApiTokenService, TokenScope
from backend.access.people import normalize_email
from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text
from backend.store.accounts.api_tokens import ApiToken
from backend.store.accounts.people import get_by_email, list_people

app = typer.Typer(
    help="Create, list and revoke the API tokens that programs send to quarry serve.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the token.")]
Owner = Annotated[
    str | None,
    typer.Option(
        "--person",
        metavar="EMAIL",
        help="The person whose rights it has. Default: a service token, which belongs to nobody.",
    ),
]


@app.command()
def create(
    name: Name,
    scope: Annotated[list[TokenScope], typer.Option(help="What it may do. May be repeated.")],
    days: Annotated[
        int, typer.Option(min=1, max=LONGEST_LIFETIME.days, help="Days until it expires.")
    ] = 90,
    person: Owner = None,
    as_json: Json = False,
) -> None:
    """Create a token and print it. It is not shown again: only a hash of it is stored."""
    with command_line.cli_errors(as_json):
        token = _open_service(person).create(name, scope, timedelta(days=days))
        if as_json:
            command_line.print_json({"name": name, "token": token})
        else:
            print(token)


@app.command(name="list")
def list_tokens(as_json: Json = False) -> None:
    """List the tokens: their scopes, their ends, and when each was last used."""
    with command_line.cli_errors(as_json):
        service = _open_service(None)
        tokens = service.list_tokens()
        owners = {person.id: person.email for person in list_people(service.database)}
        if as_json:
            command_line.print_json([_to_json(token, owners) for token in tokens])
        elif tokens:
            command_line.console().print(_table(tokens, owners))
        else:
            command_line.console().print("No API tokens yet.")


@app.command()
def revoke(name: Name, person: Owner = None, as_json: Json = False) -> None:
    """Revoke a token: no request that begins later is answered to it."""
    with command_line.cli_errors(as_json):
        _open_service(person).revoke(name)
        if as_json:
            command_line.print_json({"revoked": name})
        else:
            command_line.console().print(f"{name} is revoked.", markup=False)


def _open_service(person: str | None) -> ApiTokenService:
    database = command_line.open_home().database
    owner = get_by_email(database, normalize_email(person)) if person else None
    return ApiTokenService(database, owner=owner)


def _to_json(token: ApiToken, owners: Mapping[int, str]) -> dict[str, object]:
    return {
        "name": token.name,
        "person": _find_owner(token, owners),
        "scopes": list(token.scopes),
        "created_at": token.created_at.isoformat(),
        "expires_at": token.expires_at.isoformat(),
        "last_used_at": token.last_used_at and token.last_used_at.isoformat(),
    }


def _find_owner(token: ApiToken, owners: Mapping[int, str]) -> str | None:
    return None if token.person_id is None else owners[token.person_id]


def _table(tokens: Sequence[ApiToken], owners: Mapping[int, str]) -> Table:
    table = Table("name", "person", "scopes", "expires", "last used", box=None, header_style="dim")
    now = datetime.now(UTC)
    for token in tokens:
        end = f"{token.expires_at.astimezone():%Y-%m-%d}"
        table.add_row(
            to_safe_text(token.name),
            to_safe_text(_find_owner(token, owners) or ""),
            ", ".join(token.scopes),
            end if now < token.expires_at else f"{end} (expired)",
            f"{token.last_used_at.astimezone():%Y-%m-%d %H:%M}" if token.last_used_at else "never",
        )
    return table
