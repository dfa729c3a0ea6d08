"""Every text that a script shows is a message of the catalogs."""

import re
from pathlib import Path

import pytest

from tests.support.messages import SCRIPTS

PATHS = sorted(SCRIPTS.glob("*.js"))
_COMMENT = re.compile(r"/\*.*?\*/|^\s*//.*?$|(?<=\s)//\s.*?$", re.DOTALL | re.MULTILINE)
_TEXT = r'"(?:[^"\\\n]|\\.)*"'
_MESSAGE = re.compile(rf"\btranslate\(\s*{_TEXT}|\bpluralize\(\s*[\w.]+,\s*{_TEXT},\s*{_TEXT}")
_LITERAL = re.compile(rf"(?<![=\w])({_TEXT})|(?<=[\s(:?,\[])`([^`\n]*)`")
_READS = re.compile(r"^[A-Z][a-z]+(?: |[.…]?$)|^[^.\[]*\b[A-Za-z]+ [a-z]+\b")
"""What a person would read: words, or one that begins with a capital."""
_NAMES = {
    # Of keys, headers, classes, channels and failures; of the product and of sources; of months, which no text in Chinese names.
    *("Quarry", "Your files", "Files of this project", "Files of this assistant"),
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    *("Accept", "Delete", "Enter", "Escape", "End", "Files", "Home", "Tab", "Clear"),
    *("quarry conversations", "state done", "state failed", "notice trouble"),
    *("rate limit", "too slow", "nothing found"),
    "noopener noreferrer nofollow",
}


def _texts(source: str) -> list[str]:
    code = _MESSAGE.sub("translate(", _COMMENT.sub("", source))
    found = [(quoted[1:-1] if quoted else made) for quoted, made in _LITERAL.findall(code)]
    texts = [re.sub(r"\$\{[^{}]*\}", "1", text) for text in found]
    return [text for text in texts if _READS.search(text) and text not in _NAMES]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: Path(path).name)
def test_a_script_shows_no_text_outside_a_message(path: Path) -> None:
    assert _texts(path.read_text(encoding="utf-8")) == []


def test_a_text_outside_a_message_is_found() -> None:
    assert _texts('say("Stopped"); say(`Found ${n} passages`); // Say "It is so"') == [
        "Stopped",
        "Found 1 passages",
    ]
    assert _texts('say(translate("Stopped")); on("click", act); send("GET", `/api/${id}`)') == []
