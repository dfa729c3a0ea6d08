"""`quarry eval`: the search on questions with known answers."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from backend.cli import frame
from backend.cli.frame import Json

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
    from backend.commands.evaluating import evaluate, table

    with frame.told(as_json):
        report = evaluate(frame.open_home(), dataset, limit, frame.console(sys.stderr))
        if as_json:
            frame.print_json(report.as_json())
        else:
            table(frame.console(), report)
