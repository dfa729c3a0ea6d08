"""The `quarry` command. Each command parses, calls one function, and prints.

Exit codes: 0 done; 1 failed, or nothing there that this asker may see; 2 wrong use; 3 done, with
failures named. Imports stand inside the commands, so that `--help` answers at once.
"""

import typer

from backend.cli import audit, credentials, evaluate, maintenance, run, search, sources

app = typer.Typer(
    name="quarry",
    help="Find what a company knows, and answer with citations that can be checked.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    run.demo,
    maintenance.sync,
    maintenance.documents,
    maintenance.failures,
    maintenance.doctor,
    maintenance.reindex,
    maintenance.move,
    search.search,
    search.ask,
    search.show,
    audit.audit,
    run.serve,
    run.worker,
    run.beat,
):
    app.command()(command)
app.add_typer(sources.adding, name="add")
app.add_typer(sources.app, name="sources")
app.add_typer(evaluate.app, name="eval")
app.add_typer(credentials.app, name="credentials")


def main() -> None:
    app()
