"""`quarry eval`: the search on questions with known answers."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from backend.cli import command_line
from backend.cli.command_line import Json
from backend.composition.index import IndexEngine
from backend.evaluation import corpus
from backend.evaluation.evaluation import EvaluationReport, run_evaluation


def evaluate(
    engine: IndexEngine, dataset: Path, limit: int | None, console: Console
) -> EvaluationReport:
    """Score a dataset, with bars on the console.

    Raises:
        MalformedDatasetError: it is not in the layout of BEIR; the message names file and line.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        tasks = {
            stage: bars.add_task(stage, total=None, visible=False)
            for stage in ("documents", "queries")
        }

        def tell(progress: corpus.Progress) -> None:
            task = tasks.setdefault(progress.stage, bars.add_task(progress.stage, total=None))
            bars.update(task, completed=progress.done, total=progress.total, visible=True)

        return run_evaluation(dataset, engine.evaluation_parts(), limit, tell)


def print_report(console: Console, report: EvaluationReport) -> None:
    measures = list(next(iter(report.legs.values())))
    shown = Table(report.dataset, *measures, box=None, header_style="dim")
    for leg, figures in report.legs.items():
        shown.add_row(leg, *(f"{figures[measure]:.4f}" for measure in measures))
    console.print(shown)
    spent = ", ".join(f"{name} {value:.1f} s" for name, value in report.seconds.items())
    console.print(f"[dim]{report.documents} documents, {report.queries} queries; {spent}[/dim]")


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
    with command_line.cli_errors(as_json):
        report = evaluate(
            command_line.open_home().engine, dataset, limit, command_line.console(sys.stderr)
        )
        if as_json:
            command_line.print_json(report.as_json())
        else:
            print_report(command_line.console(), report)
