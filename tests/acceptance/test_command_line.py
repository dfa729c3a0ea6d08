"""The product as a person uses it: the real command, a home of its own, the sample handbook."""

from pathlib import Path

import pytest

from tests.support.home import Home


@pytest.mark.smoke
def test_help_needs_no_home(tmp_path: Path) -> None:
    run = Home(tmp_path / "missing").quarry("--help")
    assert run.code == 0
    assert "search" in run.out


def test_a_second_sync_embeds_nothing(home: Home) -> None:
    (report,) = home.quarry("sync", "handbook", "--json").json
    assert (report["embedded"], report["documents"], report["deleted"]) == (0, 0, 0)


def test_search_finds_and_explains(home: Home) -> None:
    run = home.quarry("search", "QX-4031", "--explain", "--json")
    assert run.code == 0, run.err
    first = run.json["results"][0]
    assert first["document_id"] == "handbook:support/error-codes-scanners.html"
    assert first["number"] == 1
    assert "QX-4031" in first["content"]
    assert "exact" in {why["leg"] for why in first["why"]}


def test_a_misspelled_word_is_searched_as_the_nearest_one(home: Home) -> None:
    corrected = home.quarry("search", "perfomance reveiw")
    assert "Showing results for: performance review" in corrected.out
    assert "performance-reviews.docx" in corrected.out
    assert home.quarry("search", "--verbatim", "perfomance").code == 1


def test_words_are_read_as_filters(home: Home) -> None:
    query = "report of an incident in March 2025"
    run = home.quarry("search", query)
    assert "First, for “in March 2025”: date: updated 2025-03-01 to 2025-03-31" in run.out
    assert f"quarry search --verbatim '{query}'" in run.out
    assert "First, for" not in home.quarry("search", "--verbatim", query).out
    inferred = home.quarry("search", query, "--json").json["inferred"]
    assert [(one["kind"], one["words"]) for one in inferred] == [("date", "in March 2025")]


def test_a_document_that_another_replaces_stands_below_it(home: Home) -> None:
    run = home.quarry("search", "travel expenses meals", "--group", "document", "--json")
    found = {one["document_id"].rpartition("/")[2]: one for one in run.json["results"]}
    names = list(found)
    old, new = "travel-expenses-2023.md", "travel-expenses-2025.md"
    assert names.index(old) == names.index(new) + 1
    assert found[old]["superseded_by"]["document_id"] == found[new]["document_id"]
    assert {name for name, one in found.items() if one["superseded_by"]} == {old}
    assert "superseded by “Travel expenses”" in home.quarry("search", "travel expenses meals").out


def test_filters_narrow(home: Home) -> None:
    run = home.quarry("search", "warranty", "--type", "application/pdf", "--json")
    assert {one["document_id"].rpartition(".")[2] for one in run.json["results"]} == {"pdf"}
    late = home.quarry("search", "travel expenses", "--since", "2025-01-01", "--json").json
    assert all(one["updated_at"] >= "2025" for one in late["results"])


def test_people_are_named_by_name_or_by_address(home: Home) -> None:
    def found(person: str) -> set[str]:
        body = home.quarry("search", "diamond wires", "--person", person, "--json").json
        return {one["document_id"] for one in body["results"]}

    recall = "handbook:mail/2026-09-08-wire-batch-recall.eml"
    assert found("Kwabena.Ansah@karsthal.example") == {recall}
    assert recall in found("kwabena  ANSAH")
    assert found("nobody") == set()


def test_an_answer_quotes_what_stands_there(home: Home) -> None:
    run = home.quarry("ask", "What should a customer do when the scanner shows QX-4031?", "--json")
    assert run.code == 0, run.err
    answer = run.json
    assert answer["model"] is None
    (first, *_) = answer["citations"]
    shown = home.quarry("show", first["document_id"], "--json").json
    start, end = first["span"]
    assert shown["sections"][first["section"]]["text"][start:end] == first["quote"]
    assert f"[{first['number']}]" in answer["answer"]


def test_what_nothing_answers_is_said_to_be_so(home: Home) -> None:
    answer = home.quarry("ask", "When is this year's company football tournament?", "--json").json
    assert answer["citations"] == []
    assert answer["answered"] is False
    assert answer["answer"] == "Nothing that you may read seems to answer this."


def test_without_a_model_passages_are_shown_and_what_answers_is_highlighted(home: Home) -> None:
    question = "What should a customer do when the scanner shows QX-4031?"
    answer = home.quarry("ask", question, "--json").json
    assert answer["answered"] is True
    assert {citation["verdict"] for citation in answer["citations"]} == {"verbatim"}
    first = answer["passages"][0]
    assert first["title"] == "Error codes of the Stonesight scanners"
    assert first["place"] == "QX-4031: laser interlock open"
    assert any("Close the cover" in run["text"] for run in first["runs"] if run["highlighted"])
    shown = home.quarry("ask", question).out
    assert "No language model is set. These passages come closest." in shown
    assert "Error codes of the Stonesight scanners › QX-4031" in shown


def test_what_seems_not_to_be_answered_lists_the_closest_passages_shortly(home: Home) -> None:
    shown = home.quarry("ask", "When is this year's company football tournament?").out
    assert shown.startswith("Nothing that you may read seems to answer this.")
    assert "These passages come closest" not in shown


@pytest.mark.parametrize(
    ("readers", "code"),
    [
        ((), 1),  # public only
        (("--as", "group:leadership"), 1),  # another group
        (("--as", "group:finance"), 0),
    ],
)
def test_a_restricted_document_is_shown_to_its_readers_alone(
    home: Home, readers: tuple[str, ...], code: int
) -> None:
    document = "handbook:finance/salary-bands-2026.xlsx"
    assert home.quarry("show", document, *readers).code == code
    found = home.quarry("search", "salary band of a senior engineer", *readers, "--json").json
    assert any(one["document_id"] == document for one in found["results"]) is (code == 0)


def test_forbidden_and_missing_look_alike(home: Home) -> None:
    forbidden = home.quarry("show", "handbook:finance/salary-bands-2026.xlsx")
    missing = home.quarry("show", "handbook:finance/salary-bands-2027.xlsx")
    assert forbidden.code == missing.code == 1
    assert forbidden.err.replace("2026", "2027") == missing.err


def test_a_document_is_shown_by_its_file_name_and_an_ambiguous_one_names_its_ids(
    home: Home,
) -> None:
    assert "Parental leave" in home.quarry("show", "parental-leave.md").out
    assert home.quarry("show", "salary-bands-2026.xlsx").code == 1


def test_a_file_is_answered_from(home: Home, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("# Canteen\n\nThe canteen in Graz serves lunch from 11:30 to 13:45.\n")
    answer = home.quarry(
        "ask", "When does the canteen in Graz serve lunch?", "--file", str(note), "--json"
    ).json
    assert "11:30" in answer["answer"]
    assert answer["citations"][0]["link"] == note.as_uri()


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "x", "--as", "everybody"),  # not a reader token
        ("search", "x", "--as", "all:00ff"),  # derived, so nobody may claim it
        ("search", "x", "--since", "soon"),  # not a day
        ("search", "   "),  # nothing to look for
        ("search", "x", "--limit", "0"),
        ("add", "folder", "/nowhere/at/all"),
        ("add", "folder", "/", "--name", "a:b"),  # ids begin with the name and a colon
        ("quarry",),
    ],
)
def test_wrong_use_is_refused(home: Home, arguments: tuple[str, ...]) -> None:
    run = home.quarry(*arguments)
    assert run.code == 2
    assert "Traceback" not in run.err


def test_a_wrong_setting_is_named(home: Home) -> None:
    run = home.quarry("sources", QUARRY_THREADS="many")
    assert run.code == 2
    assert "QUARRY_THREADS" in run.err


def test_another_model_is_refused_with_what_to_do(home: Home, tmp_path: Path) -> None:
    run = home.quarry("search", "x", QUARRY_EMBEDDING_MODEL=str(tmp_path / "nothing"))
    assert run.code == 1
    assert "Traceback" not in run.err
    assert str(tmp_path / "nothing") in run.err.replace("\n", "")


def test_doctor_speaks_of_every_part(home: Home) -> None:
    checks = {check["name"]: check for check in home.quarry("doctor", "--json").json}
    assert list(checks) == [
        "settings",
        "database",
        "model",
        "languages",
        "index",
        "language model",
        "identity provider",
        "calculations",
    ]
    assert checks["index"]["state"] == "ok"
    assert checks["language model"]["state"] == "off"
    assert checks["identity provider"]["state"] == "off"
    assert checks["calculations"]["state"] == "ok"


def test_a_broken_file_is_named_and_stops_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "good.md").write_text("# Good\n\nThe gate code is 4711.\n")
    (folder / "bad.pdf").write_bytes(b"%PDF-1.7 and then nothing of a PDF")
    home = Home(tmp_path)
    home.quarry("add", "folder", str(folder), "--name", "docs")
    run = home.quarry("sync", "--json")
    assert run.code == 3
    assert [one["item"] for one in run.json[0]["unreadable"]] == ["bad.pdf"]
    (failure,) = home.quarry("failures", "--json").json
    assert (failure["source"], failure["item"], failure["tries"]) == ("docs", "bad.pdf", 1)
    assert home.quarry("search", "gate code", "--json").json["results"]


def test_edit_rename_and_delete_change_exactly_those(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("a", "b", "c", "d"):
        (folder / f"{name}.md").write_text(f"# Note {name}\n\nThe word of {name} is {name}word.\n")
    home = Home(tmp_path)
    home.quarry("add", "folder", str(folder), "--name", "docs")
    assert home.quarry("sync").code == 0
    (folder / "a.md").write_text("# Note a\n\nThe word is now changedword.\n")
    (folder / "b.md").rename(folder / "moved.md")
    (folder / "c.md").unlink()
    (report,) = home.quarry("sync", "--json").json
    assert (report["documents"], report["deleted"]) == (2, 2)
    held = {one["id"] for one in home.quarry("documents", "--json").json}
    assert held == {"docs:a.md", "docs:moved.md", "docs:d.md"}


def test_readers_follow_the_access_file_without_embedding(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "plan.md").write_text("# Plan\n\nThe plan is to buy a quarry.\n")
    home = Home(tmp_path)
    home.quarry("add", "folder", str(folder), "--name", "docs")
    home.quarry("sync")
    assert home.quarry("search", "plan", "--json").code == 0
    (folder / "access.yaml").write_text("rules:\n- match: '**'\n  readers: [group:owners]\n")
    (report,) = home.quarry("sync", "--json").json
    assert (report["amended"], report["embedded"]) == (1, 0)
    assert home.quarry("search", "plan", "--json").code == 1
    assert home.quarry("search", "plan", "--as", "group:owners", "--json").code == 0


def test_a_malformed_access_file_fails_the_sync_with_its_line(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "access.yaml").write_text("rules:\n- match: '**'\n  readers: [everybody]\n")
    home = Home(tmp_path)
    home.quarry("add", "folder", str(folder), "--name", "docs")
    run = home.quarry("sync", "--json")
    assert run.code == 1
    assert "line 3" in run.json[0]["error"]


def test_a_source_that_seems_empty_keeps_its_documents_until_that_is_accepted(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "plan.md").write_text("# Plan\n\nThe plan is to buy a quarry.\n")
    home = Home(tmp_path)
    home.quarry("add", "folder", str(folder), "--name", "docs")
    home.quarry("sync")
    (folder / "plan.md").unlink()
    refused = home.quarry("sync")
    assert refused.code == 1
    assert "quarry sources decision docs" in refused.out + refused.err
    assert home.quarry("search", "plan").code == 0
    assert home.quarry("sync", "--accept-empty").code == 0
    assert home.quarry("search", "plan").code == 1


def test_a_misspelled_question_is_answered(home: Home) -> None:
    question = "How many days of parentel leave do fathers get?"
    misspelled = home.quarry("ask", question, "--json").json
    assert "parental-leave.md" in misspelled["citations"][0]["document_id"]
