"""Markdown in Slack's own markup, mrkdwn, of which nothing but links and emphasis has an effect.

Whatever a text says, it mentions nobody: `&`, `<` and `>` are escaped everywhere but in the links that are made here,
so that `<!channel>` and `<@U1>` of a document are text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.token import Token

FindAddress: TypeAlias = Callable[[str, str], str]
"""Returns where a link leads, by its label and its target; empty for a link that is shown as its label alone."""


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    # Which addresses may be links is decided by `make_link`: of others, the label is shown.
    vars(parser)["validateLink"] = lambda _: True
    return parser


_PARSER = _make_parser()
_MARKS = {"strong": "*", "em": "_", "s": "~"}
_HARMFUL_IN_LINK = re.compile(r"[<>|\s\x00-\x1f]")
_FENCE = "```"
_LONGEST_ADDRESS, _LONGEST_LABEL = 1_500, 200
"""Characters of a link, which is never cut; a longer address is no link."""
_ZERO_WIDTH_SPACE = "\u200b"


def escape(text: str) -> str:
    """Escape what Slack interprets as a reference or a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def make_link(address: str, label: str) -> str:
    """Return a link; the escaped label alone where the address is none of the web."""
    encoded = _HARMFUL_IN_LINK.sub(lambda found: quote(found.group(), safe=""), address)
    target = encoded.replace("&", "&amp;")
    if not target.lower().startswith(("http://", "https://")) or len(target) > _LONGEST_ADDRESS:
        return escape(label)
    return f"<{target}|{escape(label[:_LONGEST_LABEL]).replace('|', '¦')}>"


def convert(markdown: str, find_address: FindAddress) -> list[str]:
    """Return the paragraphs, lists, quotations, tables and code of a text, each as mrkdwn, in their order."""
    tokens = _PARSER.parse(markdown)
    return [block for block in _convert_blocks(tokens, find_address) if block.strip()]


def _convert_blocks(tokens: Sequence[Token], find_address: FindAddress) -> Iterator[str]:
    at = 0
    while at < len(tokens):
        end = _find_end(tokens, at)
        yield _convert_block(tokens[at : end + 1], find_address)
        at = end + 1


def _find_end(tokens: Sequence[Token], start: int) -> int:
    """Return the place of the token that closes the block which one opens."""
    depth = 0
    for at in range(start, len(tokens)):
        depth += tokens[at].nesting
        if depth == 0:
            return at
    return len(tokens) - 1


def _convert_block(tokens: Sequence[Token], find_address: FindAddress) -> str:
    first, inner = tokens[0], tokens[1:-1]
    match first.type:
        case "fence" | "code_block":
            return _make_code(first.content)
        case "heading_open":
            return f"*{_join_inline(inner, find_address).replace('*', '')}*"
        case "blockquote_open":
            return _indent("\n".join(_convert_blocks(inner, find_address)), "> ", "> ")
        case "bullet_list_open" | "ordered_list_open":
            return "\n".join(_convert_items(first, inner, find_address))
        case "table_open":
            return _make_code("\n".join(_read_rows(inner)))
        case "hr":
            return "———"
        case "html_block":
            return escape(first.content.strip())
        case _:
            return _join_inline(tokens, find_address)


def _make_code(text: str) -> str:
    # A fence inside would end the code, and what follows would be markup.
    inside = escape(text.rstrip("\n")).replace(_FENCE, f"`{_ZERO_WIDTH_SPACE}`{_ZERO_WIDTH_SPACE}`")
    return f"{_FENCE}\n{inside}\n{_FENCE}"


def _indent(text: str, first: str, others: str) -> str:
    return f"{first}{text}".replace("\n", f"\n{others}")


def _convert_items(
    opening: Token, tokens: Sequence[Token], find_address: FindAddress
) -> Iterator[str]:
    number = int(opening.attrGet("start") or 1)
    at = 0
    while at < len(tokens):
        end = _find_end(tokens, at)
        mark = "• " if opening.type == "bullet_list_open" else f"{number}. "
        content = "\n".join(_convert_blocks(tokens[at + 1 : end], find_address))
        yield _indent(content, mark, "    ")
        at, number = end + 1, number + 1


def _read_rows(tokens: Sequence[Token]) -> Iterator[str]:
    row: list[str] = []
    for token in tokens:
        if token.type == "inline":
            row.append(_read_text(token))
        elif token.type == "tr_close":
            yield " | ".join(row)
            row = []


def _read_text(token: Token) -> str:
    return "".join(
        " " if each.type == "softbreak" else each.content for each in token.children or ()
    )


def _join_inline(tokens: Sequence[Token], find_address: FindAddress) -> str:
    inline = (token.children or () for token in tokens if token.type == "inline")
    return "".join(_convert_inline(children, find_address) for children in inline)


def _convert_inline(children: Sequence[Token], find_address: FindAddress) -> str:
    shown: list[str] = []
    at = 0
    while at < len(children):
        token = children[at]
        if token.type == "link_open":
            end = _find_end(children, at)
            label = "".join(each.content for each in children[at + 1 : end])
            shown.append(make_link(find_address(label, str(token.attrGet("href") or "")), label))
            at = end
        else:
            shown.append(_convert_one(token))
        at += 1
    return "".join(shown)


def _convert_one(token: Token) -> str:
    match token.type:
        case "softbreak" | "hardbreak":
            return "\n"
        case "code_inline":
            return f"`{escape(token.content)}`"
        case "image":
            return escape(token.content)
        case _:
            mark = _MARKS.get(token.type.rpartition("_")[0], "")
            return mark or escape(token.content)


def cut(block: str, longest: int) -> Iterator[str]:
    """Cut a block that is longer than a message may be, between lines or words, never within a link or an entity."""
    if block.startswith(f"{_FENCE}\n") and len(block) > longest:
        inside = block.removeprefix(f"{_FENCE}\n").removesuffix(f"\n{_FENCE}")
        for part in cut(inside, longest - 2 * len(_FENCE) - 2):
            yield f"{_FENCE}\n{part}\n{_FENCE}"
        return
    rest = block
    while len(rest) > longest:
        end = _find_cut(rest, longest)
        yield rest[:end].rstrip()
        rest = rest[end:].lstrip("\n ")
    yield rest


def _find_cut(text: str, longest: int) -> int:
    """Return the last place before the limit where a line ends, or else a word, or at least no reference is cut."""
    for separator in ("\n", " "):
        at = text.rfind(separator, longest // 2, longest)
        if at > 0 and _find_reference(text, at) is None:
            return at
    start = _find_reference(text, longest)
    return start or longest


_CUT_REFERENCE = re.compile(r"(?:<[^<>]*|&[a-z]*)$")


def _find_reference(text: str, at: int) -> int | None:
    """Return where the link or the entity begins that a cut at this place would break."""
    found = _CUT_REFERENCE.search(text[:at])
    return found.start() if found else None
