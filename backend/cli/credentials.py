"""`quarry credentials`: the keys that the credentials of sources are sealed with."""

import sys

import typer

from backend.cli import command_context
from backend.cli.command_context import Json

app = typer.Typer(
    help="The keys that the credentials of sources are sealed with.", no_args_is_help=True
)


@app.command()
def rotate(as_json: Json = False) -> None:
    """Seal all credentials anew under the newest key. It may be repeated.

    First put a new key before the others, with a comma between them, for every process that works on this home,
    and start these again; after this command the older keys can be taken away.
    """
    from backend.cli.credential_actions import rotate

    with command_context.told(as_json):
        done = rotate(command_context.open_home())
        if as_json:
            command_context.print_wire(done)
        else:
            many = "1 credential is" if done.resealed == 1 else f"{done.resealed} credentials are"
            command_context.console().print(f"{many} sealed under the newest key now.")


@app.command()
def key() -> None:
    """Print a new key: for QUARRY_CREDENTIAL_KEYS, or for credentials.key in the home."""
    from backend.store.credential_vault import new_key

    sys.stdout.write(f"{new_key()}\n")
