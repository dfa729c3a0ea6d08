"""The rules of the code that no linter knows, checked on the source itself; each test lists all offenders."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from backend.settings import Settings
from tests.support import settings_table
from tests.support.unused_names import unused_names

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("backend", "connectors", "indexing")
SOURCES = {
    path.relative_to(ROOT): path.read_text(encoding="utf-8")
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}
NAMES = {path: ".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in SOURCES}

VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "core", "shared", "misc"}
MAY_CATCH_ALL = {
    "backend/worker/broker.py",
    "backend/worker/celery_worker.py",
    "backend/api/server_sent_events.py",
    "backend/api/sync_runs.py",
    "backend/sync/worker_threads.py",
    "backend/conversations/turn_heartbeat.py",
    "backend/conversations/turn_runner.py",
    # a bug ends one run, with a sentence; the thread goes on with others
    "backend/research/runs/run_steps.py",
    "backend/research/runs/research_workers.py",
    "backend/programs/mcp/server.py",
    "backend/programs/slack/work_pool.py",
    "backend/research/calculations/guest/program.py",
}
HEAVY: dict[str, set[str] | None] = {
    # module, or a package of them: what it may import inside its functions
    "backend/cli": None,
    "backend/container.py": None,
    "backend/composition": None,
    "indexing/embedding/sentence_transformers_model.py": {
        "torch",
        "sentence_transformers",
        "transformers",
        "openvino",
    },
    "indexing/embedding/model_loading.py": {"huggingface_hub"},
    "indexing/opensearch/client.py": {"botocore"},
    "backend/chat/llm/client.py": {"openai", "httpx2"},
    "backend/store/database.py": {"alembic"},
    "backend/web_search/providers/ddgs_engines.py": {"ddgs"},
    # and the module of ours that stands on it
    "backend/programs/mcp/http_transport.py": {"mcp", "backend"},
    "connectors/extraction/web_page.py": {"trafilatura"},
    "connectors/extraction/pdf_rendering.py": {"pypdfium2"},
    "backend/search/date_periods.py": {"dateparser"},
    "backend/research/runs/report_docx.py": {"docx"},
}
NO_VERBS = """
A Also An Another Any At Both By Called Each Either Every Everybody Everything For From He How If In Into It Neither
Newest No Nobody None Not Nothing Of On One Only Over People Same She Somebody Something That The Their There These
They Those To Two What When Where Whether Which While Who Whoever Whose Why With Within Without
"""
"""Words with which a docstring says something else than what a function does."""
# Of what a property is, what OpenAPI says of a route below its summary, and the help of a command.
_DESCRIBED = re.compile(r"(cached_)?property|computed_field|(router|app)\.\w+")
_CITATIONS = "backend.chat.citations"
UNUSED = {
    # the design names them, for programs that drive the processor themselves
    f"{_CITATIONS}.citation_processor.DynamicCitationProcessor.get_cited_documents",
    f"{_CITATIONS}.citation_processor.DynamicCitationProcessor.get_next_citation_number",
    # what the component of the sandbox exports
    "backend.research.calculations.guest.program.WitWorld",
    # an embedder without a model, for programs and tests that only need some vector
    "indexing.embedding.hash_embedder.HashingEmbedder",
    # the languages of such an embedder: all of them
    "indexing.embedding.language_support.EVERYTHING",
    # the process that tries a faster precision calls it
    "indexing.embedding.precision_check.write_checked_vectors",
    # the process that draws a page calls it
    "connectors.extraction.pdf_rendering.render_standard_input",
    # the process that reads an uploaded file calls it
    "connectors.extraction.isolated.extract_standard_input",
    # the process that reads a large page calls it
    "backend.web_search.isolated_page.read_standard_input",
    # the program that becomes Chromium calls it
    "backend.web_search.browser.chromium.become_chromium",
    # programs with LangChain call them, as docs/langchain.md shows
    "backend.programs.langchain.opened_home.OpenedHome.make_retriever",
    "backend.programs.langchain.opened_home.OpenedHome.make_tools",
    # uvicorn calls it on Ctrl-C
    "backend.cli.serve._Server.handle_exit",
}


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in _list_nodes()[path]:
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


@cache
def _parse_sources() -> dict[Path, ast.Module]:
    """Parse all modules, in the one process of a run whose tests look at them."""
    return {path: ast.parse(text) for path, text in SOURCES.items()}


@cache
def _list_nodes() -> dict[Path, list[ast.AST]]:
    """List the nodes of all modules, breadth first: to walk through them takes as long as to parse them."""
    return {path: list(ast.walk(tree)) for path, tree in _parse_sources().items()}


def test_modules_have_meaningful_names_and_a_docstring() -> None:
    assert [name for name in NAMES.values() if VAGUE_NAMES & set(name.split("."))] == []
    assert [
        str(path) for path, tree in _parse_sources().items() if not ast.get_docstring(tree)
    ] == []


BRITISH = re.compile(
    r"(?:author|initial|normal|organ|recogn|standard|summar)is(?:e|ing|ation)"
    r"|(?:behavi|col|fav|hon|neighb)our|learnt|spelt",
    re.IGNORECASE,
)
SPELLED_OTHERWISE = {
    # models are prompted with these texts, and measured with them
    "backend/chat/prompts.py",
    "backend/chat/intent/intent_prompt.py",
    # words that documents may have
    "backend/chat/citations/fact_words.py",
}


def test_one_spelling_is_used_american() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("backend/web/locale/*/*/*.po")]
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in pages} | SOURCES
    assert [
        f"{path}: {found[0]}"
        for path, text in texts.items()
        if path.as_posix() not in SPELLED_OTHERWISE
        for found in BRITISH.finditer(text)
    ] == []


def test_only_settings_reads_the_environment_and_no_module_is_a_script() -> None:
    reading = re.compile(r"\bos\.environ\b(?!\s*\|)|\bgetenv\b|import environ\b")
    readers = {path.as_posix() for path, text in SOURCES.items() if reading.search(text)}
    assert readers - {"backend/settings.py"} == set()
    scripts = {path.as_posix() for path, text in SOURCES.items() if "__main__" in text}
    assert scripts == {"backend/research/calculations/guest/program.py"}, (
        "it runs scripts of others"
    )


def test_imports_stand_at_the_top_but_for_heavy_libraries() -> None:
    offenders = {str(path): _imports_inside(path) for path in _parse_sources()}
    assert {path: names for path, names in offenders.items() if names} == {}


def _imports_inside(path: Path) -> set[str]:
    """The libraries that functions of a module import and that it may not import there."""
    allowed = HEAVY.get(path.as_posix(), HEAVY.get(path.parent.as_posix(), set()))
    if allowed is None:
        return set()
    inside = (node for function in _functions(path) for node in ast.walk(function))
    return {name.partition(".")[0] for node in inside for name in _imported(node)} - allowed


def test_no_handler_catches_everything() -> None:
    offenders = [
        f"{path}:{node.lineno}"
        for path, nodes in _list_nodes().items()
        if path.as_posix() not in MAY_CATCH_ALL
        for node in nodes
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
    ]
    assert offenders == []


def test_dataclasses_are_frozen() -> None:
    offenders = [
        f"{path}:{node.lineno}"
        for path, nodes in _list_nodes().items()
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for decorator in map(ast.unparse, node.decorator_list)
        if decorator.startswith("dataclass") and "frozen=True" not in decorator
    ]
    assert offenders == []


def test_functions_take_a_whole_container_only_for_several_of_its_parts() -> None:
    offenders = [
        f"{path}: {function.name}"
        for path in SOURCES
        for function in _functions(path)
        for argument in (*function.args.args, *function.args.kwonlyargs)
        if _is_container(argument) and _uses_one_part(function, argument.arg)
    ]
    assert offenders == [], "a function that uses one part is given that part"


def _is_container(argument: ast.arg) -> bool:
    return argument.annotation is not None and "Container" in {
        node.id if isinstance(node, ast.Name) else node.value
        for node in ast.walk(argument.annotation)
        if isinstance(node, ast.Name | ast.Constant)
    }


def _uses_one_part(function: ast.AST, name: str) -> bool:
    """Whether a function uses at most one part of an argument, and hands it on as a whole to nobody."""
    nodes = list(ast.walk(function))
    parts = {
        node.value: node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    return all(node in parts for node in uses) and len({parts[node] for node in uses}) < 2


def _code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the function's statements, its docstring left out."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    signature = {function.lineno}
    return len(
        signature
        | {n for node in body for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    )


def test_functions_are_read_at_a_glance() -> None:
    sizes = sorted(_code_lines(f) for path in SOURCES for f in _functions(path))
    median, p99 = sizes[len(sizes) // 2], sizes[round(0.99 * (len(sizes) - 1))]
    assert median <= 8, f"half of all functions have more than {median} lines"
    assert p99 <= 50, f"one function in a hundred has more than {p99} lines"


def test_no_module_has_more_than_400_lines_of_code() -> None:
    sizes = {str(path): len(_lines_of_code(path)) for path in _parse_sources()}
    assert {path: size for path, size in sizes.items() if size > 400} == {}


def _lines_of_code(path: Path) -> set[int]:
    """The lines of a module but for blank ones, comments and docstrings."""
    docstrings = {
        line
        for node in _list_nodes()[path]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(SOURCES[path].splitlines(), 1)
    return {
        number for number, line in lines if line.strip() and not line.lstrip().startswith("#")
    } - docstrings


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    offenders = [
        f"{path}:{function.lineno} {function.name}: {docstring.splitlines()[0]}"
        for path in SOURCES
        for function in _functions(path)
        if (docstring := ast.get_docstring(function)) and not _is_described(function)
        if not _begins_with_a_verb(docstring)
    ]
    assert offenders == [], (
        'write "Return whether …" or "Raise … if …", and what it does before what it raises'
    )


def _is_described(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(_DESCRIBED.match(ast.unparse(one)) for one in function.decorator_list)


def _begins_with_a_verb(docstring: str) -> bool:
    """Return whether the first word may be a verb in the imperative: it is none of those, and no "Returns"."""
    word = re.match(r"[A-Z][a-z]*([a-rt-z]|ss)\b", docstring)
    return word is not None and word[0] not in NO_VERBS.split()


def _edges() -> dict[str, set[str]]:
    modules = set(NAMES.values())
    return {
        NAMES[path]: {
            found
            for node in nodes
            for name in _imported(node)
            if (found := _module_of(name, modules)) and found != NAMES[path]
        }
        for path, nodes in _list_nodes().items()
    }


def _module_of(name: str, modules: set[str]) -> str:
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def test_a_request_of_a_search_is_made_in_one_place() -> None:
    makers = {
        f"{path.as_posix()}: {function.name}"
        for path in SOURCES
        for function in _functions(path)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("SearchRequest")
    }
    assert makers == {"backend/search/models.py: make_request"}, (
        "a field is forgotten in one of two"
    )


def test_no_module_imports_itself_in_a_circle() -> None:
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


def test_every_name_has_a_caller_in_the_product() -> None:
    templates = sorted((ROOT / "backend").rglob("*.html"))
    other = "".join(
        path.read_text(encoding="utf-8") for path in [*templates, ROOT / "pyproject.toml"]
    )
    unused = {name for name in unused_names(_parse_sources(), other) if ".migrations." not in name}
    assert unused - UNUSED == set(), "delete it, or say in UNUSED why it stays"
    assert UNUSED - unused == set(), "it is called now, or gone: take it out of UNUSED"


def test_a_name_of_a_module_is_not_used_by_another_of_its_name() -> None:
    texts = {
        "jobs.py": "def starts(): pass\ndef ends(): pass\ndef lasts(): pass\ndef rests(): pass",
        "field.py": "import jobs\nfrom jobs import lasts\nlasts(found.starts, jobs.ends())",
        "table.py": "look_up('jobs:rests')",
    }
    modules = {Path(name): ast.parse(text) for name, text in texts.items()}
    assert list(unused_names(modules, "{{ source.starts }}")) == ["jobs.starts"]


def test_distribution_and_dependencies_are_declared() -> None:
    shipped = {name: set(packages_distributions().get(name, [])) for name in PACKAGES}
    assert {name: by for name, by in shipped.items() if not by <= {"quarry-search"}} == {}
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(r"^dependencies = \[(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    assert block is not None
    named = re.findall(r'^\s+"([A-Za-z0-9._-]+)', block.group(1), re.MULTILINE)
    assert [name for name in named if f"`{name}`" not in text] == []


def test_every_setting_is_described_and_the_page_of_settings_is_up_to_date() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []
    page = settings_table.PAGE.read_text(encoding="utf-8")
    assert page == settings_table.settings_table(), "run `make settings`"


NAMES_IN_A_ROW = re.compile(r"`((?:QUARRY)?_[A-Z_]+)`")


def _expand_names(cell: str) -> list[str]:
    """Return the variables of a row, in which `_KEY` after `QUARRY_EMBEDDING_URL` is `QUARRY_EMBEDDING_KEY`."""
    names: list[str] = []
    for name in NAMES_IN_A_ROW.findall(cell):
        names.append(name if not name.startswith("_") else names[0].rpartition("_")[0] + name)
    return names


def test_the_settings_of_the_readme_have_the_defaults_that_it_says() -> None:
    defaults = settings_table.list_defaults()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`QUARRY_[^|]*)\|[^|]*\|([^|]*)\|$", readme, re.MULTILINE)
    named = [(name, said) for cell, said in rows for name in _expand_names(cell)]
    assert len(named) > 30
    assert [name for name, _ in named if name not in defaults] == []
    assert [(name, said) for name, said in named if defaults[name].strip("`") not in said] == []
