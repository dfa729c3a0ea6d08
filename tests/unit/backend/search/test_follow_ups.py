"""What a follow-up means, by rules: conversations that a reader can check by eye."""

import pytest

from backend.search.follow_ups import resolve_follow_up
from backend.search.llm_protocol import ChatMessage


def _history(*questions: str) -> list[ChatMessage]:
    return [
        ChatMessage(role, text)  # type: ignore[arg-type]
        for question in questions
        for role, text in (("user", question), ("assistant", "So it is written [1]."))
    ]


LEAVE = "How many days of parental leave did employees get in 2023?"
TRAVEL = "Who approves travel requests by train?"
EXPENSE = "How do I file an expense report for a taxi?"
NIANJIA = "员工2023年有多少天带薪年假？"
BAOXIAO = "出差住宿费用的报销标准是什么？"


@pytest.mark.parametrize(
    ("asked", "message", "meant"),
    [
        # Another year takes the place of the one before.
        ([LEAVE], "and in 2024?", LEAVE.replace("2023", "2024")),
        ([LEAVE], "What about 2022?", LEAVE.replace("2023", "2022")),
        ([LEAVE, "and in 2024?"], "And 2025?", LEAVE.replace("2023", "2025")),
        ([NIANJIA], "那2024年呢？", "员工2024年有多少天带薪年假？"),
        ([NIANJIA], "2022年呢", "员工2022年有多少天带薪年假？"),
        # Another thing is asked together with the question before.
        ([TRAVEL], "what about flights?", f"{TRAVEL} flights?"),
        ([TRAVEL], "And how about flights to Japan?", f"{TRAVEL} flights to Japan?"),
        ([TRAVEL], "ok, and for contractors?", f"{TRAVEL} for contractors?"),
        ([TRAVEL], "and in 2024?", f"{TRAVEL} in 2024?"),
        ([BAOXIAO], "那交通费呢？", f"{BAOXIAO} 交通费"),
        ([BAOXIAO], "还有餐费呢？", f"{BAOXIAO} 餐费"),
        # Pronouns.
        ([EXPENSE], "When does it have to be submitted to finance?", None),
        ([EXPENSE], "Who signs it?", None),
        ([TRAVEL], "How long do they usually take to answer requests?", None),
        ([TRAVEL], "Does that apply to interns in their first month?", None),
        ([BAOXIAO], "它什么时候生效？", None),
        ([BAOXIAO], "这个由哪个部门审批？", None),
        # A question of few words.
        (["When is the summer party?"], "Their address?", None),
        (
            ["Which printer is on floor 3?", "thanks"],
            "and on floor 4?",
            "Which printer is on floor 3? on floor 4?",
        ),
        (["实习生有多少天年假？"], "那正式员工呢？", "实习生有多少天年假？ 正式员工"),
        (["打印机在几楼？"], "它什么时候维修？", None),
        # Back to the question that stands by itself.
        ([EXPENSE, "Who signs it?"], "and by when?", f"{EXPENSE} by when?"),
    ],
)
def test_what_is_meant(asked: list[str], message: str, meant: str | None) -> None:
    found = resolve_follow_up(message, _history(*asked))
    assert found.question == (meant or f"{asked[0]} {message}")
    assert found.unclear == ""


@pytest.mark.parametrize(
    "message",
    [
        "How do I install the printer and connect it to the network?",
        "Is it possible to carry unused vacation into next year?",
        "What does the handbook say about that part of the contract?",
        "Which courses does the company pay for this year?",
        "What happens when E-2207 shows on it?",
        "And yet another long question that names everything it needs by itself, such as trains?",
        "VPN password",
        "公司2024年的年假政策是什么？",
        "其他部门的报销流程是什么？",
        "这里的无线网络密码是什么？",
    ],
)
def test_what_stands_by_itself_stays(message: str) -> None:
    assert resolve_follow_up(message, _history(TRAVEL, BAOXIAO)).question == message


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("What about the second one?", "the second one"),
        ("Who wrote the former?", "the former"),
        ("第二个呢？", "第二个"),
        ("第二种多少钱？", "第二种"),
        ("后者需要多久？", "后者"),
    ],
)
def test_where_no_rule_can_tell_that_is_said(message: str, named: str) -> None:
    found = resolve_follow_up(message, _history(TRAVEL))
    assert found.unclear == (
        f"only a language model can tell what “{named}” means here. Ask a complete question."
    )
    assert found.question.startswith(TRAVEL)


def test_without_a_question_to_lean_on_that_is_said() -> None:
    found = resolve_follow_up("and in 2024?", _history("and by bike?"))
    assert found.question == "and in 2024?"
    assert found.unclear.startswith("none of your last questions can be searched on its own")
    assert resolve_follow_up("and in 2024?", []).unclear == ""
