"""The budgets of tokens of `quarry models`: of groups, and of single people."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Table
from typer.core import TyperCommand

from backend.access.groups import GroupService
from backend.access.people import PeopleService
from backend.access.token_budgets import MOST_TOKENS
from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text
from backend.schemas.base import dump_all
from backend.schemas.language_model import GroupBudgetResponse, PersonBudgetResponse
from backend.store.llm import group_budgets, person_budgets

app = typer.Typer()
_NEGATIVE = re.compile(r"-[\d.,]+")


class _NumberCommand(TyperCommand):
    """Reads -5 as a number, which is then refused as one, not as an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.ignore_unknown_options = any(map(_NEGATIVE.fullmatch, args))
        return super().parse_args(ctx, args)


@app.command()
def budgets(as_json: Json = False) -> None:
    """List the groups with a budget of tokens, and what their members used of it today (UTC)."""
    with command_line.cli_errors(as_json):
        today = datetime.now(UTC).date()
        stored = group_budgets.list_groups(command_line.open_home().database, today)
        found = [GroupBudgetResponse.model_validate(one) for one in stored if one.tokens]
        if as_json:
            command_line.print_json(dump_all(found))
        elif found:
            _print_budgets(found)
        else:
            command_line.console().print(
                "No group has a budget. To set one: quarry models budget GROUP TOKENS"
            )


@app.command(cls=_NumberCommand)
def budget(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Name of a group.")],
    tokens: Annotated[
        int,
        typer.Argument(
            min=0,
            max=MOST_TOKENS,
            metavar="TOKENS",
            help="Tokens that all members together may use on a day (UTC); 0: no limit.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Limit the tokens that the members of a group may use on a day, all together."""
    with command_line.cli_errors(as_json):
        changed = GroupService(command_line.open_home().database).set_token_budget(group, tokens)
        what = f"has {tokens:,} tokens a day" if tokens else "has no limit of tokens"
        command_line.print_done(changed.name, what, as_json)


@app.command(name="person-budgets")
def list_person_budgets(as_json: Json = False) -> None:
    """List the people with a budget of tokens of their own, and what they used of it today (UTC)."""
    with command_line.cli_errors(as_json):
        today = datetime.now(UTC).date()
        stored = person_budgets.list_people(command_line.open_home().database, today)
        found = list(map(PersonBudgetResponse.model_validate, stored))
        if as_json:
            command_line.print_json(dump_all(found))
        elif found:
            _print_person_budgets(found)
        else:
            command_line.console().print(
                "Nobody has a budget of their own. To set one: quarry models person-budget EMAIL TOKENS"
            )


@app.command(name="person-budget", cls=_NumberCommand)
def set_person_budget(
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="E-mail address of the person.")],
    tokens: Annotated[
        int,
        typer.Argument(
            min=0,
            max=MOST_TOKENS,
            metavar="TOKENS",
            help="Tokens that the person may use on a day (UTC), instead of QUARRY_LLM_PERSON_TOKENS;"
            " 0: as everybody else.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Limit the tokens that one person may use on a day, instead of the general limit."""
    with command_line.cli_errors(as_json):
        changed = PeopleService(command_line.open_home().database).set_token_budget(email, tokens)
        what = f"has {tokens:,} tokens a day" if tokens else "has no budget of their own"
        command_line.print_done(changed.email, what, as_json)


def _print_budgets(found: Sequence[GroupBudgetResponse]) -> None:
    table = Table("group", "members", "used today", "tokens a day", box=None, header_style="dim")
    for one in found:
        table.add_row(
            to_safe_text(one.name), f"{one.members:,}", f"{one.used:,}", f"{one.tokens:,}"
        )
    command_line.console().print(table)


def _print_person_budgets(found: Sequence[PersonBudgetResponse]) -> None:
    table = Table("person", "used today", "tokens a day", box=None, header_style="dim")
    for one in found:
        table.add_row(to_safe_text(one.email), f"{one.used:,}", f"{one.tokens:,}")
    command_line.console().print(table)
