"""Code in an answer with its words marked by their roles, as the lexers of Pygments tell them apart."""

from collections.abc import Iterator
from html import escape
from itertools import groupby

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, String, _TokenType

_LANGUAGES = {
    *("bash", "console", "make", "powershell", "sh", "shell"),
    *("perl", "php", "py", "python", "r", "rb", "ruby"),
    *("c", "cpp", "cs", "go", "java", "kotlin", "lua", "rs", "rust", "scala", "swift"),
    *("css", "html", "javascript", "js", "jsx", "ts", "tsx", "typescript", "xml"),
    *("diff", "docker", "ini", "json", "nginx", "properties", "sql", "toml", "yaml", "yml"),
}
"""Code without one of these names is shown plain: a guess is often wrong, and there are lexers that take very long."""
LONGEST_CODE = 20_000
"""Characters; longer code is shown plain."""
_ROLES: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "comment"),
    (Keyword, "keyword"),
    (Name.Tag, "keyword"),
    (Name.Function, "name"),
    (Name.Class, "name"),
    (Name.Attribute, "name"),
    (String, "string"),
    (Number, "number"),
    (Generic.Inserted, "string"),
    (Generic.Deleted, "number"),
    (Generic.Heading, "name"),
)


def highlight_code(code: str, language: str, attributes: str = "") -> str:
    """Return code as HTML, a `<span class="code-…">` around what has a role; empty where it is to be shown plain.

    It has the form that markdown-it asks for: `attributes` is what stands behind the language of a fence.
    """
    del attributes
    if language.lower() not in _LANGUAGES or len(code) > LONGEST_CODE:
        return ""
    return "".join(_mark_roles(code, language.lower()))


def _mark_roles(code: str, language: str) -> Iterator[str]:
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    for role, tokens in groupby(lexer.get_tokens(code), lambda token: _find_role(token[0])):
        text = escape("".join(text for _, text in tokens))
        yield f'<span class="code-{role}">{text}</span>' if role else text


def _find_role(kind: _TokenType) -> str | None:
    return next((role for parent, role in _ROLES if kind in parent), None)
