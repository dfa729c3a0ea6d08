"""Code in an answer with its words marked by their roles, as the lexers of Pygments tell them apart."""

from collections.abc import Iterator
from html import escape
from itertools import groupby

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, String, _TokenType

_LANGUAGES = {
    *("bash", "console", "powershell", "sh", "shell"),
    *("perl", "php", "py", "python", "r", "rb", "ruby"),
    *("c", "cpp", "cs", "go", "java", "kotlin", "lua", "rs", "rust", "swift"),
    *("css", "html", "javascript", "js", "jsx", "ts", "tsx", "typescript", "xml"),
    *("diff", "docker", "ini", "json", "nginx", "properties", "sql", "toml", "yaml", "yml"),
}
"""Code without one of these names is shown plain: a guess is often wrong, and there are lexers that take very long."""
MAX_BLOCK_CHARACTERS = 4_000
"""Longer code is shown plain: lexers take time that grows with the square of some texts, half a second for these."""
MAX_ANSWER_CHARACTERS = 3 * MAX_BLOCK_CHARACTERS
"""Of all code in one answer that is marked."""
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


class CodeHighlighter:
    """Marks the code of one answer, as much as `MAX_ANSWER_CHARACTERS` allows."""

    def __init__(self) -> None:
        self._left = MAX_ANSWER_CHARACTERS

    def highlight(self, code: str, language: str, attributes: str = "") -> str:
        """Return code as HTML, a `<span class="code-…">` around what has a role; empty where it is to be shown plain.

        It has the form that markdown-it asks for: `attributes` is what stands behind the language of a fence.
        """
        del attributes
        is_marked = language.lower() in _LANGUAGES and len(code) <= min(
            MAX_BLOCK_CHARACTERS, self._left
        )
        if not is_marked:
            return ""
        self._left -= len(code)
        return "".join(_mark_roles(code, language.lower()))


def _mark_roles(code: str, language: str) -> Iterator[str]:
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    for role, tokens in groupby(lexer.get_tokens(code), lambda token: _find_role(token[0])):
        text = escape("".join(text for _, text in tokens))
        yield f'<span class="code-{role}">{text}</span>' if role else text


def _find_role(kind: _TokenType) -> str | None:
    return next((role for parent, role in _ROLES if kind in parent), None)
