"""Every citation of a report is checked before it is shown: what its source does not say is reworded, or marked."""

import json
import re
from collections.abc import Callable

import pytest

from backend.chat.citations.verification import Verdict
from backend.research.events import ReportChecked
from backend.research.record.final_report import FinalReport
from tests.support.research_world import check_run, list_markers, research_world
from tests.support.scripted_model import Json, Refuse, Reply, Request, Say

FACTS = {
    "kb:price": "The Aster pump costs 40 EUR.",
    "kb:weight": "The Aster pump weighs 12 kg.",
}
QUESTION = "What does the Aster pump cost?"
WRONG = "The Aster pump costs 90 EUR"


def number_of(values: Json, sentence: str) -> str:
    """The marker that a report gives a sentence."""
    text = " ".join(one["report"] for one in values["reports"])
    found = re.search(rf"{sentence} (\[\d+\])", text)
    assert found is not None
    return found[1]


def falsify(values: Json, _: Request) -> Reply:
    price = number_of(values, "The Aster pump costs 40 EUR")
    weight = number_of(values, "The Aster pump weighs 12 kg")
    return Say(
        f"## Price\n\n{WRONG} {price}. The Aster pump weighs 12 kg {weight}.\n\nIt is sold in three colours."
    )


def write(text: str) -> Callable[[Json, Request], Reply]:
    def reword(values: Json, _: Request) -> Reply:
        return Say(
            json.dumps(
                {
                    "sentences": [
                        {"number": one["number"], "text": text} for one in values["sentences"]
                    ]
                }
            )
        )

    return reword


def report_of(**steps: Callable[[Json, Request], Reply]) -> tuple[FinalReport, list[Json]]:
    with research_world(FACTS) as world:
        world.model.steps = {"final_report": falsify, **steps}
        report = check_run(world, world.run(QUESTION))
        assert world.of_kind(ReportChecked) == [ReportChecked(report.counts, report.documents)]
        return report, world.model.of("reword")


def test_a_sentence_that_its_source_contradicts_is_written_anew_by_its_passage() -> None:
    report, asked = report_of()
    (sentences,) = asked
    (entry,) = sentences["sentences"]
    assert (entry["verdict"], entry["sentence"]) == (
        "contradicted",
        f"{WRONG} [{list_markers(entry['sentence'])[0]}].",
    )
    assert "The Aster pump costs 40 EUR." in entry["passages"][0]["content"]
    assert report.text.startswith(
        "## Price\n\nThe Aster pump costs 40 EUR [1]. The Aster pump weighs"
    )
    assert {one.verdict for one in report.citations} == {Verdict.SUPPORTED}
    assert (report.counts.sentences, report.counts.uncited) == (3, 1)
    assert "Sentences: 3, of them without a source: 1. Citations: 2," in report.markdown
    assert report.counts.citations == 2
    assert (report.counts.supported, report.counts.contradicted) == (2, 0)


@pytest.mark.parametrize(
    "reword",
    [
        lambda *_: Refuse(500),
        lambda *_: Say("no"),
        write(""),
        write("The Aster pump costs 90 EUR, surely [1]."),
        write("The Aster pump costs nothing."),
        write("The Aster pump costs 40 EUR [99]."),
    ],
)
def test_what_is_not_mended_is_marked(reword: Callable[[Json, Request], Reply]) -> None:
    report, asked = report_of(reword=reword)
    assert asked
    assert f"{WRONG} [1]. *(its source contradicts this)* The Aster pump weighs" in report.text
    assert report.counts.contradicted == 1
    assert report.counts.supported == 1
    assert "contradicted: 1" in report.markdown


def test_what_no_passage_mentions_is_marked() -> None:
    def invent(values: Json, _: Request) -> Reply:
        price = number_of(values, "The Aster pump costs 40 EUR")
        return Say(f"Elephants sleep in Botswana's rivers every winter {price}.")

    report, _ = report_of(final_report=invent, reword=lambda *_: Say("no"))
    assert report.counts.unsupported == 1
    assert report.text.endswith("[1]. *(its source does not say this)*")


def test_reasoning_and_a_list_of_sources_are_no_part_of_the_report() -> None:
    def write_more(values: Json, request: Request) -> Reply:
        said = falsify(values, request)
        assert isinstance(said, Say)
        return Say(
            f"<think>Hm [2].</think>{said.text}\n\n## Sources\n\n[1] About kb:price\n[2] More"
        )

    report, _ = report_of(final_report=write_more)
    assert "Hm" not in report.text
    assert "## Sources" not in report.text
    assert report.markdown.count("## Sources") == 1


def test_a_number_that_no_source_has_cites_nothing() -> None:
    def write_more(values: Json, _: Request) -> Reply:
        price = number_of(values, "The Aster pump costs 40 EUR")
        return Say(f"The Aster pump costs 40 EUR {price}. It is blue [57].")

    report, _ = report_of(final_report=write_more)
    assert report.text == "The Aster pump costs 40 EUR [1]. It is blue \\[57\\]."
    assert [one.number for one in report.sources] == [1]


def test_a_contradiction_that_a_source_does_not_say_is_left_out() -> None:
    def find(values: Json, _: Request) -> Reply:
        numbers = [one["source"] for one in values["sources"]]
        invented = [
            {"source": numbers[0], "says": "The Aster pump costs 1,000 EUR."},
            {"source": numbers[1], "says": "The Aster pump costs 2,000 EUR."},
        ]
        return Say(json.dumps({"contradictions": [{"about": "the price", "statements": invented}]}))

    report, _ = report_of(contradictions=find)
    assert report.contradictions == ()
    assert "Where sources disagree" not in report.markdown


def test_nothing_of_a_source_is_markup_of_the_report() -> None:
    with research_world(
        {"kb:<b>x</b>[9](http://evil.example)": "The Aster pump costs 40 EUR."}
    ) as world:
        report = check_run(world, world.run(QUESTION))
    sources = report.markdown.partition("## Sources")[2]
    assert "](http://evil.example)" not in sources
    assert "[About kb:\\<b>x\\</b>\\[9\\](http" in sources
