"""What Quarry itself says in a report, in the language of the person's pages."""

from collections.abc import Mapping
from dataclasses import dataclass

from backend.chat.citations.verification import Verdict
from backend.web_search.tool_texts import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTexts:
    contradictions: str
    not_found: str
    notes: str
    checks: str
    sources: str
    table_sources: str
    """Before the numbers of the sources of a table."""
    says: str
    """Of a source: its title, its date, what it says."""
    undated: str
    found_earlier: str
    """Of an earlier finding, in place of its date."""
    counts: str
    marks: Mapping[Verdict, str]
    """Behind a sentence that was found to be so."""


TEXTS: Mapping[Language, ReportTexts] = {
    "en": ReportTexts(
        contradictions="Where sources disagree",
        not_found="Not found",
        notes="How this report came about",
        checks="Checked citations",
        sources="Sources",
        table_sources="Sources of this table:",
        says="{title} ({date}): {says}",
        undated="no date",
        found_earlier="found earlier on {date}",
        counts="Sentences: {sentences}, of them without a source: {uncited}. Citations: {citations}, of them supported:"
        " {supported}, weak: {weak}, unsupported: {unsupported}, contradicted: {contradicted}, unchecked: {unchecked}.",
        marks={
            Verdict.UNSUPPORTED: "*(its source does not say this)*",
            Verdict.CONTRADICTED: "*(its source contradicts this)*",
        },
    ),
    "zh": ReportTexts(
        contradictions="来源之间的矛盾",
        not_found="未找到的内容",
        notes="报告的形成",
        checks="引用核查",
        sources="来源",
        table_sources="本表来源：",
        says="{title}（{date}）：{says}",
        undated="无日期",
        found_earlier="此前于 {date} 查得",
        counts="句子：{sentences}，其中无来源：{uncited}。引用：{citations}，其中有依据：{supported}，依据不足：{weak}，"
        "无依据：{unsupported}，相矛盾：{contradicted}，未核查：{unchecked}。",
        marks={
            Verdict.UNSUPPORTED: "*（来源未提及）*",
            Verdict.CONTRADICTED: "*（来源说法不同）*",
        },
    ),
}
