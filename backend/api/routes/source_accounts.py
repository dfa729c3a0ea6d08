"""`/api/source-accounts`: the accounts of sources that are yours; `/api/admin/source-accounts`: those of everybody."""

from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from backend.access.source_accounts import (
    LONGEST_ACCOUNT,
    LONGEST_SOURCE,
    OwnSourceAccounts,
    SourceAccountService,
)
from backend.api import openapi
from backend.api.authorization import AskerDependency, Permission, get_person, requires
from backend.api.dependencies import AccountDatabaseDependency, choose_sources
from backend.schemas.source_account import (
    ListedAccountResponse,
    OwnSourceAccountResponse,
    SourceAccountResponse,
    SourceAccountsResponse,
)
from backend.store.sync.source_accounts import AccountState

router = APIRouter()
MOST_LISTED = 1_000
_OWN, _ALL = "/api/source-accounts", "/api/admin/source-accounts"
_NOT_FREE: dict[int | str, dict[str, Any]] = {
    409: openapi.describe_problem(
        "The source lists no such account, somebody else has it, or the person's account is disabled"
    )
}
AccountId: TypeAlias = Annotated[str, Path(max_length=100)]
AccountText: TypeAlias = Annotated[str, Field(min_length=1, max_length=LONGEST_ACCOUNT)]
SourceText: TypeAlias = Annotated[str, Field(min_length=1, max_length=LONGEST_SOURCE)]


class SourceAccountRequestBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"source": "github", "account": "octocat"}]},
    )

    source: SourceText
    account: AccountText = Field(description="Its id at the source, such as a login")


class SourceAccountMappingBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"email": "ann@example.com", "source": "github", "account": "octocat"}]
        },
    )

    email: str = Field(
        max_length=254, description="E-mail address of the person who gets the account"
    )
    source: SourceText
    account: AccountText = Field(description="Its id at the source, such as a login")


async def get_own_accounts(
    asker: AskerDependency, database: AccountDatabaseDependency
) -> OwnSourceAccounts:
    return OwnSourceAccounts(database, get_person(asker), asker.actor)


async def get_account_service(
    asker: AskerDependency, database: AccountDatabaseDependency
) -> SourceAccountService:
    return SourceAccountService(database, asker.actor, choose_sources(asker))


OwnDependency = Annotated[OwnSourceAccounts, Depends(get_own_accounts)]
ServiceDependency = Annotated[SourceAccountService, Depends(get_account_service)]


@router.get(_OWN, summary="List the accounts of sources that are yours, or that you ask for")
@requires(Permission.ACCOUNT)
def list_own_accounts(own: OwnDependency) -> list[OwnSourceAccountResponse]:
    return [OwnSourceAccountResponse.from_account(one) for one in own.list_accounts()]


@router.post(
    _OWN,
    status_code=201,
    responses={409: openapi.describe_problem("You ask for as many accounts as allowed")},
    summary="Ask for an account of a source",
)
@requires(Permission.ACCOUNT)
def ask_for_account(body: SourceAccountRequestBody, own: OwnDependency) -> OwnSourceAccountResponse:
    """It gives no right until an admin, or the person who looks after the source, approves. The answer is the same whether there is such a source or account."""
    return OwnSourceAccountResponse.from_account(own.ask(body.source, body.account))


@router.delete(
    f"{_OWN}/{{account_id}}", status_code=204, summary="Ask no more, or give up an account"
)
@requires(Permission.ACCOUNT)
def give_up_account(account_id: AccountId, own: OwnDependency) -> None:
    own.withdraw(account_id)


@router.get(_ALL, summary="List the accounts of sources that are mapped to people, or asked for")
@requires(Permission.SOURCES)
def list_source_accounts(
    service: ServiceDependency,
    state: AccountState | None = None,
    after: Annotated[
        str, Query(max_length=100, description="What `next` of the page before says")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 100,
) -> SourceAccountsResponse:
    """All for an admin; for a source manager those of their own sources."""
    found = service.list_accounts(state, after, limit + 1)
    return SourceAccountsResponse.from_accounts(found, limit)


@router.post(_ALL, status_code=201, responses=_NOT_FREE, summary="Map an account of a source")
@requires(Permission.ADMIN)
def map_source_account(
    body: SourceAccountMappingBody, service: ServiceDependency
) -> SourceAccountResponse:
    """The person reads what the account may read, from the next request on. 404 where there is no such source, or no account of this address."""
    mapped = service.map(body.email, body.source, body.account)
    return SourceAccountResponse.from_account(mapped)


@router.post(
    f"{_ALL}/{{account_id}}/approve",
    responses=_NOT_FREE,
    summary="Give a person the account that they ask for",
)
@requires(Permission.SOURCES)
def approve_source_account(
    account_id: AccountId, service: ServiceDependency
) -> SourceAccountResponse:
    return SourceAccountResponse.from_account(service.approve(account_id))


@router.delete(
    f"{_ALL}/{{account_id}}", status_code=204, summary="Withdraw a mapped account, or decline it"
)
@requires(Permission.SOURCES)
def withdraw_source_account(account_id: AccountId, service: ServiceDependency) -> None:
    """Nothing is read by it from the next request on."""
    service.withdraw(account_id)


@router.get(
    "/api/admin/sources/{name}/accounts",
    summary="List accounts of a source that belong to nobody yet",
)
@requires(Permission.SOURCES)
def list_candidates(
    name: str,
    service: ServiceDependency,
    begin: Annotated[
        str, Query(max_length=LONGEST_ACCOUNT, description="How their ids or names begin")
    ] = "",
) -> list[ListedAccountResponse]:
    """The first 20, as the last permission sync listed them: neither mapped, nor with an address that the source shows."""
    found = service.list_candidates(name, begin)
    return [ListedAccountResponse.from_listed(one) for one in found]
