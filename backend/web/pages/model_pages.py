"""The pages on which admins set language models, try them, and see what was used."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from backend.access.groups import GroupService
from backend.access.people import PeopleService
from backend.access.token_budgets import MOST_TOKENS
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import (
    AccountDatabaseDependency,
    LanguageModelsDependency,
    ModelServiceDependency,
)
from backend.api.languages import find_language
from backend.api.request_context import CancelTokenDependency
from backend.chat.llm.model_check import CHECK_SECONDS, check_model
from backend.chat.llm.stored_models import SMALLEST_WINDOW, ModelChange
from backend.composition.language_models import LanguageModels
from backend.schemas.language_model import (
    ModelCheckResponse,
    ModelResponse,
    list_models,
    price_usage,
)
from backend.store.database import Database
from backend.store.llm import group_budgets, language_models, model_usage, person_budgets
from backend.store.llm.language_models import ModelRole, ModelValues
from backend.web.bar_chart import HEIGHT
from backend.web.catalogs import load_messages
from backend.web.forms import Form, FormDependency
from backend.web.templates import page
from backend.web.usage_charts import UsagePeriod, draw_usage
from connectors.errors import ConflictError, InvalidInputError, NotConfiguredError, NotFoundError
from indexing.runtime.deadline import Deadline

MODELS = "/models"
USAGE_ROWS = 200
_NEW = ModelValues(
    name="",
    base_url="",
    model="",
    context_window=32_000,
    sees_pictures=False,
    calls_tools=True,
    reasons=False,
    input_price=None,
    output_price=None,
)
_EMPTY: Mapping[str, object] = {"values": asdict(_NEW), "roles": (), "has_key": False}

router = APIRouter(include_in_schema=False)


@router.get(MODELS)
@requires(Permission.ADMIN)
def models_page(
    request: Request,
    models: LanguageModelsDependency,
    database: AccountDatabaseDependency,
    days: Annotated[UsagePeriod, Query()] = UsagePeriod.WEEK,
) -> Response:
    """Show the models, and what was used of them in the last days."""
    values = {**_EMPTY, **_show_usage(request, models, database, days), "trouble": ""}
    return page(request, "models.html", "people", values)


@router.post(MODELS)
@requires(Permission.ADMIN)
def add_model(
    request: Request,
    models: LanguageModelsDependency,
    service: ModelServiceDependency,
    database: AccountDatabaseDependency,
    form: FormDependency,
) -> Response:
    try:
        service.add(_read_values(form), form.get("key") or None, _read_roles(form))
    except (InvalidInputError, ConflictError) as error:
        shown = _show_usage(request, models, database, UsagePeriod.WEEK)
        values = {**_keep_form(form, has_key=False), **shown, "trouble": str(error)}
        return page(request, "models.html", "people", values, 422)
    return RedirectResponse(MODELS, 303)


@router.get("/model/{name}")
@requires(Permission.ADMIN)
def model_page(name: str, request: Request, database: AccountDatabaseDependency) -> Response:
    return _show_model(request, database, name)


@router.post("/model/{name}")
@requires(Permission.ADMIN)
def change_model(
    name: str,
    request: Request,
    service: ModelServiceDependency,
    database: AccountDatabaseDependency,
    form: FormDependency,
) -> Response:
    key = "" if "remove_key" in form else form.get("key") or None
    try:
        values = asdict(_read_values(form))
        service.change(name, ModelChange(values=values, key=key, roles=_read_roles(form)))
    except (InvalidInputError, ConflictError) as error:
        return _show_model(request, database, name, form=form, trouble=str(error))
    return RedirectResponse(MODELS, 303)


@router.post("/model/{name}/test")
@requires(Permission.ADMIN)
def try_model(
    name: str,
    request: Request,
    models: LanguageModelsDependency,
    database: AccountDatabaseDependency,
    cancel_token: CancelTokenDependency,
) -> Response:
    """Show what a try shows beside the form, where it can be corrected."""
    try:
        deadline = Deadline.after(CHECK_SECONDS, cancel_token)
        check = ModelCheckResponse.model_validate(check_model(models.open_model(name), deadline))
    except NotConfiguredError as error:
        return _show_model(request, database, name, trouble=str(error))
    return _show_model(request, database, name, check=check)


@router.post("/model/{name}/remove")
@requires(Permission.ADMIN)
def remove_model(name: str, service: ModelServiceDependency) -> Response:
    service.remove(name)
    return RedirectResponse(MODELS, 303)


@router.post("/models/budget")
@requires(Permission.ADMIN)
def set_group_budget(
    request: Request,
    asker: AskerDependency,
    models: LanguageModelsDependency,
    database: AccountDatabaseDependency,
    form: FormDependency,
) -> Response:
    try:
        tokens = _read_whole_number(form.get("tokens", ""), "A budget")
        GroupService(database, asker.actor).set_token_budget(form.get("group", ""), tokens)
    except (InvalidInputError, NotFoundError, ConflictError) as error:
        shown = _show_usage(request, models, database, UsagePeriod.WEEK)
        values = {**_EMPTY, **shown, "trouble": str(error)}
        return page(request, "models.html", "people", values, 422)
    return RedirectResponse(f"{MODELS}#budgets-title", 303)


@router.post("/models/person-budget")
@requires(Permission.ADMIN)
def set_person_budget(
    request: Request,
    asker: AskerDependency,
    models: LanguageModelsDependency,
    database: AccountDatabaseDependency,
    form: FormDependency,
) -> Response:
    try:
        tokens = _read_whole_number(form.get("tokens", ""), "A budget")
        PeopleService(database, asker.actor).set_token_budget(form.get("email", ""), tokens)
    except (InvalidInputError, NotFoundError) as error:
        shown = _show_usage(request, models, database, UsagePeriod.WEEK)
        values = {**_EMPTY, **shown, "entered": form, "trouble": str(error)}
        return page(request, "models.html", "people", values, 422)
    return RedirectResponse(f"{MODELS}#person-budgets-title", 303)


def _show_usage(
    request: Request, models: LanguageModels, database: Database, period: UsagePeriod
) -> dict[str, object]:
    """Return what the page shows beside its form."""
    days, stored = period.days, models.list_stored()
    rows = model_usage.list_since(database, days[0], USAGE_ROWS + 1)
    return {
        "models": list_models(models),
        "usage": price_usage(rows[:USAGE_ROWS], stored),
        "has_more": len(rows) > USAGE_ROWS,
        "charts": draw_usage(database, stored, days, load_messages(find_language(request))),
        "chart_height": HEIGHT,
        "days": period.value,
        "periods": [one.value for one in UsagePeriod],
        "smallest": SMALLEST_WINDOW,
        "groups": group_budgets.list_groups(database, days[-1]),
        "people": person_budgets.list_people(database, days[-1]),
        "entered": {},
        "most_tokens": MOST_TOKENS,
    }


def _show_model(
    request: Request,
    database: Database,
    name: str,
    *,
    form: Form | None = None,
    trouble: str = "",
    check: ModelCheckResponse | None = None,
) -> Response:
    """Render the page of a model, with the form as it was sent. Raises NotFoundError: there is no such model."""
    model = ModelResponse.from_stored(language_models.find(database, name))
    stored = {"values": model.model_dump(), "roles": model.roles, "has_key": model.has_key}
    values = {
        **(stored if form is None else _keep_form(form, has_key=model.has_key)),
        "name": model.name,
        "smallest": SMALLEST_WINDOW,
        "trouble": trouble,
        "check": check,
    }
    return page(request, "model.html", "people", values, 422 if trouble else 200)


def _keep_form(form: Form, *, has_key: bool) -> dict[str, object]:
    """Return what was entered, but for the key, to be corrected."""
    boxes = ("sees_pictures", "calls_tools", "reasons")
    texts = ("name", "base_url", "model", "context_window", "input_price", "output_price")
    values = {name: form.get(name, "") for name in texts} | {name: name in form for name in boxes}
    return {"values": values, "roles": tuple(_read_roles(form)), "has_key": has_key}


def _read_roles(form: Form) -> frozenset[ModelRole]:
    return frozenset(role for role in ModelRole if f"role_{role}" in form)


def _read_values(form: Form) -> ModelValues:
    """Read the values of a model. Raises InvalidInputError: a number is none."""
    return ModelValues(
        name=form.get("name", "").strip(),
        base_url=form.get("base_url", ""),
        model=form.get("model", ""),
        context_window=_read_whole_number(form.get("context_window", ""), "The context window"),
        sees_pictures="sees_pictures" in form,
        calls_tools="calls_tools" in form,
        reasons="reasons" in form,
        input_price=_read_price(form.get("input_price", "")),
        output_price=_read_price(form.get("output_price", "")),
    )


def _read_price(text: str) -> float | None:
    return _read_number(text, "A price") if text.strip() else None


def _read_number(text: str, what: str) -> float:
    text = text.strip()
    if text.isascii() and len(text) < 20 and text.replace(".", "", 1).isdecimal():
        return float(text)
    raise InvalidInputError(f"{what} is a number, such as 32000.")


def _read_whole_number(text: str, what: str) -> int:
    number = _read_number(text, what)
    if not number.is_integer():
        raise InvalidInputError(f"{what} is a whole number, such as 32000.")
    return int(number)
