"""What a follow-up means, by rules: conversations that a reader can check by eye."""

import time

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
        (["那2023年的年假政策是什么？"], "那2024年呢？", "那2024年的年假政策是什么？"),
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


WARRANTY = "How long is the warranty on a scanner?"
S5 = "How long is the warranty of the Stonesight S5?"
PARENTAL = "How long is parental leave?"
SHIFT = "When does the shift in Graz begin?"
BAOXIU = "保修期是多久？"
ZHUSU = "扫描仪的保修期是多久？"


@pytest.mark.parametrize(
    ("asked", "message", "meant"),
    [
        # A subject of its own takes the place of the subject.
        ([WARRANTY], "What about parental leave?", PARENTAL),
        ([S5], "And parental leave?", PARENTAL),
        (["How long is the warranty?"], "what about sick leave", "How long is sick leave?"),
        ([PARENTAL], "What about gifts from suppliers?", "How long are gifts from suppliers?"),
        (["Where is the canteen?"], "And the library?", "Where is the library?"),
        (["When is the summer party?"], "And the exams?", "When is the summer party? the exams?"),
        (["How much does the dock cost?"], "And the cable?", "How much does the cable cost?"),
        ([SHIFT], "And the canteen?", "When does the canteen in Graz begin?"),
        ([WARRANTY], "But is that paid?", f"{WARRANTY} is that paid?"),
        # Codes, names and amounts.
        (["What does E-2207 mean?"], "And E-2270?", "What does E-2270 mean?"),
        ([TRAVEL, "and flights?"], "And who signs them?", f"{TRAVEL} flights? who signs them?"),
        ([SHIFT], "What about Leeds?", "When does the shift in Leeds begin?"),
        ([SHIFT, "What about Leeds?"], "And the canteen?", "When does the canteen in Leeds begin?"),
        (
            ["Who approves a purchase of 10,000 euros?"],
            "And 50,000 euros?",
            "Who approves a purchase of 50,000 euros?",
        ),
        # Where the place is not known, both are asked.
        ([WARRANTY], "What about the saws?", f"{WARRANTY} the saws?"),
        (
            ["How long is the warranty?"],
            "And the scanners?",
            "How long is the warranty? the scanners?",
        ),
        ([TRAVEL, "what about flights?"], "and ships?", f"{TRAVEL} ships?"),
        # Later questions are of what was asked last.
        (
            [WARRANTY, "What about parental leave?"],
            "Can it be taken in two parts?",
            f"{PARENTAL} Can it be taken in two parts?",
        ),
        (
            [TRAVEL, "what about flights?"],
            "Who pays for them?",
            f"{TRAVEL} flights? Who pays for them?",
        ),
        ([TRAVEL, "and for contractors?"], "and in 2024?", f"{TRAVEL} in 2024?"),
        ([LEAVE, "for how long?", "and 2024?"], "why?", f"{LEAVE.replace('2023', '2024')} why?"),
        (
            [WARRANTY, "Where is the canteen?"],
            "When does it open?",
            "Where is the canteen? When does it open?",
        ),
        (
            ["Hello", "What about parental leave?"],
            "Can it be split?",
            "parental leave Can it be split?",
        ),
        # What asks for more is no question to lean on.
        ([WARRANTY], "Tell me more", WARRANTY),
        ([WARRANTY], "and?", WARRANTY),
        ([WARRANTY], "Why?", f"{WARRANTY} Why?"),
        ([WARRANTY, "Tell me more"], "And what about the saws?", f"{WARRANTY} the saws?"),
        (
            [WARRANTY, "tell me more about it", "why?", "and?"],
            "Who pays for it?",
            f"{WARRANTY} Who pays for it?",
        ),
        (
            [WARRANTY, "Thanks a lot for your help!"],
            "Who pays for it?",
            f"{WARRANTY} Who pays for it?",
        ),
        ([WARRANTY, "What do you do?"], "Who pays for it?", f"{WARRANTY} Who pays for it?"),
        ([WARRANTY], "Warum?", f"{WARRANTY} Warum?"),
        ([WARRANTY], "pourquoi ?", f"{WARRANTY} pourquoi ?"),
        ([WARRANTY], "Cuéntame más", WARRANTY),
        (["保証期間は何年ですか。"], "もっと詳しく", "保証期間は何年ですか。"),
        # A question with its own question word stands by itself.
        ([WARRANTY], "And how long is parental leave?", "And how long is parental leave?"),
        (
            [WARRANTY, "And how long is parental leave?"],
            "Is it paid?",
            "how long is parental leave? Is it paid?",
        ),
        # The same in Chinese.
        ([BAOXIU], "育儿假呢？", "育儿假是多久？"),
        ([BAOXIU, "育儿假呢？"], "它可以分两次休吗？", "育儿假是多久？ 它可以分两次休吗？"),
        ([ZHUSU], "那锯床呢？", f"{ZHUSU} 锯床"),
        ([ZHUSU, "那锯床呢？"], "它由谁维修？", f"{ZHUSU} 锯床 它由谁维修？"),
        ([ZHUSU], "为什么呢？", f"{ZHUSU} 为什么呢？"),
        ([ZHUSU, "为什么？", "继续"], "那锯床呢？", f"{ZHUSU} 锯床"),
        ([ZHUSU], "还有吗？", ZHUSU),
        ([ZHUSU], "那个呢？", f"{ZHUSU} 那个"),
        ([BAOXIU], "在北京呢？", f"{BAOXIU} 在北京"),
        ([BAOXIU, "育儿假呢？"], "那2024年呢？", "育儿假是多久？ 2024年"),
    ],
)
def test_what_is_asked_of_something_else(asked: list[str], message: str, meant: str) -> None:
    found = resolve_follow_up(message, _history(*asked))
    assert found.question == meant
    assert found.unclear == ""


@pytest.mark.parametrize(
    ("message", "subject"),
    [
        ("What about flights?", "flights"),
        ("ok, and for contractors?", "contractors"),
        ("And travel by bus?", "bus"),
        ("And the requests?", ""),
        ("And above 50?", ""),
        ("那交通费呢？", "交通费"),
        ("and in 2024?", ""),
        ("and by when?", ""),
        ("Who signs it?", ""),
        ("tell me more", ""),
    ],
)
def test_an_answer_has_to_speak_of_what_a_follow_up_names(message: str, subject: str) -> None:
    assert resolve_follow_up(message, _history(TRAVEL)).subject == subject


@pytest.mark.parametrize(
    "message",
    ["Tell me more", "why?", "and?", "What does that cost?", "为什么？", "继续", "Warum?"],
)
@pytest.mark.parametrize("asked", ["Hello", "Tell me more", "谢谢"])
def test_where_nothing_was_asked_before_that_is_said(asked: str, message: str) -> None:
    found = resolve_follow_up(message, _history(asked))
    assert found.question == message
    assert found.unclear.startswith("none of your last questions can be searched on its own")


@pytest.mark.parametrize(
    "text",
    [
        "How long is " + "a of " * 20_000,
        "When does " + "." * 80_000 + " x",
        "1" * 80_000 + " euros",
        "Who is in " + "Graz " * 16_000,
        "and " * 20_000,
        "ok, " * 20_000,
        "保修" * 20_000 + "是多久",
    ],
)
def test_long_messages_are_read_at_once(text: str) -> None:
    began = time.perf_counter()
    resolve_follow_up(text, _history(*[text] * 6))
    resolve_follow_up("What about 50 euros?", _history(*[text] * 6))
    resolve_follow_up("And Leeds?", _history(*[text] * 6))
    assert time.perf_counter() - began < 2


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
