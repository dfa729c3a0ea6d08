"""The language models that admins set, and what each is used for."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from backend.store.database import Database, inserting
from backend.store.llm import model_usage
from backend.store.schema.assistant_tables import assistants
from backend.store.schema.language_model_tables import language_models, model_roles
from connectors.errors import ConflictError, NotFoundError
from indexing.text.normalization import is_storable


class ModelRole(StrEnum):
    """What a language model is used for; one model at most has each role."""

    DEFAULT = "default"
    """It writes the answers."""
    FAST = "fast"
    """It writes search queries, selects what is read, and judges weak claims; without one the default does."""
    FALLBACK = "fallback"
    """It writes the answer where the default fails before its first token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelValues:
    """What an admin says of a model, its key aside."""

    name: str
    base_url: str
    model: str
    """Its id at the endpoint."""
    context_window: int
    sees_pictures: bool
    calls_tools: bool
    reasons: bool
    input_price: float | None
    """Of a million tokens; None where it is not known."""
    output_price: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    id: int
    values: ModelValues
    sealed_key: str | None = field(repr=False)
    roles: frozenset[ModelRole]

    @property
    def name(self) -> str:
        return self.values.name


# Built once: every question asks it.
_SELECT_MODELS = (
    select(language_models, model_roles.c.role)
    .join(model_roles, isouter=True)
    .order_by(language_models.c.name)
)


def list_models(database: Database) -> list[StoredModel]:
    """Return all models by name."""
    with database.reading() as connection:
        rows = connection.execute(_SELECT_MODELS).all()
    by_name: dict[str, list[Row[tuple[object, ...]]]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    return [_to_model(found) for found in by_name.values()]


def find(database: Database, name: str) -> StoredModel:
    """Return the model of a name. Raises NotFoundError: there is none of this name."""
    if not is_storable(name):
        raise is_missing(name)
    with database.reading() as connection:
        rows = connection.execute(_SELECT_MODELS.where(language_models.c.name == name)).all()
    if not rows:
        raise is_missing(name)
    return _to_model(rows)


def is_missing(name: str) -> NotFoundError:
    return NotFoundError(
        f"There is no language model named {name!r}. To list them: quarry models list"
    )


def add(database: Database, values: ModelValues, sealed_key: str | None) -> None:
    """Add a model. Raises ConflictError: there is a model of this name."""
    row = {**asdict(values), "key": sealed_key}
    try:
        with database.writing() as connection:
            connection.execute(insert(language_models).values(row))
    except IntegrityError as error:
        raise _is_taken(values.name) from error


def change(database: Database, model_id: int, values: ModelValues, sealed_key: str | None) -> None:
    """Change a model; what was used of it is counted under its new name from now on.

    Raises:
        ConflictError: another model has this name.
    """
    of_model = language_models.c.id == model_id
    changed = update(language_models).where(of_model)
    try:
        with database.writing() as connection:
            before = connection.scalar(select(language_models.c.name).where(of_model))
            connection.execute(changed.values({**asdict(values), "key": sealed_key}))
            if before is not None:
                model_usage.rename_model(connection, before, values.name)
    except IntegrityError as error:
        raise _is_taken(values.name) from error


def remove(database: Database, model_id: int) -> None:
    """Remove a model. Assistants that name it keep its name, so that their answers can say what is missing."""
    name = select(language_models.c.name).where(language_models.c.id == model_id)
    named = update(assistants).where(assistants.c.model_id == model_id)
    with database.writing() as connection:
        # Locked first: no assistant comes to name it in between.
        connection.execute(name.with_for_update())
        connection.execute(named.values(removed_model=name.scalar_subquery()))
        connection.execute(delete(model_roles).where(model_roles.c.model_id == model_id))
        connection.execute(delete(language_models).where(language_models.c.id == model_id))


def set_roles(database: Database, model_id: int, roles: Iterable[ModelRole]) -> None:
    """Let a model have these roles and no others; who had one of them has it no longer."""
    with database.writing() as connection:
        connection.execute(delete(model_roles).where(model_roles.c.model_id == model_id))
        for role in roles:
            given = inserting(connection, model_roles).values(role=role, model_id=model_id)
            connection.execute(
                given.on_conflict_do_update(
                    index_elements=["role"], set_={"model_id": given.excluded.model_id}
                )
            )


def reencrypt_keys(database: Database, rotate: Callable[[str], str]) -> int:
    """Replace each sealed key by its rotation, and return their number.

    Raises:
        NotConfiguredError: one of them cannot be decrypted.
    """
    sealed = select(language_models.c.id, language_models.c.key)
    with database.writing() as connection:
        held = connection.execute(sealed.where(language_models.c.key.is_not(None))).all()
        for model_id, key in held:
            again = update(language_models).where(language_models.c.id == model_id)
            connection.execute(again.values(key=rotate(key)))
    return len(held)


def _to_model(rows: Iterable[Row[tuple[object, ...]]]) -> StoredModel:
    """Make one model of its rows, of which there is one for each role."""
    found = [row._mapping for row in rows]  # noqa: SLF001 (the public name of a row's mapping)
    first: Mapping[str, object] = dict(found[0])
    names = ModelValues.__dataclass_fields__
    return StoredModel(
        id=found[0]["id"],
        values=ModelValues(**{name: first[name] for name in names}),  # type: ignore[arg-type]
        sealed_key=found[0]["key"],
        roles=frozenset(ModelRole(row["role"]) for row in found if row["role"]),
    )


def _is_taken(name: str) -> ConflictError:
    return ConflictError(
        f"There is a language model named {name!r} already. Choose another name, or change that one."
    )
