"""The pages of language models, for admins."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import escape, unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.groups import GroupService
from backend.container import Container
from backend.store import audit
from backend.store.accounts import people
from backend.store.accounts.people import NOBODY
from backend.store.audit import OWNER
from backend.store.llm import language_models, model_usage
from backend.store.llm.language_models import ModelRole
from backend.store.llm.model_usage import TokenCounts
from tests.support.language_models import add_model
from tests.support.scripted_model import HangUp, Manner, Raw, Refuse, Reply, Say, ScriptedModel
from tests.unit.backend.web.conftest import ANN, BOB

SECRET = "sk-0123456789"
FORM = {
    "name": "large",
    "base_url": "http://127.0.0.1:8000/v1",
    "model": "large-2026",
    "key": SECRET,
    "context_window": "128000",
    "calls_tools": "yes",
    "input_price": "2.5",
    "output_price": "",
    "role_default": "yes",
}


@pytest.fixture
def admin(browse: Any) -> TestClient:
    client: TestClient = browse(ANN)
    return client


@pytest.fixture
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


def _without(*names: str, **values: str) -> dict[str, str]:
    return {name: value for name, value in FORM.items() if name not in names} | values


def test_a_model_is_added_and_its_key_never_shown(container: Container, admin: TestClient) -> None:
    assert "There are none yet" in admin.get("/models").text
    assert admin.post("/models", data=FORM).headers["location"] == "/models"
    (model,) = language_models.list_models(container.database)
    assert (model.name, set(model.roles)) == ("large", {ModelRole.DEFAULT})
    assert (model.values.context_window, model.values.input_price) == (128_000, 2.5)
    assert (model.values.output_price, model.values.sees_pictures) == (None, False)
    sealed = model.sealed_key or ""
    assert container.vault.open(sealed) == {"key": SECRET}
    for path in ("/models", "/model/large"):
        shown = admin.get(path).text
        assert "large" in shown
        assert SECRET not in shown
        assert sealed not in shown
    # It is removed only once a dialog was answered that says what is lost.
    assert 'data-asks="large" data-dialog="removing-model"' in shown
    assert '<dialog id="removing-model"' in shown
    (entry, *_) = audit.list_entries(container.database)
    assert (entry.action, entry.actor) == ("add_model", f"user:{ANN}")
    assert SECRET not in str(entry)
    assert sealed not in str(entry)


def test_a_model_is_changed_and_keeps_its_key(container: Container, admin: TestClient) -> None:
    admin.post("/models", data=FORM)
    shown = admin.get("/model/large").text
    assert 'value="128000"' in shown
    assert re.search(r'name="calls_tools" value="yes" checked', shown)
    assert re.search(r'name="role_default" value="yes" checked', shown)
    change = _without("key", "calls_tools", "role_default", name="huge", role_fast="yes", key="")
    assert admin.post("/model/large", data=change).headers["location"] == "/models"
    (model,) = language_models.list_models(container.database)
    assert (model.name, model.values.calls_tools) == ("huge", False)
    assert set(model.roles) == {ModelRole.FAST}
    assert container.vault.open(model.sealed_key or "") == {"key": SECRET}
    admin.post("/model/huge", data=change | {"remove_key": "yes"})
    assert language_models.find(container.database, "huge").sealed_key is None
    assert admin.post("/model/huge/remove").headers["location"] == "/models"
    assert language_models.list_models(container.database) == []
    assert admin.post("/model/huge/remove").status_code == 404
    assert admin.get("/model/huge").status_code == 404


@pytest.mark.parametrize(
    "values",
    [
        {"name": "a b"},
        {"name": "<b>"},
        {"base_url": "http://169.254.169.254/v1"},
        {"base_url": "no address"},
        {"model": ""},
        {"context_window": "many"},
        {"context_window": "1"},
        {"context_window": "\u0663"},
        {"context_window": "9" * 19},
        {"input_price": "cheap"},
        {"input_price": "-1"},
        {"input_price": "nan"},
        {"key": "a b"},
    ],
)
def test_what_is_wrong_is_said_and_kept(
    container: Container, admin: TestClient, values: dict[str, str]
) -> None:
    refused = admin.post("/models", data=FORM | values)
    assert refused.status_code == 422
    assert 'role="alert"' in refused.text
    assert 'value="large-2026"' in refused.text or values.get("model") == ""
    assert SECRET not in refused.text
    assert language_models.list_models(container.database) == []
    add_model(container, "large", FORM["base_url"])
    again = admin.post("/model/large", data=FORM | values)
    assert again.status_code == 422
    assert SECRET not in again.text


def test_a_form_without_fields_is_refused(admin: TestClient) -> None:
    assert admin.post("/models", data={}).status_code == 422


def test_a_key_is_not_sent_to_another_server(container: Container, admin: TestClient) -> None:
    admin.post("/models", data=FORM)
    moved = admin.post("/model/large", data=_without("key", base_url="http://127.0.0.1:9/v1"))
    assert moved.status_code == 422
    moved = admin.post(
        "/model/large", data=_without("key", base_url="https://other.example.com/v1")
    )
    assert "Enter the key again" in moved.text
    model = language_models.find(container.database, "large")
    assert model.values.base_url == FORM["base_url"]


def test_a_model_is_tried(container: Container, admin: TestClient, server: ScriptedModel) -> None:
    add_model(container, "large", server.base_url)
    server.play([Say("one, <b>two</b>"), Say("ready"), Refuse(400, "temperature"), Say("one")])
    shown = admin.post("/model/large/test").text
    assert "assistants that set one answer at the model's own temperature." in shown
    assert "It answers" in shown
    assert "one, &lt;b&gt;two&lt;/b&gt;" in shown
    assert "It calls no tools, but is set to call them." in shown
    server.play(lambda _: Refuse(401, "wrong <key-of-large>"))
    shown = admin.post("/model/large/test").text
    assert "It does not answer" in shown
    assert "Set the key of large to a valid one." in shown
    assert "key-of-large" not in shown
    assert admin.post("/model/none/test").status_code == 404


CHINESE = {"Accept-Language": "zh-CN"}
ENGLISH = re.compile(r"\b(?:is|are|the|Set|Check|Its|that|with)\b")


def _notice(shown: str) -> str:
    """Return what a page says of a trouble, as text."""
    found = re.search(r'<(section|p) class="notice[^>]*>(.*?)</\1>', shown, re.S)
    assert found
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", found[2])).split())


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://169.254.169.254/v1", "基础 URL 无效：169.254.169.254 是云平台的元数据服务。"),
        ("http://168.63.129.16/v1", "基础 URL 无效：168.63.129.16 是云平台的内部服务。"),
        ("http://0.0.0.0/v1", "基础 URL 无效：0.0.0.0 不是一台机器的地址。"),
        ("http://224.0.0.1/v1", "基础 URL 无效：224.0.0.1 是组播地址。"),
        ("http://255.255.255.255/v1", "基础 URL 无效：255.255.255.255 是广播地址。"),
        ("ftp://x", "基础 URL 无效：'ftp://x' 不是网址（http 或 https）。"),
        ("http://a:b@x/v1", "基础 URL 无效：地址不能包含用户名或密码。"),
        ("http://x:22/v1", "基础 URL 无效：x 的端口 22 不是网页服务器的端口。"),
        ("http://a!b/v1", "基础 URL 无效：'a!b' 不是主机名。"),
        ("http://0177.1/v1", "基础 URL 无效：'0177.1' 不是通常写法的 IP 地址。"),
    ],
)
def test_why_an_address_is_refused_is_said_in_chinese(
    admin: TestClient, address: str, said: str
) -> None:
    refused = admin.post("/models", data=FORM | {"base_url": address}, headers=CHINESE)
    assert _notice(refused.text) == said
    refused = admin.post("/models", data=FORM | {"base_url": "http://x:y/v1"}, headers=CHINESE)
    assert _notice(refused.text).startswith("基础 URL 无效：'http://x:y/v1' 不是网址：")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Refuse(401, "no"), "请为“large 的密钥”设置有效的值。服务器的消息："),
        (Refuse(404, "no"), "请将“large 的模型 ID”设置为那里已有的模型"),
        (Refuse(400, "no"), "请检查“large 的模型 ID”和“large 的上下文窗口”。服务器的消息："),
        (Refuse(429, "no", code="insufficient_quota"), "语言模型账户的额度已用完。 服务器的消息："),
        (Refuse(500, "no\nhow"), "语言模型出错。 服务器的消息："),
        (Raw(b"<html>Welcome</html>", "text/html"), "返回的是网页。请将“large 的基础 URL”"),
        (Raw(b"data: [1, 2]\n\n"), "请检查“large 的基础 URL”是否指向兼容 OpenAI 的服务器"),
        (Say("one two", manner=Manner(error_after=1)), "回答中途中断。 语言模型出错。服务器的消息："),
        (HangUp(), "请检查它是否在运行，以及“large 的基础 URL”是否正确。"),
        (Say(""), "语言模型给出了空回答。"),
    ],
)  # fmt: skip
def test_what_a_try_shows_is_said_in_chinese(
    container: Container, admin: TestClient, server: ScriptedModel, reply: Reply, said: str
) -> None:
    add_model(container, "large", server.base_url)
    server.play(lambda _: reply)
    notice = _notice(admin.post("/model/large/test", headers=CHINESE).text)
    assert said in notice
    # What a server says stays as it is.
    ours = re.sub(r"服务器的消息：.*|（.*?）", "", notice)
    assert not ENGLISH.search(ours)


def test_usage_is_listed_by_day_person_and_model(container: Container, admin: TestClient) -> None:
    assert "None were used" in admin.get("/models").text
    bob = people.get_by_email(container.database, BOB)
    today = datetime.now(UTC).date()
    counts = TokenCounts(input_tokens=1_234, output_tokens=56, calls=7)
    model_usage.add(container.database, bob.id, today, {"large": counts})
    model_usage.add(container.database, NOBODY, today, {"large": counts})
    shown = admin.get("/models").text
    assert shown.count("1,234") == 2
    assert BOB in shown
    assert "nobody's" in shown


def _chart(shown: str, name: str) -> str:
    found = re.search(rf'<figure class="plot" aria-labelledby="{name}">.*?</figure>', shown, re.S)
    return found[0] if found else ""


def test_usage_is_drawn_by_model_by_person_and_as_costs(
    container: Container, admin: TestClient
) -> None:
    for name in ("by-model", "by-person", "costs"):
        assert not _chart(admin.get("/models?days=90").text, name)
    add_model(container, "large", FORM["base_url"], input_price=2.0, output_price=10.0)
    bob = people.get_by_email(container.database, BOB)
    today = datetime.now(UTC).date()
    counts = TokenCounts(input_tokens=1_000_000, output_tokens=50_000, calls=7)
    for who, back in ((bob.id, 0), (NOBODY, 20)):
        used = {"large": counts, "<b>": counts}
        model_usage.add(container.database, who, today - timedelta(days=back), used)
    week, month = admin.get("/models").text, admin.get("/models?days=30").text
    assert 'href="/models?days=7#usage-title" aria-current="true"' in week
    assert 'href="/models?days=30#usage-title" aria-current="true"' in month
    models = _chart(week, "by-model")
    assert models.count("<rect") == 2 + 2
    assert "<bdi>&lt;b&gt;</bdi>" in models
    assert "<bdi>large</bdi> " in models
    assert ">1,050,000<" in models
    assert "nobody's" not in _chart(week, "by-person").replace("&#39;", "'")
    assert "nobody's" in _chart(month, "by-person").replace("&#39;", "'")
    assert "<td>2.5000</td>" in _chart(week, "costs")
    assert "<td>5.0000</td>" not in week
    assert "Without the cost of &lt;b&gt;" in week


def test_what_has_no_color_of_its_own_is_drawn_as_one(
    container: Container, admin: TestClient
) -> None:
    today = datetime.now(UTC).date()
    used = {f"model-{n}": TokenCounts(input_tokens=n, calls=1) for n in range(1, 9)}
    model_usage.add(container.database, NOBODY, today, used)
    chart = _chart(admin.get("/models").text, "by-model")
    shown = re.findall(r"<li>.*?<bdi>(.*?)</bdi> <span class=\"dim\">(.*?)</span>", chart)
    assert shown == [*((f"model-{n}", f"{n}") for n in range(8, 2, -1)), ("all others", "3")]
    assert not _chart(admin.get("/models").text, "costs")


@pytest.mark.parametrize("days", ["0", "8", "x", "-7", ""])
def test_no_other_period_is_shown(admin: TestClient, days: str) -> None:
    assert admin.get(f"/models?days={days}").status_code == 422


def test_members_reach_none_of_it(container: Container, browse: Any) -> None:
    bob = browse(BOB)
    add_model(container, "large", FORM["base_url"])
    assert bob.get("/models").status_code == 403
    assert bob.get("/model/large").status_code == 403
    assert bob.post("/models", data=FORM | {"name": "x"}).status_code == 403
    assert bob.post("/models/person-budget", data={"email": BOB, "tokens": "5"}).status_code == 403
    for action in ("", "/test", "/remove"):
        assert bob.post(f"/model/large{action}", data=FORM).status_code == 403
    # One that is not there is refused alike.
    there, missing = bob.get("/model/large"), bob.get("/model/none")
    assert (there.status_code, there.text) == (missing.status_code, missing.text)
    assert [one.name for one in language_models.list_models(container.database)] == ["large"]


def test_a_group_is_given_a_budget_and_loses_it(container: Container, admin: TestClient) -> None:
    assert "There are no groups of your own yet" in admin.get("/models").text
    name = "<b>Sales</b>"
    GroupService(container.database, OWNER).create(name)
    shown = admin.get("/models").text
    assert "<option" in shown
    assert name not in shown
    assert "Table of budgets" not in shown
    form = {"group": name, "tokens": "2000000"}
    assert admin.post("/models/budget", data=form).headers["location"] == "/models#budgets-title"
    (entry, *_) = audit.list_entries(container.database)
    assert (entry.action, entry.actor) == ("set_token_budget", f"user:{ANN}")
    assert dict(entry.detail) == {"before": None, "after": 2_000_000}
    shown = admin.get("/models").text
    assert "Table of budgets" in shown
    assert "2,000,000" in shown
    assert name not in shown
    admin.post("/models/budget", data=form | {"tokens": "0"})
    assert "Table of budgets" not in admin.get("/models").text


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"group": "hr", "tokens": "many"}, "A budget is a number"),
        ({"group": "hr", "tokens": "0.9"}, "A budget is a whole number"),
        ({"group": "hr", "tokens": "1" + "0" * 16}, "A budget is a whole number of tokens"),
        ({"group": "none", "tokens": "5"}, "There is no group none"),
        ({}, "A budget is a number"),
    ],
)
def test_what_is_no_budget_is_said(
    container: Container, admin: TestClient, form: dict[str, str], said: str
) -> None:
    GroupService(container.database, OWNER).create("hr")
    refused = admin.post("/models/budget", data=form)
    assert refused.status_code == 422
    assert said in refused.text
    assert "Table of budgets" not in admin.get("/models").text


def test_a_person_is_given_a_budget_of_their_own_and_loses_it(
    container: Container, admin: TestClient
) -> None:
    bob = people.get_by_email(container.database, BOB)
    used = {"large": TokenCounts(input_tokens=1_200, output_tokens=34, calls=1)}
    model_usage.add(container.database, bob.id, datetime.now(UTC).date(), used)
    assert "Table of budgets of people" not in admin.get("/models").text
    form = {"email": BOB.upper(), "tokens": "2000000"}
    set_at = admin.post("/models/person-budget", data=form).headers["location"]
    assert set_at == "/models#person-budgets-title"
    (entry, *_) = audit.list_entries(container.database)
    assert (entry.action, entry.actor) == ("set_token_budget", f"user:{ANN}")
    assert (entry.subject, dict(entry.detail)) == (
        f"user:{BOB}",
        {"before": None, "after": 2_000_000},
    )
    shown = admin.get("/models").text
    section = shown[shown.index('id="person-budgets-title"') : shown.index('id="usage-title"')]
    for text in ("1,234", "2,000,000", f'href="/person/{bob.id}"', f"Remove the budget of {BOB}"):
        assert text in section
    admin.post("/models/person-budget", data=form | {"tokens": "0"})
    assert "Table of budgets of people" not in admin.get("/models").text


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"email": BOB, "tokens": "many"}, "A budget is a number"),
        ({"email": BOB, "tokens": "1" + "0" * 16}, "A budget is a whole number of tokens"),
        ({"email": "<b>nobody", "tokens": "5"}, "This is not an e-mail address"),
        ({"email": "nobody@example.com", "tokens": "5"}, "There is no account of nobody"),
        ({}, "A budget is a number"),
    ],
)
def test_what_is_no_budget_of_a_person_is_said_and_kept_to_be_corrected(
    admin: TestClient, form: dict[str, str], said: str
) -> None:
    refused = admin.post("/models/person-budget", data=form)
    assert refused.status_code == 422
    assert said in refused.text
    for entered in form.values():
        assert f'value="{escape(entered)}"' in refused.text
    assert "<b>nobody" not in refused.text
    assert "Table of budgets of people" not in admin.get("/models").text
