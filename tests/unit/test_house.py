"""The house rules that no linter knows, checked on the source itself."""

import ast
import re
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("backend", "connectors", "indexing")
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
NAMES = {
    path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in MODULES
}

NOBODYS_ROOMS = {"utils", "util", "common", "helpers", "helper", "core", "shared", "misc"}
MAY_CATCH_ALL = {
    "backend/worker/celery_worker.py",
    "backend/api/server_sent_events.py",
    "backend/api/sync_runs.py",
    "backend/sync/worker_threads.py",
}
HEAVY: dict[str, set[str] | None] = {
    # module, or a package of them: what it may import inside its functions
    "backend/cli": None,
    "backend/container.py": None,
    "indexing/embedding/sentence_transformers_model.py": {
        "torch",
        "sentence_transformers",
        "transformers",
        "openvino",
    },
    "indexing/embedding/model_files.py": {"huggingface_hub"},
    "indexing/opensearch/client.py": {"botocore"},
    "backend/chat/llm/client.py": {"openai", "httpx2"},
    "backend/store/database.py": {"alembic"},
    "connectors/sources/website/page_document.py": {"trafilatura"},
}


def _relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), names=names):
            return [f"{module}.{alias.name}" for alias in names]
        case _:
            return []


@pytest.mark.parametrize("path", MODULES, ids=_relative)
def test_a_room_is_named_by_a_noun_of_the_field(path: Path) -> None:
    assert not NOBODYS_ROOMS & set(NAMES[path].split("."))


@pytest.mark.parametrize("path", MODULES, ids=_relative)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(_tree(path)), "a module begins with a docstring"


@pytest.mark.parametrize("path", MODULES, ids=_relative)
def test_only_settings_reads_the_environment(path: Path) -> None:
    if _relative(path) == "backend/settings.py":
        return
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\bos\.environ\b(?!\s*\|)|\bgetenv\b|import environ\b", text)


@pytest.mark.parametrize("path", MODULES, ids=_relative)
def test_no_module_is_a_script(path: Path) -> None:
    assert "__main__" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", MODULES, ids=_relative)
def test_imports_stand_at_the_top_but_for_heavy_libraries(path: Path) -> None:
    allowed = HEAVY.get(_relative(path), HEAVY.get(_relative(path.parent), set()))
    inside = {
        name.partition(".")[0]
        for function in _functions(_tree(path))
        for node in ast.walk(function)
        for name in _imported(node)
    }
    assert allowed is None or inside <= allowed


@pytest.mark.parametrize("path", MODULES, ids=_relative)
def test_no_handler_catches_everything(path: Path) -> None:
    broad = [
        node.lineno
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
    ]
    assert not broad or _relative(path) in MAY_CATCH_ALL


@pytest.mark.parametrize("path", MODULES, ids=_relative)
def test_values_are_frozen(path: Path) -> None:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ClassDef):
            for decorator in node.decorator_list:
                text = ast.unparse(decorator)
                if text.startswith("dataclass"):
                    assert "frozen=True" in text, f"{node.name}: a dataclass is frozen"


def _code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the function's statements, its docstring left out."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    signature = {function.lineno}
    return len(
        signature
        | {n for node in body for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    )


def test_functions_are_read_at_a_glance() -> None:
    sizes = sorted(_code_lines(f) for path in MODULES for f in _functions(_tree(path)))
    median, p99 = sizes[len(sizes) // 2], sizes[round(0.99 * (len(sizes) - 1))]
    assert median <= 8, f"half of all functions have more than {median} lines"
    assert p99 <= 50, f"one function in a hundred has more than {p99} lines"


def _edges() -> dict[str, set[str]]:
    modules = set(NAMES.values())
    return {
        NAMES[path]: {
            found
            for node in ast.walk(_tree(path))
            for name in _imported(node)
            if (found := _module_of(name, modules)) and found != NAMES[path]
        }
        for path in MODULES
    }


def _module_of(name: str, modules: set[str]) -> str:
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def test_no_module_imports_itself_round_a_circle() -> None:
    edges = _edges()

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        todo = list(edges[start])
        while todo:
            if (node := todo.pop()) not in seen:
                seen.add(node)
                todo.extend(edges[node])
        return seen

    assert [module for module in edges if module in reachable(module)] == []


@pytest.mark.parametrize("name", ROOMS)
def test_no_other_distribution_ships_our_names(name: str) -> None:
    assert set(packages_distributions().get(name, [])) <= {"quarry-search"}


def test_every_dependency_is_named_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(r"^dependencies = \[(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    assert block is not None
    named = re.findall(r'^\s+"([A-Za-z0-9._-]+)', block.group(1), re.MULTILINE)
    assert [name for name in named if f"`{name}`" not in text] == []
