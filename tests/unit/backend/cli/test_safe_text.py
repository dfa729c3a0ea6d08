"""Nothing that a document or a file name says steers the terminal, or reorders its lines."""

import json

import pytest
import typer

from backend.cli import command_line

STEERING = [
    *map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)),
    *map(chr, (*range(0xFFF9, 0xFFFC), 0xD800, 0xDFFF, 0x00, 0x1B, 0x7F, 0x9B)),
]
TITLE = "Plan " + "x".join(STEERING) + " end"


def test_what_steers_a_terminal_is_replaced_in_texts(capsys: pytest.CaptureFixture[str]) -> None:
    command_line.console().print(command_line.to_safe_text(TITLE), soft_wrap=True)
    printed = capsys.readouterr().out
    assert printed == "Plan " + "x".join("�" for _ in STEERING) + " end\n"


def test_it_is_replaced_in_errors(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        command_line.fail(f"{TITLE} cannot be read.", as_json=False)
    printed = capsys.readouterr().err
    assert printed.endswith("� end cannot be read.\n")
    assert not any(each in printed for each in STEERING)


def test_it_is_escaped_in_json_which_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    command_line.print_json({"title": f"{TITLE} Größe 計画"})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"title": f"{TITLE} Größe 計画"}
    assert "Größe 計画" in printed
    assert not any(each in printed for each in STEERING)
