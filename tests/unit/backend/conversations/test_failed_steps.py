"""What an answer was written without has a name for people, whichever step it is."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import backend
from backend.conversations.failed_steps import NAMES, describe_failed_step

ROOT = Path(next(iter(backend.__path__)))
OF_CALLS = {"semantic_query_rephrase", "keyword_query_expansion"}
"""The calls to a model for variants: `search_tool` names the step by the call that has failed."""
OF_LOOKUPS = {"web", "memory", "earlier_findings"}
"""What is looked up beside the search: `message_lookup` and `web_lookup` name the step by what failed."""


def _list_steps() -> Iterator[str]:
    """Yield the step of each `StepFailed` that is made, where it is written there."""
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text("utf-8")
        if "StepFailed(" not in text:
            continue
        name = ".".join(("backend", *path.relative_to(ROOT).with_suffix("").parts))
        module = importlib.import_module(name)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "StepFailed":
                yield from _read_step(node, module)


def _read_step(made: ast.Call, module: ModuleType) -> Iterator[str]:
    match made.args:
        case [ast.Constant(value=str(step)), *_]:
            yield step
        case [ast.Name(id=name), *_] if name.isupper():
            yield getattr(module, name)
        case _:
            pass


def test_each_step_that_can_be_lost_has_a_name() -> None:
    steps = {*_list_steps()}
    assert {"embedding", "late_retrieval", "selection", "expansion", "history"} <= steps
    assert (steps | OF_CALLS | OF_LOOKUPS) == NAMES.keys()


def test_a_loss_is_said_with_its_name_and_its_reason() -> None:
    said = describe_failed_step("embedding", "searched by words alone: it did not end in time")
    assert said == (
        "Done without the search by meaning: searched by words alone: it did not end in time"
    )
