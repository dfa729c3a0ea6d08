"""`quarry groups`: groups of people, whose members read what names them."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from backend.access.groups import GroupService, get_group
from backend.access.own_readers import make_group_token
from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text
from backend.store.accounts import group_members
from backend.store.accounts.group_members import Group
from backend.store.accounts.people import Person

app = typer.Typer(
    help="Create groups of people and manage their members.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the group.")]
Email = Annotated[str, typer.Argument(metavar="EMAIL", help="E-mail address of the person.")]


@app.command(name="list")
def list_groups(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="List the people in this group.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the groups with their reader tokens, or the people in one of them."""
    with command_line.cli_errors(as_json):
        database = command_line.open_home().database
        if name is not None:
            group = get_group(database, name)
            _print_members(group_members.list_members(database, group.id), as_json)
        else:
            _print_groups(group_members.list_groups(database), as_json)


@app.command()
def create(name: Name, as_json: Json = False) -> None:
    """Make a group. Its members hold the reader token that is printed."""
    with command_line.cli_errors(as_json):
        _report(_open_service().create(name), as_json)


@app.command()
def rename(
    name: Name,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")],
    as_json: Json = False,
) -> None:
    """Rename a group: its members hold the reader token of the new name instead."""
    with command_line.cli_errors(as_json):
        _report(_open_service().rename(name, new), as_json)


@app.command()
def delete(name: Name, as_json: Json = False) -> None:
    """Delete a group: nobody holds its reader token any more."""
    with command_line.cli_errors(as_json):
        _open_service().delete(name)
        command_line.print_done(name, "is deleted", as_json)


@app.command()
def add(name: Name, email: Email, as_json: Json = False) -> None:
    """Add a person to a group."""
    with command_line.cli_errors(as_json):
        _open_service().add_member(name, email)
        command_line.print_done(name, f"has the member {email}", as_json)


@app.command()
def remove(name: Name, email: Email, as_json: Json = False) -> None:
    """Remove a person from a group."""
    with command_line.cli_errors(as_json):
        _open_service().remove_member(name, email)
        command_line.print_done(name, f"no longer has the member {email}", as_json)


def _open_service() -> GroupService:
    return GroupService(command_line.open_home().database)


def _report(group: Group, as_json: bool) -> None:
    if as_json:
        command_line.print_json(_to_json(group))
    else:
        print(make_group_token(group.name))


def _print_groups(groups: Sequence[Group], as_json: bool) -> None:
    if as_json:
        command_line.print_json(list(map(_to_json, groups)))
    elif groups:
        table = Table("name", "reader token", "members", "of", box=None, header_style="dim")
        for one in groups:
            cells = (one.name, make_group_token(one.name), str(one.members), one.origin)
            table.add_row(*map(to_safe_text, cells))
        command_line.console().print(table)
    else:
        command_line.console().print("No groups yet. To make one: quarry groups create NAME")


def _print_members(members: Sequence[Person], as_json: bool) -> None:
    if as_json:
        command_line.print_json([{"email": one.email, "name": one.name} for one in members])
    else:
        for one in members:
            command_line.console().print(to_safe_text(one.email))


def _to_json(group: Group) -> dict[str, object]:
    return {
        "name": group.name,
        "token": make_group_token(group.name),
        "origin": group.origin,
        "members": group.members,
    }
