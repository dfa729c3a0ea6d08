"""The `quarry` command. Each command parses, calls one function, and prints.

Exit codes: 0 done; 1 failed, or nothing there that this asker may see; 2 wrong use; 3 done, with
failures named. Imports stand inside the commands, so that `--help` answers at once.
"""

import typer

from backend.cli import asking, credentials, evaluating, running, sources, upkeep

app = typer.Typer(
    name="quarry",
    help="Find what a company knows, and answer with citations that can be checked.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    running.demo,
    upkeep.sync,
    upkeep.documents,
    upkeep.failures,
    upkeep.doctor,
    upkeep.reindex,
    upkeep.move,
    asking.search,
    asking.ask,
    asking.show,
    running.serve,
    running.worker,
    running.beat,
):
    app.command()(command)
app.add_typer(sources.adding, name="add")
app.add_typer(sources.app, name="sources")
app.add_typer(evaluating.app, name="eval")
app.add_typer(credentials.app, name="credentials")


def main() -> None:
    app()
