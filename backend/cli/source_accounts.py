"""`quarry users accounts`: which accounts of sources are whose."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from backend.access.source_accounts import SourceAccountService
from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text
from backend.schemas.base import dump_all
from backend.schemas.source_account import ListedAccountResponse, SourceAccountResponse
from backend.store.sync.source_accounts import ListedAccount, SourceAccount

app = typer.Typer(
    help="Map accounts at sources to people, who can then read what those accounts may read.",
    no_args_is_help=True,
)

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="E-mail address of the person.")]
Source = Annotated[str, typer.Argument(metavar="SOURCE", help="Name of the source.")]
AccountId = Annotated[str, typer.Argument(metavar="ID", help="As quarry users accounts list says.")]


@app.command(name="list")
def list_accounts(as_json: Json = False) -> None:
    """List the accounts that are mapped to people, and those that people ask for."""
    with command_line.cli_errors(as_json):
        found = sorted(_open_service().list_accounts(), key=_rank)
        if as_json:
            command_line.print_json(dump_all(map(SourceAccountResponse.from_account, found)))
        elif found:
            command_line.console().print(_make_table(found))
        else:
            command_line.console().print("No account of a source is mapped or asked for.")


@app.command()
def find(
    source: Source,
    begin: Annotated[
        str, typer.Argument(metavar="[BEGIN]", help="Only ids or names that begin with this.")
    ] = "",
    as_json: Json = False,
) -> None:
    """List accounts of a source that belong to nobody yet, the first 20."""
    with command_line.cli_errors(as_json):
        found = _open_service().list_candidates(source, begin)
        if as_json:
            command_line.print_json(dump_all(map(ListedAccountResponse.from_listed, found)))
        elif found:
            command_line.console().print(_make_table_of_listed(found))
        else:
            command_line.console().print("No such account. Permission syncs list them.")


@app.command(name="map")
def map_account(
    email: Email,
    source: Source,
    account: Annotated[
        str, typer.Argument(metavar="ACCOUNT", help="Its id at the source, such as a login.")
    ],
    as_json: Json = False,
) -> None:
    """Give an account of a source to a person, who reads what it may read."""
    with command_line.cli_errors(as_json):
        _report_mapped(_open_service().map(email, source, account), as_json)


@app.command()
def approve(account_id: AccountId, as_json: Json = False) -> None:
    """Give a person the account that they ask for."""
    with command_line.cli_errors(as_json):
        _report_mapped(_open_service().approve(account_id), as_json)


@app.command()
def withdraw(account_id: AccountId, as_json: Json = False) -> None:
    """Take an account from a person, or decline what they ask for."""
    with command_line.cli_errors(as_json):
        _open_service().withdraw(account_id)
        if as_json:
            command_line.print_json({"id": account_id, "done": "is withdrawn"})
        else:
            command_line.console().print(f"{account_id} is withdrawn.", markup=False)


def _open_service() -> SourceAccountService:
    return SourceAccountService(command_line.open_home().database)


def _rank(account: SourceAccount) -> tuple[bool, str, str]:
    """Order what waits for an answer first."""
    return account.state == "mapped", account.email, account.source


def _report_mapped(mapped: SourceAccount, as_json: bool) -> None:
    if as_json:
        command_line.print_model(SourceAccountResponse.from_account(mapped))
    else:
        done = f"The account {mapped.describe()} is mapped to {mapped.email}."
        command_line.console().print(done, markup=False)


def _make_table(found: Sequence[SourceAccount]) -> Table:
    table = Table("id", "person", "source", "account", "state", box=None, header_style="dim")
    for one in found:
        table.add_row(*map(to_safe_text, (one.id, one.email, one.source, one.account, one.state)))
    return table


def _make_table_of_listed(found: Sequence[ListedAccount]) -> Table:
    table = Table("account", "name", box=None, header_style="dim")
    for one in found:
        table.add_row(*map(to_safe_text, (one.account, one.name)))
    return table
