"""A home that version 0.1.0 made at commit 382d319 opens, is searched, synced and answers.

The sample holds a database, an index of one machine and the folder that was indexed: four documents in
five chunks, one of them restricted, and an empty file that could not be read.
"""

import tarfile
from pathlib import Path

import pytest

from tests.support.home import Home

SAMPLE = Path(__file__).parent / "samples" / "home-382d319.tar.gz"


@pytest.fixture
def earlier(tmp_path: Path) -> Home:
    with tarfile.open(SAMPLE) as sample:
        sample.extractall(tmp_path, filter="data")
    (tmp_path / "home").rename(tmp_path / "state")
    return Home(tmp_path)


def _titles(home: Home, query: str, *options: str) -> list[str]:
    run = home.quarry("search", query, *options, "--json")
    titles = [result["title"] for result in run.json["results"]]
    assert run.code == (0 if titles else 1), run.err
    return titles


@pytest.mark.soak("release")
def test_it_is_searched_as_it_is(earlier: Home) -> None:
    assert _titles(earlier, "warranty of a used scanner")[0] == "Warranty"
    assert _titles(earlier, "E-2207")[0] == "Travel"
    assert _titles(earlier, "有給休暇")[0] == "有給休暇"
    assert "Salaries" not in _titles(earlier, "when are salaries reviewed")
    reader = ("--as", "group:finance")
    assert _titles(earlier, "when are salaries reviewed", *reader)[0] == "Salaries"


@pytest.mark.soak("release")
def test_its_documents_failures_and_runs_are_listed(earlier: Home) -> None:
    documents = {one["id"] for one in earlier.quarry("documents", "--json").json}
    assert documents == {
        "handbook:handbook.md",
        "handbook:notes/warranty.md",
        "handbook:notes/休暇.md",
        "handbook:salaries.md",
    }
    (failure,) = earlier.quarry("failures", "--json").json
    assert (failure["document_id"], failure["reason"]) == ("handbook:empty.md", "the file is empty")
    (run,) = earlier.quarry("sources", "runs", "handbook", "--json").json
    assert run["counts"]["documents"] == 4


@pytest.mark.soak("release")
def test_it_answers_and_shows(earlier: Home) -> None:
    answer = earlier.quarry("ask", "How long is the warranty on a used scanner?", "--json").json
    assert "six months" in answer["answer"]
    shown = earlier.quarry("show", "handbook:notes/warranty.md", "--json").json
    assert "two years" in shown["sections"][0]["text"]


@pytest.mark.smoke  # a change of the database that breaks homes of before is noticed with it, not days later
@pytest.mark.deep("release")
def test_a_sync_embeds_only_what_changed(earlier: Home) -> None:
    folder = earlier.path / "handbook"
    moved = earlier.quarry("sources", "edit", "handbook", "--path", str(folder))
    assert moved.code == 0, moved.err
    (folder / "notes" / "warranty.md").write_text("# Warranty\n\nA used scanner has one year.\n")
    run = earlier.quarry("sync", "handbook", "--json")
    (report,) = run.json
    assert report["embedded"] == 1, run.out
    found = earlier.quarry("search", "warranty of a used scanner", "--json").json["results"]
    assert "one year" in found[0]["content"]


@pytest.mark.soak("release")
def test_its_documents_are_put_into_a_set_without_embedding_anything(earlier: Home) -> None:
    added = earlier.quarry("sets", "add", "Rules", "--folder", "handbook:notes", "--json")
    assert (added.json["is_applied"], added.json["count"]) == (True, 2), added.err
    assert _titles(earlier, "warranty of a used scanner", "--set", "Rules")[0] == "Warranty"
    assert "Travel" not in _titles(earlier, "E-2207", "--set", "Rules")
    assert earlier.quarry("sets", "edit", "Rules", "--folder", "handbook:none").code == 0
    assert _titles(earlier, "warranty of a used scanner", "--set", "Rules") == []
