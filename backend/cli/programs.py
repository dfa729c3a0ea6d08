"""`quarry programs`: the programs that people connected to their accounts, by OAuth."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer
from rich.table import Table

from backend.access.oauth.clients import ClientService
from backend.access.oauth.grants import disconnect as end_grant
from backend.access.oauth.grants import list_programs as list_connected
from backend.access.oauth.redirect_uris import describe_host
from backend.access.people import normalize_email
from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text
from backend.store.accounts.oauth_clients import UsedClient
from backend.store.accounts.oauth_grants import ConnectedProgram
from backend.store.accounts.people import get_by_email
from backend.store.audit import OWNER

app = typer.Typer(
    help="List, disconnect and delete the programs that people connected to their accounts.",
    no_args_is_help=True,
)

PersonOption = typer.Option("--person", metavar="EMAIL", help="Who connected it.")


@app.command(name="list")
def list_programs(
    person: Annotated[str | None, PersonOption] = None, as_json: Json = False
) -> None:
    """List the programs that have registered, or what a person has connected."""
    with command_line.cli_errors(as_json):
        database = command_line.open_home().database
        if person is None:
            _show_clients(ClientService(database, OWNER).list_clients(), as_json)
        else:
            owner = get_by_email(database, normalize_email(person))
            _show_connected(list_connected(database, owner), as_json)


@app.command()
def disconnect(
    number: Annotated[
        int, typer.Argument(metavar="NUMBER", help="The id shown by quarry programs list --person.")
    ],
    person: Annotated[str, PersonOption],
    as_json: Json = False,
) -> None:
    """Disconnect a program from an account: no request that begins later is answered to it."""
    with command_line.cli_errors(as_json):
        database = command_line.open_home().database
        end_grant(database, get_by_email(database, normalize_email(person)), number, OWNER)
        _say_done({"disconnected": number}, f"{number} is disconnected.", as_json)


@app.command()
def delete(
    client_id: Annotated[str, typer.Argument(metavar="CLIENT", help="The id of the program.")],
    as_json: Json = False,
) -> None:
    """Delete a program, which disconnects it from all accounts. It may register again."""
    with command_line.cli_errors(as_json):
        ClientService(command_line.open_home().database, OWNER).delete(client_id)
        _say_done({"deleted": client_id}, f"{client_id} is deleted.", as_json)


def _say_done(values: dict[str, object], sentence: str, as_json: bool) -> None:
    if as_json:
        command_line.print_json(values)
    else:
        command_line.console().print(sentence, markup=False)


def _show_clients(clients: Sequence[UsedClient], as_json: bool) -> None:
    if as_json:
        command_line.print_json([_client_to_json(one) for one in clients])
        return
    if not clients:
        command_line.console().print("No program has registered.")
        return
    table = Table("id", "name", "hosts", "accounts", "registered", box=None, header_style="dim")
    for one in clients:
        client = one.client
        hosts = ", ".join(sorted(set(map(describe_host, client.redirect_uris))))
        name = to_safe_text(client.name)
        table.add_row(client.id, name, hosts, str(one.grants), _day(client.created_at))
    command_line.console().print(table)


def _show_connected(programs: Sequence[ConnectedProgram], as_json: bool) -> None:
    if as_json:
        command_line.print_json([_program_to_json(one) for one in programs])
        return
    if not programs:
        command_line.console().print("No program is connected.")
        return
    table = Table(
        "number", "name", "scopes", "connected", "last used", box=None, header_style="dim"
    )
    for one in programs:
        grant, used = one.grant, one.grant.last_used_at
        last = _day(used) if used else "never"
        scopes = ", ".join(grant.scopes)
        table.add_row(str(grant.id), to_safe_text(one.name), scopes, _day(grant.created_at), last)
    command_line.console().print(table)


def _day(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d}"


def _client_to_json(used: UsedClient) -> dict[str, object]:
    client = used.client
    return {
        "id": client.id,
        "name": client.name,
        "redirect_uris": list(client.redirect_uris),
        "scopes": list(client.scopes),
        "grants": used.grants,
        "created_at": client.created_at.isoformat(),
        "connected_at": client.connected_at and client.connected_at.isoformat(),
    }


def _program_to_json(program: ConnectedProgram) -> dict[str, object]:
    grant = program.grant
    return {
        "number": grant.id,
        "name": program.name,
        "client": grant.client_id,
        "resource": grant.resource,
        "scopes": list(grant.scopes),
        "connected_at": grant.created_at.isoformat(),
        "last_used_at": grant.last_used_at and grant.last_used_at.isoformat(),
    }
