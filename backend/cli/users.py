"""`quarry users`: the people who may sign in."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from backend.access.password_reset import PasswordResetService
from backend.access.people import PeopleService
from backend.access.roles import Role
from backend.cli import command_line, source_accounts
from backend.cli.command_line import Json, to_safe_text
from backend.cli.listening import find_public_address
from backend.conversations.project_handover import ProjectHandover
from backend.settings import Settings
from backend.store.accounts.invitations import Invitation
from backend.store.accounts.people import Person
from backend.web import urls

app = typer.Typer(
    help="Invite people, and change, disable or verify their accounts.",
    no_args_is_help=True,
)
app.add_typer(source_accounts.app, name="accounts")

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="E-mail address of the person.")]


Port = Annotated[
    int,
    typer.Option(
        min=1, max=65535, help="The port of quarry serve, where QUARRY_PUBLIC_URL is not set."
    ),
]
Host = Annotated[
    str, typer.Option(help="The address of quarry serve, where QUARRY_PUBLIC_URL is not set.")
]


@app.command()
def invite(
    email: Email,
    role: Annotated[Role, typer.Option(help="What the person may do.")] = Role.MEMBER,
    port: Port = 8321,
    host: Host = "127.0.0.1",
    as_json: Json = False,
) -> None:
    """Print a link by which a person makes their account, once and within a week. It is not shown again."""
    with command_line.cli_errors(as_json):
        container = command_line.open_home()
        code = PeopleService(container.database).invite(email, role)
        link = urls.make_link(_find_server(container.settings, host, port), "/invitation", code)
        if as_json:
            command_line.print_json({"email": email, "role": role, "link": link})
        else:
            print(link)


@app.command()
def withdraw(email: Email, as_json: Json = False) -> None:
    """Withdraw an invitation that nobody has accepted yet: its link is not valid any more."""
    with command_line.cli_errors(as_json):
        _open_service().withdraw_invitation(email)
        _report(email, "is no longer invited", as_json)


@app.command()
def reset_password(
    email: Email, port: Port = 8321, host: Host = "127.0.0.1", as_json: Json = False
) -> None:
    """Print a link by which a person chooses another password, once and within a day. It is not shown again."""
    with command_line.cli_errors(as_json):
        container = command_line.open_home()
        code = PasswordResetService(container.database).begin(email)
        link = urls.make_link(_find_server(container.settings, host, port), "/password-reset", code)
        if as_json:
            command_line.print_json({"email": email, "link": link})
        else:
            print(link)


@app.command(name="list")
def list_people(as_json: Json = False) -> None:
    """List the people who have an account, and the invitations that nobody has accepted yet."""
    with command_line.cli_errors(as_json):
        service = _open_service()
        people, invitations = service.list_people(), service.list_invitations()
        if as_json:
            command_line.print_json(
                [*map(_person_to_json, people), *map(_invitation_to_json, invitations)]
            )
        elif people or invitations:
            command_line.console().print(_table(people, invitations))
        else:
            command_line.console().print(
                "No accounts yet. To make the first one: quarry users invite EMAIL --role admin"
            )


@app.command()
def disable(email: Email, as_json: Json = False) -> None:
    """Disable an account: its sessions and API tokens end, and nobody can sign in to it."""
    with command_line.cli_errors(as_json):
        _open_service().disable(email)
        _report(email, "is disabled", as_json)


@app.command()
def enable(email: Email, as_json: Json = False) -> None:
    """Enable a disabled account again."""
    with command_line.cli_errors(as_json):
        _open_service().enable(email)
        _report(email, "is enabled", as_json)


@app.command()
def role(
    email: Email,
    new: Annotated[Role, typer.Argument(metavar="ROLE", help=f"One of: {', '.join(Role)}.")],
    as_json: Json = False,
) -> None:
    """Change what a person may do."""
    with command_line.cli_errors(as_json):
        _open_service().set_role(email, new)
        _report(email, f"has the role {new}", as_json)


@app.command()
def verify(email: Email, as_json: Json = False) -> None:
    """Mark a person's address as verified; they can then read what names it."""
    with command_line.cli_errors(as_json):
        _open_service().verify(email)
        _report(email, "is verified", as_json)


@app.command()
def end_sessions(email: Email, as_json: Json = False) -> None:
    """End all sessions of a person, who has to sign in again."""
    with command_line.cli_errors(as_json):
        _open_service().end_sessions(email)
        _report(email, "is signed out everywhere", as_json)


@app.command()
def change_address(
    email: Email,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new address.")],
    as_json: Json = False,
) -> None:
    """Give a person another address, which then is to be verified (quarry users verify)."""
    with command_line.cli_errors(as_json):
        changed = _open_service().change_email(email, new)
        _report(email, f"is {changed.email} from now on", as_json)


@app.command()
def release_address(email: Email, as_json: Json = False) -> None:
    """Allow a former address to be assigned to another person, who then reads what names it."""
    with command_line.cli_errors(as_json):
        _open_service().release_email(email)
        _report(email, "may be given to somebody else", as_json)


@app.command()
def projects(email: Email, as_json: Json = False) -> None:
    """List the projects that a person owns, by their ids, with who is in each."""
    with command_line.cli_errors(as_json):
        owned = ProjectHandover(command_line.open_home().database).list_owned(email)
        if as_json:
            command_line.print_json([{"id": one.id, "members": one.members} for one in owned])
        elif owned:
            table = Table("project", "members", box=None, header_style="dim")
            for one in owned:
                table.add_row(one.id, to_safe_text(", ".join(one.members)))
            command_line.console().print(table)
        else:
            command_line.console().print(f"{email} owns no project.", markup=False)


@app.command()
def hand_over_project(
    project: Annotated[
        str, typer.Argument(metavar="PROJECT", help="The id of the project, as in its address.")
    ],
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="Who looks after it from now on.")],
    as_json: Json = False,
) -> None:
    """Make a member the owner of a project whose owner's account is disabled."""
    with command_line.cli_errors(as_json):
        ProjectHandover(command_line.open_home().database).hand_over(project, email)
        _report(email, "owns the project from now on", as_json)


def _find_server(settings: Settings, host: str, port: int) -> str:
    """Return the address of the server, of which there is none to ask."""
    address, name = find_public_address(settings), f"[{host}]" if ":" in host else host
    return address.url if address else f"http://{name}:{port}"


def _open_service() -> PeopleService:
    return PeopleService(command_line.open_home().database)


def _report(email: str, what: str, as_json: bool) -> None:
    if as_json:
        command_line.print_json({"email": email, "done": what})
    else:
        command_line.console().print(f"{email} {what}.", markup=False)


def _person_to_json(person: Person) -> dict[str, object]:
    return {
        "email": person.email,
        "name": person.name,
        "role": person.role,
        "state": _describe_state(person),
        "created_at": person.created_at.isoformat(),
    }


def _name_invited(invitation: Invitation) -> str:
    return invitation.email or "first account"


def _invitation_to_json(invitation: Invitation) -> dict[str, object]:
    return {
        "email": _name_invited(invitation),
        "name": None,
        "role": invitation.role,
        "state": "invited",
        "created_at": invitation.created_at.isoformat(),
    }


def _describe_state(person: Person) -> str:
    if person.disabled_at is not None:
        return "disabled"
    return "active" if person.verified else "unverified"


def _table(people: Sequence[Person], invitations: Sequence[Invitation]) -> Table:
    table = Table("address", "name", "role", "state", box=None, header_style="dim")
    for one in people:
        table.add_row(*map(to_safe_text, (one.email, one.name, one.role, _describe_state(one))))
    for each in invitations:
        end = f"invited, until {each.expires_at.astimezone():%Y-%m-%d %H:%M}"
        table.add_row(*map(to_safe_text, (_name_invited(each), "", each.role, end)))
    return table
