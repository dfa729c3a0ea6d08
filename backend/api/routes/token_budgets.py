"""How many tokens of language models the members of each group (`/api/admin/token-budgets`), and single people, may use on a day."""

from datetime import UTC, datetime
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from backend.access.groups import GroupService
from backend.access.people import PeopleService
from backend.access.token_budgets import MOST_TOKENS
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import AccountDatabaseDependency
from backend.schemas.language_model import GroupBudgetResponse, PersonBudgetResponse
from backend.store.accounts import group_members
from backend.store.database import Database
from backend.store.llm import group_budgets, person_budgets
from connectors.errors import NotFoundError

router = APIRouter()
_ALL = "/api/admin/token-budgets"
_OF_PEOPLE = "/api/admin/person-token-budgets"
_MOST_ID = 2**31 - 1
GroupId: TypeAlias = Annotated[int, Path(ge=1, le=_MOST_ID)]


class GroupBudgetBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"tokens": 2_000_000}]}
    )

    tokens: Annotated[int, Field(ge=0, le=MOST_TOKENS)] = Field(
        description="Tokens that all members together may use on a day (UTC); 0: no limit"
    )


class PersonBudgetBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"email": "ann@example.com", "tokens": 500_000}]},
    )

    email: str = Field(
        max_length=254, description="E-mail address of the person who gets the budget"
    )
    tokens: Annotated[int, Field(ge=0, le=MOST_TOKENS)] = Field(
        description="Tokens that the person may use on a day (UTC), instead of the general limit;"
        " 0: the general limit applies"
    )


@router.get(_ALL, summary="List the groups with their budgets of tokens, and what is used of each")
@requires(Permission.ADMIN)
def list_token_budgets(database: AccountDatabaseDependency) -> list[GroupBudgetResponse]:
    """Those that admins have made. A person in several groups may ask a model while each of them has tokens left."""
    today = datetime.now(UTC).date()
    return [
        GroupBudgetResponse.model_validate(one)
        for one in group_budgets.list_groups(database, today)
    ]


@router.put(f"{_ALL}/{{group_id}}", summary="Set or end the budget of tokens of a group")
@requires(Permission.ADMIN)
def set_token_budget(
    group_id: GroupId,
    body: GroupBudgetBody,
    asker: AskerDependency,
    database: AccountDatabaseDependency,
) -> GroupBudgetResponse:
    """It counts from the next question on, with what was used today already. What is being answered is finished."""
    group = group_members.find(database, group_id)
    if group is None or not group.is_own:
        raise _is_missing()
    GroupService(database, asker.actor).set_token_budget(group.name, body.tokens)
    return _find(database, group_id)


@router.get(
    _OF_PEOPLE,
    summary="List the people with a budget of tokens of their own, and what is used of each",
)
@requires(Permission.ADMIN)
def list_person_budgets(database: AccountDatabaseDependency) -> list[PersonBudgetResponse]:
    """For everybody else the budget of `QUARRY_LLM_PERSON_TOKENS` counts, if one is set."""
    today = datetime.now(UTC).date()
    found = person_budgets.list_people(database, today)
    return [PersonBudgetResponse.model_validate(one) for one in found]


@router.put(_OF_PEOPLE, summary="Set or end a person's own budget of tokens")
@requires(Permission.ADMIN)
def set_person_budget(
    body: PersonBudgetBody, asker: AskerDependency, database: AccountDatabaseDependency
) -> PersonBudgetResponse:
    """It counts from the next question on, with what was used today already. 404 where there is no account of this address."""
    person = PeopleService(database, asker.actor).set_token_budget(body.email, body.tokens)
    found = person_budgets.find(database, person.id, datetime.now(UTC).date())
    return PersonBudgetResponse.model_validate(found)


def _find(database: Database, group_id: int) -> GroupBudgetResponse:
    """Return a group with its budget. Raises NotFoundError: it was deleted at this moment."""
    today = datetime.now(UTC).date()
    for one in group_budgets.list_groups(database, today):
        if one.group_id == group_id:
            return GroupBudgetResponse.model_validate(one)
    raise _is_missing()


def _is_missing() -> NotFoundError:
    return NotFoundError("There is no such group among those that admins have made.")
