"""`quarry eval`: the search on questions with known answers."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from backend.cli import command_context
from backend.cli.command_context import Json

app = typer.Typer(help="Score the search on questions with known answers.", no_args_is_help=True)


@app.command()
def run(
    dataset: Annotated[
        Path, typer.Argument(help="A folder with corpus.jsonl[.gz], queries.jsonl, qrels/test.tsv.")
    ],
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N queries.")] = None,
    as_json: Json = False,
) -> None:
    """Score keyword, vector, hybrid and the whole search on a judged set."""
    from backend.cli.evaluating import evaluate, table

    with command_context.told(as_json):
        report = evaluate(
            command_context.open_home(), dataset, limit, command_context.console(sys.stderr)
        )
        if as_json:
            command_context.print_json(report.as_json())
        else:
            table(command_context.console(), report)
