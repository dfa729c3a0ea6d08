"""The pages on which admins make groups and say who is in them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from backend.access.groups import LONGEST_NAME, GroupService
from backend.access.own_readers import make_group_token
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import AccountDatabaseDependency
from backend.store.accounts import group_members
from backend.store.accounts.group_members import Group
from backend.store.database import Database
from backend.web.forms import Form, FormDependency
from backend.web.templates import page
from connectors.errors import ConflictError, InvalidInputError, NotFoundError

GROUPS = "/groups"
MEMBERS_PAGE = 200
_MOST_ID = 2**31 - 1

router = APIRouter(include_in_schema=False)

GroupId: TypeAlias = Annotated[int, Path(ge=1, le=_MOST_ID)]
GroupAction: TypeAlias = Literal["rename", "add", "remove"]


@router.get(GROUPS)
@requires(Permission.ACCOUNTS)
def groups_page(request: Request, database: AccountDatabaseDependency) -> Response:
    return _show_groups(request, database)


@router.post(GROUPS)
@requires(Permission.ACCOUNTS)
def create_group(
    request: Request,
    asker: AskerDependency,
    database: AccountDatabaseDependency,
    form: FormDependency,
) -> Response:
    name = form.get("name", "")
    try:
        group = GroupService(database, asker.actor).create(name)
    except (InvalidInputError, ConflictError) as error:
        return _show_groups(request, database, name, str(error))
    return RedirectResponse(f"/group/{group.id}", 303)


@router.get("/group/{group_id}")
@requires(Permission.ACCOUNTS)
def group_page(
    group_id: GroupId,
    request: Request,
    database: AccountDatabaseDependency,
    after: Annotated[str, Query(max_length=300)] = "",
) -> Response:
    """Show a group and who is in it, a page at a time."""
    return _show_group(request, database, _get_group(database, group_id), after)


@router.post("/group/{group_id}/delete")
@requires(Permission.ACCOUNTS)
def delete_group(
    group_id: GroupId,
    request: Request,
    asker: AskerDependency,
    database: AccountDatabaseDependency,
) -> Response:
    group = _get_group(database, group_id)
    try:
        GroupService(database, asker.actor).delete(group.name)
    except ConflictError as error:
        return _show_group(request, database, group, trouble=str(error))
    return RedirectResponse(GROUPS, 303)


@router.post("/group/{group_id}/{action}")
@requires(Permission.ACCOUNTS)
def change_group(
    group_id: GroupId,
    action: GroupAction,
    request: Request,
    asker: AskerDependency,
    database: AccountDatabaseDependency,
    form: FormDependency,
) -> Response:
    group = _get_group(database, group_id)
    try:
        _ACTIONS[action](GroupService(database, asker.actor), group.name, form)
    except (InvalidInputError, ConflictError, NotFoundError) as error:
        return _show_group(request, database, group, trouble=str(error))
    return RedirectResponse(f"/group/{group_id}", 303)


_ACTIONS: Mapping[GroupAction, Callable[[GroupService, str, Form], object]] = MappingProxyType(
    {
        "rename": lambda service, name, form: service.rename(name, form.get("name", "")),
        "add": lambda service, name, form: service.add_member(name, form.get("email", "")),
        "remove": lambda service, name, form: service.remove_member(name, form.get("email", "")),
    }
)


def _get_group(database: Database, group_id: int) -> Group:
    group = group_members.find(database, group_id)
    if group is None:
        raise NotFoundError("There is no such group.")
    return group


def _show_groups(
    request: Request, database: Database, name: str = "", trouble: str = ""
) -> Response:
    values = {
        "groups": [
            (group, make_group_token(group.name)) for group in group_members.list_groups(database)
        ],
        "name": name,
        "longest": LONGEST_NAME,
        "trouble": trouble,
    }
    return page(request, "groups.html", "people", values, 422 if trouble else 200)


def _show_group(
    request: Request, database: Database, group: Group, after: str = "", trouble: str = ""
) -> Response:
    found = group_members.list_members(database, group.id, after, MEMBERS_PAGE + 1)
    values = {
        "group": group,
        "token": make_group_token(group.name),
        "members": found[:MEMBERS_PAGE],
        "has_more": len(found) > MEMBERS_PAGE,
        "longest": LONGEST_NAME,
        "trouble": trouble,
    }
    return page(request, "group.html", "people", values, 422 if trouble else 200)
