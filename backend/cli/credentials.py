"""`quarry credentials`: the keys that encrypt the credentials of sources."""

import sys

import typer

from backend.cli import command_line
from backend.cli.command_line import Json
from backend.store import audit, web_search
from backend.store.database import Database
from backend.store.llm import language_models
from backend.store.sync import sources
from backend.store.sync.credential_vault import Vault, new_key
from indexing.text.normalization import pluralize

app = typer.Typer(
    help="Manage the keys that encrypt the credentials of sources and of web search, and the keys of language models.",
    no_args_is_help=True,
)


@app.command()
def rotate(as_json: Json = False) -> None:
    """Encrypt all credentials with the newest key. Safe to repeat.

    First put a new key before the others, separated by a comma, in the settings of every process that uses
    this home, and restart these. After this command the older keys can be removed.
    """
    with command_line.cli_errors(as_json):
        container = command_line.open_home()
        count = rotate_key(container.database, container.vault)
        if as_json:
            command_line.print_json({"resealed": count})
        else:
            command_line.console().print(
                f"Encrypted {pluralize(count, 'credential')} with the newest key."
            )


@app.command()
def key() -> None:
    """Print a new key: for QUARRY_CREDENTIAL_KEYS, or for credentials.key in the home."""
    sys.stdout.write(f"{new_key()}\n")


def rotate_key(database: Database, vault: Vault) -> int:
    """Encrypt every credential and every key of a model with the newest key, and return how many.

    Raises:
        ActionRequiredError: no key decrypts one of them; then none is changed.
    """
    rotate = vault.rotate
    with database.transaction() as transaction:
        credentials = sources.reencrypt_credentials(transaction, rotate)
        keys = language_models.reencrypt_keys(transaction, rotate)
        count = credentials + keys + web_search.reencrypt_credentials(transaction, rotate)
        audit.record(transaction, "rotate_key", "credentials:all", {"resealed": count})
        return count
