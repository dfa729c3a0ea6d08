"""The page of the accounts that people have at sources: who asks for which, and to whom they are mapped."""

from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from backend.access.source_accounts import LONGEST_ACCOUNT, LONGEST_SOURCE, SourceAccountService
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import AccountDatabaseDependency, choose_sources
from backend.store.sync import sources
from backend.web.forms import NO_FORM, Form, FormDependency
from backend.web.templates import page
from connectors.errors import ConflictError, InvalidInputError, NotFoundError

ACCOUNTS = "/source-accounts"
_PAGE = 100

router = APIRouter(include_in_schema=False)

AccountAction: TypeAlias = Literal["approve", "withdraw"]


async def get_service(
    asker: AskerDependency, database: AccountDatabaseDependency
) -> SourceAccountService:
    return SourceAccountService(database, asker.actor, choose_sources(asker))


ServiceDependency = Annotated[SourceAccountService, Depends(get_service)]


@router.get(ACCOUNTS)
@requires(Permission.SOURCES)
def accounts_page(
    request: Request,
    service: ServiceDependency,
    source: Annotated[str, Query(max_length=LONGEST_SOURCE)] = "",
    begin: Annotated[str, Query(max_length=LONGEST_ACCOUNT)] = "",
    email: Annotated[str, Query(max_length=254)] = "",
    after: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """Show what is asked for and what is mapped, and the accounts of a source that belong to nobody."""
    given = {"source": source, "begin": begin, "email": email}
    return _show(request, service, given, after)


@router.post(ACCOUNTS)
@requires(Permission.ADMIN)
def map_account(request: Request, service: ServiceDependency, form: FormDependency) -> Response:
    try:
        service.map(form.get("email", ""), form.get("source", ""), form.get("account", ""))
    except (InvalidInputError, ConflictError, NotFoundError) as error:
        return _show(request, service, form, trouble=str(error))
    return RedirectResponse(ACCOUNTS, 303)


@router.post("/source-account/{account_id}/{action}")
@requires(Permission.SOURCES)
def change_account(
    account_id: Annotated[str, Path(max_length=100)],
    action: AccountAction,
    request: Request,
    service: ServiceDependency,
) -> Response:
    try:
        match action:
            case "approve":
                service.approve(account_id)
            case "withdraw":
                service.withdraw(account_id)
    except ConflictError as error:
        return _show(request, service, NO_FORM, trouble=str(error))
    return RedirectResponse(ACCOUNTS, 303)


def _show(
    request: Request,
    service: SourceAccountService,
    given: Form,
    after: str = "",
    trouble: str = "",
) -> Response:
    mapped = service.list_accounts("mapped", after, _PAGE + 1)
    listed = sources.list_sources(service.database, service.choice)
    source, begin = given.get("source", ""), given.get("begin", "")
    values = {
        "asked": service.list_accounts("asked", limit=_PAGE),
        "mapped": mapped[:_PAGE],
        "has_more": len(mapped) > _PAGE,
        "sources": [one.name for one in listed],
        "candidates": _list_candidates(service, source, begin),
        "source": source,
        "begin": begin,
        "account": given.get("account", ""),
        "email": given.get("email", ""),
        "trouble": trouble,
        "longest": LONGEST_ACCOUNT,
    }
    return page(request, "source_accounts.html", "people", values, 422 if trouble else 200)


def _list_candidates(service: SourceAccountService, source: str, begin: str) -> object:
    """Return what an admin or the manager of a source may choose; None where no source is chosen."""
    try:
        return service.list_candidates(source, begin) if source else None
    except NotFoundError:
        return []
