"""`quarry models`: the language models that write answers, and what they were used for."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.table import Table

from backend.chat.llm.model_check import CHECK_SECONDS, check_model
from backend.chat.llm.stored_models import SMALLEST_WINDOW, ModelChange
from backend.cli import command_line, token_budgets
from backend.cli.command_line import Json, to_safe_text
from backend.cli.source_input import read_secret, read_variable
from backend.schemas.base import dump_all
from backend.schemas.language_model import (
    ModelCheckResponse,
    ModelResponse,
    ModelUsageResponse,
    list_models,
    price_usage,
)
from backend.store.audit import OWNER
from backend.store.llm import language_models, model_usage
from backend.store.llm.language_models import ModelRole, ModelValues
from indexing.runtime.deadline import Deadline

app = typer.Typer(
    help="Set the language models that write answers, and see what they were used for.",
    no_args_is_help=True,
)
app.add_typer(token_budgets.app)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the model.")]
_KEY_FILE = "--key-file"
KeyFile = Annotated[
    str | None,
    typer.Option(
        _KEY_FILE,
        metavar="FILE",
        help="Read its key from this file; - prompts for it, or reads it from a pipe.",
    ),
]
KeyVariable = Annotated[
    str | None,
    typer.Option(metavar="VARIABLE", help="Read its key from this environment variable."),
]
_TRIED = {True: "yes", False: "no", None: "could not be tried"}
_PRICE_HELP = "Price of a million tokens that it {}, in whatever currency."


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that people see.")],
    url: Annotated[
        str, typer.Option(help="An OpenAI-compatible endpoint; it usually ends in /v1.")
    ],
    model: Annotated[str, typer.Option(metavar="ID", help="What the endpoint calls the model.")],
    key_file: KeyFile = None,
    key_env: KeyVariable = None,
    window: Annotated[
        int, typer.Option(min=SMALLEST_WINDOW, help="Its context window, in tokens.")
    ] = 32_000,
    sees: Annotated[bool, typer.Option("--sees", help="Whether it accepts images.")] = False,
    tools: Annotated[
        bool, typer.Option("--tools/--no-tools", help="Whether it calls tools.")
    ] = True,
    reasons: Annotated[
        bool, typer.Option("--reasons", help="Whether it reasons, silently, before it answers.")
    ] = False,
    input_price: Annotated[
        float | None, typer.Option(min=0, help=_PRICE_HELP.format("reads"))
    ] = None,
    output_price: Annotated[
        float | None, typer.Option(min=0, help=_PRICE_HELP.format("writes"))
    ] = None,
    default: Annotated[bool, typer.Option("--default", help="Use it for answers.")] = False,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast", help="Use it for search queries, selecting passages and checking claims."
        ),
    ] = False,
    fallback: Annotated[
        bool, typer.Option("--fallback", help="Use it where the default does not answer.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add a model. Its key is encrypted and never shown again."""
    values = ModelValues(
        name=name,
        base_url=url,
        model=model,
        context_window=window,
        sees_pictures=sees,
        calls_tools=tools,
        reasons=reasons,
        input_price=input_price,
        output_price=output_price,
    )
    chosen = zip(ModelRole, (default, fast, fallback), strict=True)
    roles = frozenset(role for role, is_chosen in chosen if is_chosen)
    key = _read_key(key_file, key_env)
    with command_line.cli_errors(as_json):
        command_line.open_home().model_service(OWNER).add(values, key, roles)
        command_line.print_done(name, "is added", as_json)
        if not roles and not as_json:
            command_line.console().print(
                to_safe_text(f"To have it write the answers: quarry models use {name} --as default")
            )


@app.command()
def edit(
    name: Name,
    new_name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="A new name that people see.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="An OpenAI-compatible endpoint. One on another server needs the key to be given again."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="ID", help="What the endpoint calls the model.")
    ] = None,
    key_file: KeyFile = None,
    key_env: KeyVariable = None,
    window: Annotated[
        int | None, typer.Option(min=SMALLEST_WINDOW, help="Its context window, in tokens.")
    ] = None,
    sees: Annotated[
        bool | None, typer.Option("--sees/--no-sees", help="Whether it accepts images.")
    ] = None,
    tools: Annotated[
        bool | None, typer.Option("--tools/--no-tools", help="Whether it calls tools.")
    ] = None,
    reasons: Annotated[
        bool | None,
        typer.Option("--reasons/--no-reasons", help="Whether it reasons before it answers."),
    ] = None,
    input_price: Annotated[
        float | None, typer.Option(min=0, help=_PRICE_HELP.format("reads"))
    ] = None,
    output_price: Annotated[
        float | None, typer.Option(min=0, help=_PRICE_HELP.format("writes"))
    ] = None,
    default: Annotated[
        bool | None, typer.Option("--default/--no-default", help="Whether it writes the answers.")
    ] = None,
    fast: Annotated[
        bool | None,
        typer.Option(
            "--fast/--no-fast",
            help="Whether it writes search queries, selects passages and checks claims.",
        ),
    ] = None,
    fallback: Annotated[
        bool | None,
        typer.Option(
            "--fallback/--no-fallback", help="Whether it answers where the default does not."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Change a model. What is not named stays as it is."""
    given = {
        "name": new_name,
        "base_url": url,
        "model": model,
        "context_window": window,
        "sees_pictures": sees,
        "calls_tools": tools,
        "reasons": reasons,
        "input_price": input_price,
        "output_price": output_price,
    }
    values = {field: value for field, value in given.items() if value is not None}
    wanted = dict(zip(ModelRole, (default, fast, fallback), strict=True))
    key = _read_key(key_file, key_env)
    with command_line.cli_errors(as_json):
        container = command_line.open_home()
        roles = _change_roles(language_models.find(container.database, name).roles, wanted)
        change = ModelChange(values=values, key=key, roles=roles)
        container.model_service(OWNER).change(name, change)
        command_line.print_done(name, "is changed", as_json)


def _change_roles(
    roles: frozenset[ModelRole], wanted: Mapping[ModelRole, bool | None]
) -> frozenset[ModelRole]:
    given = {role for role, is_wanted in wanted.items() if is_wanted}
    taken = {role for role, is_wanted in wanted.items() if is_wanted is False}
    return (roles | given) - taken


@app.command(name="list")
def list_all(as_json: Json = False) -> None:
    """List the models, and what each is used for."""
    with command_line.cli_errors(as_json):
        found = list_models(command_line.open_home().language_models)
        if as_json:
            command_line.print_json(dump_all(found))
        elif found:
            _print_models(found)
        else:
            command_line.console().print(
                "No language models yet: questions are answered with passages. To add one: quarry models add"
            )


@app.command(name="test")
def try_model(name: Name, as_json: Json = False) -> None:
    """Send a model three short test questions: whether it answers, streams, calls tools and accepts a temperature."""
    with command_line.cli_errors(as_json):
        model = command_line.open_home().language_models.open_model(name)
        found = ModelCheckResponse.model_validate(check_model(model, Deadline.after(CHECK_SECONDS)))
        if as_json:
            command_line.print_model(found)
        else:
            for line in _describe_check(found):
                command_line.console().print(to_safe_text(line), soft_wrap=True)
        if found.trouble:
            raise typer.Exit(command_line.FAILED)


@app.command()
def remove(name: Name, as_json: Json = False) -> None:
    """Remove a model. The next question is answered without it."""
    with command_line.cli_errors(as_json):
        command_line.open_home().model_service(OWNER).remove(name)
        command_line.print_done(name, "is removed", as_json)


@app.command()
def use(
    name: Name,
    role: Annotated[
        ModelRole,
        typer.Option(
            "--as",
            help="default: writes answers; fast: for queries, selecting and checking; fallback: where the default fails.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Use a model from the next question on."""
    with command_line.cli_errors(as_json):
        command_line.open_home().model_service(OWNER).use(name, role)
        command_line.print_done(name, f"is the {role} model", as_json)


@app.command()
def usage(
    days: Annotated[
        int, typer.Option(min=1, max=model_usage.DAYS_KEPT, help="Today and the days before.")
    ] = 30,
    as_json: Json = False,
) -> None:
    """Show the tokens that were used, by day (UTC), person and model."""
    with command_line.cli_errors(as_json):
        container = command_line.open_home()
        since = datetime.now(UTC).date() - timedelta(days=days - 1)
        used = model_usage.list_since(container.database, since)
        found = price_usage(used, container.language_models.list_stored())
        if as_json:
            command_line.print_json(dump_all(found))
        elif found:
            _print_usage(found)
        else:
            command_line.console().print("No tokens were used in this time.")


def _read_key(file: str | None, variable: str | None) -> str | None:
    if file is not None and variable is not None:
        raise typer.BadParameter("give --key-file or --key-env, not both", param_hint=_KEY_FILE)
    if variable is not None:
        return read_variable(variable)
    return None if file is None else read_secret("Key", _KEY_FILE, file)


def _print_models(models: Sequence[ModelResponse]) -> None:
    table = Table(
        *("name", "used as", "model", "at", "window", "can", "price of a million", "set by"),
        box=None,
        header_style="dim",
    )
    for one in models:
        cells = (
            one.name,
            ", ".join(one.roles) or "nothing",
            one.model,
            one.base_url,
            f"{one.context_window:,}",
            ", ".join(_list_abilities(one)),
            _describe_prices(one),
            one.origin,
        )
        table.add_row(*map(to_safe_text, cells))
    command_line.console().print(table)
    if any(one.origin == "settings" and one.roles for one in models):
        command_line.console().print(
            "The default is from the settings (QUARRY_LLM_MODEL), since the database has none."
        )


def _list_abilities(model: ModelResponse) -> Iterator[str]:
    if model.calls_tools:
        yield "call tools"
    if model.sees_pictures:
        yield "accept images"
    if model.reasons:
        yield "reason"


def _describe_prices(model: ModelResponse) -> str:
    prices = (("read", model.input_price), ("written", model.output_price))
    return ", ".join(f"{price:g} {tokens}" for tokens, price in prices if price is not None)


def _describe_check(found: ModelCheckResponse) -> Iterator[str]:
    if found.answers:
        yield f"answers: {found.answer} (first token after {found.seconds:g} s)"
        yield f"streams: {'yes' if found.streams else 'its answer came in one piece'}"
        yield f"calls tools: {_TRIED[found.calls_tools]}"
        yield f"accepts a temperature: {_TRIED[found.takes_temperature]}"
        if found.takes_temperature is False:
            yield "Assistants that set a temperature answer at the temperature of the model."
    if found.trouble:
        yield f"{found.trouble} {found.advice}".strip()


def _print_usage(used: Sequence[ModelUsageResponse]) -> None:
    table = Table(
        "day", "person", "model", "read", "written", "calls", "cost", box=None, header_style="dim"
    )
    for one in used:
        table.add_row(
            f"{one.day}",
            to_safe_text(one.person or ""),
            to_safe_text(one.model),
            f"{one.input_tokens:,}",
            f"{one.output_tokens:,}",
            f"{one.calls:,}",
            "" if one.cost is None else f"{one.cost:.4f}",
        )
    command_line.console().print(table)
