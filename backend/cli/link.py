"""`quarry link`: a link that lets a browser in to `quarry serve`."""

from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli import command_line

if TYPE_CHECKING:
    from backend.access.machine_secret import MachineSecret


def make_link(url: str, secret: "MachineSecret") -> str:
    """Return a link to the server at `url`."""
    return f"{url}/link?code={secret.make_link_code()}"


def link(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port of quarry serve.")] = 8321,
    host: Annotated[str, typer.Option(help="The address of quarry serve.")] = "127.0.0.1",
) -> None:
    """Print a link that lets a browser in to quarry serve."""
    from backend.store.accounts.people import has_people
    from connectors.errors import ConflictError

    with command_line.cli_errors(as_json=False):
        container = command_line.open_home()
        if not container.sign_in.machine_secret_file.exists():
            raise ConflictError(
                f"No quarry serve has run with the home {container.home} yet. Start it; it prints a link."
            )
        if container.settings.public_url or has_people(container.database):
            raise ConflictError(
                "People sign in to this Quarry: open it in a browser. A link of the machine lets nobody in."
            )
        address = f"[{host}]" if ":" in host else host
        print(make_link(f"http://{address}:{port}", container.sign_in.machine_secret))
