"""Language models as an admin would set them."""

from backend.container import Container
from backend.store.audit import OWNER
from backend.store.llm.language_models import ModelRole, ModelValues


def make_values(name: str, base_url: str, **values: object) -> ModelValues:
    usual: dict[str, object] = {
        "name": name,
        "base_url": base_url,
        "model": "scripted",
        "context_window": 32_000,
        "sees_pictures": False,
        "calls_tools": True,
        "reasons": False,
        "input_price": None,
        "output_price": None,
    }
    return ModelValues(**(usual | values))  # type: ignore[arg-type]


def add_model(
    container: Container, name: str, base_url: str, *roles: ModelRole, **values: object
) -> None:
    container.model_service(OWNER).add(
        make_values(name, base_url, **values), f"key-of-{name}", frozenset(roles)
    )
