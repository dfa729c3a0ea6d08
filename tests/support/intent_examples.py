"""A hundred messages with what a model answered in the intent step, and the plan that must be read from it.

The answers are those of models as they are: whole and half, fenced, escaped, with thoughts and apologies around them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from backend.chat.intent.search_plan import (
    IntentRequest,
    LinkState,
    LinkToRead,
    NotNeeded,
    Queries,
    Searches,
    SearchPlan,
    Side,
    SidePlan,
    Summary,
    SwitchedOff,
)
from backend.search.llm_protocol import ChatMessage
from tests.support.sides import BOTH_SIDES

OFF = SwitchedOff()
NO = NotNeeded()
WEB_ON = frozenset({Side.WEB})
KNOWLEDGE_ON = frozenset({Side.KNOWLEDGE})
NONE_ON: frozenset[Side] = frozenset()

Asked: TypeAlias = SwitchedOff | NotNeeded | Sequence[str]
"""A side that is switched off or not needed, or the questions that are asked of it beside the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    language: str
    message: str
    answer: str
    web: Asked = ()
    knowledge: Asked = ()
    rewrite: str | None = None
    links: Sequence[LinkToRead | str] = ()
    summarized: bool = False
    on: frozenset[Side] = BOTH_SIDES
    history: Sequence[str] = ()
    """Messages of the asker and answers in turn."""
    context: Sequence[LinkToRead] = ()

    @property
    def request(self) -> IntentRequest:
        turns = [
            ChatMessage("assistant" if place % 2 else "user", text)
            for place, text in enumerate(self.history)
        ]
        return IntentRequest(
            message=self.message,
            sides=self.on,
            history=tuple(turns),
            context_links=tuple(self.context),
        )

    @property
    def plan(self) -> SearchPlan:
        links = tuple(LinkToRead(one) if isinstance(one, str) else one for one in self.links)
        if self.summarized:
            return Summary(self.message, links)
        web, knowledge = self._side(self.web, None), self._side(self.knowledge, self.rewrite)
        return Searches(web, knowledge, links)

    def _side(self, asked: Asked, rewrite: str | None) -> SidePlan:
        if isinstance(asked, SwitchedOff | NotNeeded):
            return asked
        return Queries(" ".join(self.message.split()), tuple(asked), rewrite)


def web(*questions: str, links: Sequence[str] = ()) -> str:
    """The block of the web as the contract has it."""
    asked = "".join(f"<question>{one}</question>\n" for one in questions)
    read = "".join(f"<links>{one}</links>\n" for one in links)
    return f"<websearch>\n{asked}{read}</websearch>\n"


def know(rewrite: str, *questions: str) -> str:
    asked = "".join(f"<question>{one}</question>\n" for one in questions)
    return f"<knowledge>\n<rewrite>{rewrite}</rewrite>\n{asked}</knowledge>"


NO_WEB = web("not_needed")
NO_KNOW = "<knowledge>\n<question>not_needed</question>\n</knowledge>"
NOTHING = NO_WEB + NO_KNOW


def _link(url: str, title: str = "", state: LinkState = LinkState.UNREAD) -> LinkToRead:
    return LinkToRead(url, title, state)


EXAMPLES: Sequence[Example] = (
    # --- English: the seven kinds
    Example(language="en", message="How does our leave compare with the law in Spain?",
            answer=web("Spain statutory leave law") + know("How does our leave compare with Spanish law?", "How long is our leave?"),
            web=["Spain statutory leave law"], knowledge=["How long is our leave?"], rewrite="How does our leave compare with Spanish law?"),
    Example(language="en", message="Hello there!", answer=NOTHING, web=NO, knowledge=NO),
    Example(language="en", message="Hi! How many days of leave do I have?",
            answer=NO_WEB + know("How many days of leave do I have?", "How many days of leave are there?"),
            web=NO, knowledge=["How many days of leave are there?"], rewrite="How many days of leave do I have?"),
    Example(language="en", message="What is eventual consistency?",
            answer=web("eventual consistency definition") + know("What is eventual consistency?", "eventual consistency"),
            web=["eventual consistency definition"], knowledge=["eventual consistency"], rewrite="What is eventual consistency?"),
    Example(language="en", message="Which ports does https://docs.example.com/setup need?",
            answer=web("example.com setup ports", links=["https://docs.example.com/setup"]) + NO_KNOW,
            web=["example.com setup ports"], knowledge=NO, links=["https://docs.example.com/setup"]),
    Example(language="en", message="Summarise https://a.example.com/1 and https://b.example.com/2, please",
            answer=web("summarize", links=["https://a.example.com/1", "https://b.example.com/2"]) + NO_KNOW,
            summarized=True, links=["https://a.example.com/1", "https://b.example.com/2"]),
    Example(language="en", message="What is the euro at today, and who won the cup?",
            answer=web("EUR USD rate today", "cup final winner") + NO_KNOW,
            web=["EUR USD rate today", "cup final winner"], knowledge=NO),
    Example(language="en", message="Who approves travel, and by when are receipts due?",
            answer=NO_WEB + know("Who approves travel, and by when are receipts due?", "Who approves travel?", "By when are receipts due?"),
            web=NO, knowledge=["Who approves travel?", "By when are receipts due?"], rewrite="Who approves travel, and by when are receipts due?"),
    Example(language="en", message="Write a short poem about autumn", answer=NOTHING, web=NO, knowledge=NO),
    Example(language="en", message="and in Japan?", history=["How long is parental leave in Denmark?", "52 weeks [1]."],
            answer=web("Japan parental leave length") + know("How long is parental leave in Japan?", "How long is parental leave in Japan?"),
            web=["Japan parental leave length"], knowledge=["How long is parental leave in Japan?"], rewrite="How long is parental leave in Japan?"),
    # --- English: how answers are written
    Example(language="en", message="VPN on a phone?", answer="```xml\n" + NO_WEB + know("How do I use the VPN on a phone?", "VPN phone") + "\n```",
            web=NO, knowledge=["VPN phone"], rewrite="How do I use the VPN on a phone?"),
    Example(language="en", message="R&D budget?", answer=web("R&amp;D budget 2026") + know("What is the R&amp;D budget?", "R&#38;D budget"),
            web=["R&D budget 2026"], knowledge=["R&D budget"], rewrite="What is the R&D budget?"),
    Example(language="en", message="Who leads sales?", answer="Sure! Here is the plan you asked for:\n\n" + NO_WEB + know("Who leads sales?", "head of sales") + "\nLet me know if I can help.",
            web=NO, knowledge=["head of sales"], rewrite="Who leads sales?"),
    Example(language="en", message="Who leads legal?", answer="<question>head of legal</question>", web=["head of legal"], knowledge=["head of legal"]),
    Example(language="en", message="Who leads design?", answer="<question>head of design</question>", on=KNOWLEDGE_ON, web=OFF, knowledge=["head of design"]),
    Example(language="en", message="Laptop stipend?", answer=web("laptop stipend") + web("laptop stipend", "Laptop Stipend typical") + know("How much is the stipend?", "stipend"),
            web=["laptop stipend", "Laptop Stipend typical"], knowledge=["stipend"], rewrite="How much is the stipend?"),
    Example(language="en", message="Parking?", answer="<websearch><question>not_needed</question></websearch><knowledge><rewrite>Where can I park?</rewrite><question>park",
            web=NO, knowledge=[], rewrite="Where can I park?"),
    Example(language="en", message="Sick pay?", answer="<websearch>\n<question>sick pay\n<question>sick pay law\n</websearch>\n<knowledge><rewrite>How much is sick pay?<question>sick pay amount</knowledge>",
            web=["sick pay", "sick pay law"], knowledge=["sick pay amount"], rewrite="How much is sick pay?"),
    Example(language="en", message="Pension age?", answer="I am sorry, but I cannot help with that."),
    Example(language="en", message="Bike leasing?", answer=""),
    Example(language="en", message="Thanks a lot", answer="not_needed", web=NO, knowledge=NO),
    Example(language="en", message="Cheers", answer="```\nNOT NEEDED\n```", web=NO, knowledge=NO),
    Example(language="en", message="Dress code?", answer="<think>\n<question>a thought</question>\n</think>" + NO_WEB + know("Is there a dress code?", "dress code"),
            web=NO, knowledge=["dress code"], rewrite="Is there a dress code?"),
    Example(language="en", message="Gym?", answer="They ask for <knowledge><question>a thought</question></knowledge></think>" + NO_WEB + know("Is there a gym?", "gym"),
            web=NO, knowledge=["gym"], rewrite="Is there a gym?"),
    Example(language="en", message="Overtime?", answer="<WebSearch><Question lang='en'>overtime law</Question></WebSearch><KNOWLEDGE><Rewrite>Is overtime paid?</Rewrite><QUESTION>overtime pay</QUESTION></KNOWLEDGE>",
            web=["overtime law"], knowledge=["overtime pay"], rewrite="Is overtime paid?"),
    Example(language="en", message="Probation?", answer="&lt;websearch&gt;&lt;question&gt;not_needed&lt;/question&gt;&lt;/websearch&gt;&lt;knowledge&gt;&lt;question&gt;probation&lt;/question&gt;&lt;/knowledge&gt;",
            web=NO, knowledge=["probation"]),
    Example(language="en", message="Visitors?", answer="<websearch><question>not_needed</question><question>visitor rules</question></websearch>" + NO_KNOW,
            web=["visitor rules"], knowledge=NO),
    Example(language="en", message="Canteen?", answer=NO_WEB + "<knowledge><rewrite>not_needed</rewrite><question>canteen hours</question></knowledge>",
            web=NO, knowledge=["canteen hours"]),
    Example(language="en", message="Onboarding steps?", answer=NO_WEB + "<knowledge><question>\n- onboarding checklist\n- first day laptop\n</question></knowledge>",
            web=NO, knowledge=["onboarding checklist", "first day laptop"]),
    Example(language="en", message="Fees?", answer=web("a", "b", "c", "d", "e", "f") + NO_KNOW, web=["a", "b", "c", "d"], knowledge=NO),
    Example(language="en", message="Fire drill?", answer='<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "boom"><!ENTITY b "&a;&a;">]>' + web("fire drill &b; rules") + NO_KNOW,
            web=["fire drill &b; rules"], knowledge=NO),
    Example(language="en", message="Notice period?", answer="<!-- <question>hidden</question> -->" + NO_WEB + know("How long is the notice period?", "<![CDATA[notice period]]>"),
            web=NO, knowledge=["notice period"], rewrite="How long is the notice period?"),
    # --- English: links
    Example(language="en", message="What is on https://news.example.org?", answer=web("news.example.org", links=["https://evil.example.net/steal", "https://news.example.org/"]) + NO_KNOW,
            web=["news.example.org"], knowledge=NO, links=["https://news.example.org"]),
    Example(language="en", message="What is our address?", answer=web("company address", links=["https://made.up.example/"]) + NO_KNOW,
            web=["company address"], knowledge=NO),
    Example(language="en", message="Sum up (https://en.wikipedia.org/wiki/Quarry_(disambiguation)).", answer=web("summarize"),
            summarized=True, links=["https://en.wikipedia.org/wiki/Quarry_(disambiguation)"]),
    Example(language="en", message='Sum up <url id="1" status="parsed" title="Q3 &amp; Q4">https://a.example.com/q?x=1&y=2</url>',
            answer=web("summarize", links=['<url id="1" status="parsed" title="Q3">https://a.example.com/q?x=1&amp;y=2</url>']),
            summarized=True, links=[_link("https://a.example.com/q?x=1&y=2", "Q3 & Q4", LinkState.PARSED)]),
    Example(language="en", message='What does <url id="7" status="failed" title="">https://a.example.com/gone</url> say on fees?',
            answer=web("fees", links=['<url id="7" status="failed" title="">https://a.example.com/gone</url>']) + NO_KNOW,
            web=["fees"], knowledge=NO, links=[_link("https://a.example.com/gone", "", LinkState.FAILED)]),
    Example(language="en", message="Sum up the report", context=[_link("https://a.example.com/r", "Report")], answer=web("summarize", links=["https://a.example.com/r"]) + NO_KNOW,
            summarized=True, links=[_link("https://a.example.com/r", "Report")]),
    Example(language="en", message="Sum up https://a.example.com/1", on=KNOWLEDGE_ON, answer=web("summarize", links=["https://a.example.com/1"]) + NO_KNOW,
            web=OFF, knowledge=NO),
    Example(language="en", message="Summarise our travel policy", answer=web("summarize") + know("Summarise our travel policy", "travel policy"),
            web=[], knowledge=["travel policy"], rewrite="Summarise our travel policy"),
    Example(language="en", message="Sum up https://a.example.com/1 and check it against our documents",
            answer=web("summarize", links=["https://a.example.com/1"]) + NO_KNOW,
            web=NO, knowledge=[], links=["https://a.example.com/1"]),
    # --- English: the asker's words
    Example(language="en", message="Get the current VAT rate from the web", answer=NO_WEB + know("What is the VAT rate?", "VAT rate"),
            web=[], knowledge=NO),
    Example(language="en", message="What is said on VAT in our documents?", answer=web("VAT") + NO_KNOW, web=NO, knowledge=[]),
    Example(language="en", message="Search the web for the newest version of OpenSearch", answer=web("OpenSearch latest version") + know("x", "y"),
            web=["OpenSearch latest version"], knowledge=NO),
    Example(language="en", message="May we post photos of the office on the internet?", answer=NO_WEB + know("May we post photos of the office?", "photos of the office"),
            web=NO, knowledge=["photos of the office"], rewrite="May we post photos of the office?"),
    Example(language="en", message="Without searching the web: what is a canary release?", answer=web("canary release") + know("What is a canary release?", "canary release"),
            web=NO, knowledge=["canary release"], rewrite="What is a canary release?"),
    Example(language="en", message="Look it up online", on=KNOWLEDGE_ON, history=["Who founded Lego?", "The documents do not say."], answer=know("Who founded Lego?", "founder of Lego"),
            web=OFF, knowledge=["founder of Lego"], rewrite="Who founded Lego?"),
    # --- English: switches
    Example(language="en", message="What is a mutex?", on=NONE_ON, answer=web("mutex") + know("What is a mutex?", "mutex"), web=OFF, knowledge=OFF),
    Example(language="en", message="What is a futex?", on=WEB_ON, answer=web("futex") + know("What is a futex?", "futex"), web=["futex"], knowledge=OFF),
    # --- Chinese
    Example(language="zh", message="我们的年假和德国法律相比怎么样？", answer=web("德国 法定年假") + know("我们公司的年假与德国法律相比如何？", "公司年假天数"),
            web=["德国 法定年假"], knowledge=["公司年假天数"], rewrite="我们公司的年假与德国法律相比如何？"),
    Example(language="zh", message="你好！", answer=NOTHING, web=NO, knowledge=NO),
    Example(language="zh", message="你好，请问报销需要哪些材料？", answer=NO_WEB + know("报销需要哪些材料？", "报销材料"), web=NO, knowledge=["报销材料"], rewrite="报销需要哪些材料？"),
    Example(language="zh", message="什么是微服务？", answer=web("微服务 定义") + know("什么是微服务？", "微服务"), web=["微服务 定义"], knowledge=["微服务"], rewrite="什么是微服务？"),
    Example(language="zh", message="https://news.example.cn/a总结一下", answer=web("summarize", links=["https://news.example.cn/a"]) + NO_KNOW,
            summarized=True, links=["https://news.example.cn/a"]),
    Example(language="zh", message="总结 https://a.example.cn/1 和 https://b.example.cn/2。", answer=web("summarize", links=["https://a.example.cn/1", "https://b.example.cn/2"]) + NO_KNOW,
            summarized=True, links=["https://a.example.cn/1", "https://b.example.cn/2"]),
    Example(language="zh", message="今天上海天气如何？人民币汇率多少？", answer=web("上海 天气 今天", "人民币 汇率 今天") + NO_KNOW, web=["上海 天气 今天", "人民币 汇率 今天"], knowledge=NO),
    Example(language="zh", message="谁批准出差？票据什么时候交？", answer=NO_WEB + know("谁批准出差，票据什么时候交？", "谁批准出差", "票据提交期限"), web=NO, knowledge=["谁批准出差", "票据提交期限"], rewrite="谁批准出差，票据什么时候交？"),
    Example(language="zh", message="根据知识库，远程办公有什么规定？", answer=web("远程办公 规定") + NO_KNOW, web=NO, knowledge=[]),
    Example(language="zh", message="上网查一下最新的个税起征点", answer=NO_WEB + know("个税起征点", "个税"), web=[], knowledge=NO),
    Example(language="zh", message="公司的上网政策是什么？", answer=NO_WEB + know("公司的上网政策是什么？", "上网政策"), web=NO, knowledge=["上网政策"], rewrite="公司的上网政策是什么？"),
    Example(language="zh", message="不用联网，什么是幂等？", answer=web("幂等 定义") + know("什么是幂等？", "幂等"), web=NO, knowledge=["幂等"], rewrite="什么是幂等？"),
    Example(language="zh", message="从公司文档里找一下保密条款，再联网搜索相关法律", answer=NOTHING, web=[], knowledge=[]),
    Example(language="zh", message="帮我写一首关于秋天的诗", answer=NOTHING, web=NO, knowledge=NO),
    Example(language="zh", message="那日本呢？", history=["丹麦的育儿假多长？", "52周[1]。"], answer=web("日本 育儿假 时长") + know("日本的育儿假多长？", "日本育儿假"), web=["日本 育儿假 时长"], knowledge=["日本育儿假"], rewrite="日本的育儿假多长？"),
    Example(language="zh", message="打印机怎么用？", answer="好的，以下是结果：\n```xml\n" + NO_WEB + know("打印机怎么使用？", "打印机 使用") + "\n```\n希望有帮助", web=NO, knowledge=["打印机 使用"], rewrite="打印机怎么使用？"),
    Example(language="zh", message="谢谢", answer="不需要", web=NO, knowledge=NO),
    Example(language="zh", message="餐补多少？", answer="＜knowledge＞＜rewrite＞餐补是多少？＜/rewrite＞＜question＞餐补＜/question＞＜/knowledge＞", web=[], knowledge=["餐补"], rewrite="餐补是多少？"),
    Example(language="zh", message="密码规则？", answer="<knowledge><rewrite>密码规则是什么？</rewrite><question>密码规则</question></knowledge>", on=KNOWLEDGE_ON, web=OFF, knowledge=["密码规则"], rewrite="密码规则是什么？"),
    Example(language="zh", message="班车时刻？", answer="我不确定该怎么做。"),
    Example(language="zh", message='<url id="1" status="failed" title="公告">https://a.example.cn/x</url> 讲了什么', answer=web("summarize", links=["https://a.example.cn/x"]),
            summarized=True, links=[_link("https://a.example.cn/x", "公告", LinkState.FAILED)]),
    # --- Japanese
    Example(language="ja", message="当社の育休は法律と比べてどうですか？", answer=web("育児休業 法律 期間") + know("当社の育児休業は法律と比べてどうか？", "育児休業の期間"), web=["育児休業 法律 期間"], knowledge=["育児休業の期間"], rewrite="当社の育児休業は法律と比べてどうか？"),
    Example(language="ja", message="おはようございます", answer=NOTHING, web=NO, knowledge=NO),
    Example(language="ja", message="こんにちは。経費の締め切りはいつですか？", answer=NO_WEB + know("経費の締め切りはいつか？", "経費 締め切り"), web=NO, knowledge=["経費 締め切り"], rewrite="経費の締め切りはいつか？"),
    Example(language="ja", message="ゼロトラストとは？", answer=web("ゼロトラスト 定義") + know("ゼロトラストとは何か？", "ゼロトラスト"), web=["ゼロトラスト 定義"], knowledge=["ゼロトラスト"], rewrite="ゼロトラストとは何か？"),
    Example(language="ja", message="https://a.example.jp/1を要約して", answer=web("summarize", links=["https://a.example.jp/1"]) + NO_KNOW, summarized=True, links=["https://a.example.jp/1"]),
    Example(language="ja", message="社内文書から出張規程を教えて", answer=web("出張規程") + NO_KNOW, web=NO, knowledge=[]),
    Example(language="ja", message="最新の為替をネットで調べて", answer=NO_WEB + know("為替", "為替"), web=[], knowledge=NO),
    Example(language="ja", message="ネットは使わずに、冪等性とは？", answer=web("冪等性") + know("冪等性とは？", "冪等性"), web=NO, knowledge=["冪等性"], rewrite="冪等性とは？"),
    Example(language="ja", message="明日の東京の天気と今日の株価は？", answer=web("東京 天気 明日", "日経平均 今日") + NO_KNOW, web=["東京 天気 明日", "日経平均 今日"], knowledge=NO),
    Example(language="ja", message="有給は何日？誰が承認？", answer=NO_WEB + know("有給は何日で、誰が承認するか？", "有給の日数", "有給の承認者"), web=NO, knowledge=["有給の日数", "有給の承認者"], rewrite="有給は何日で、誰が承認するか？"),
    Example(language="ja", message="メールの下書きを書いて", answer="not needed", web=NO, knowledge=NO),
    Example(language="ja", message="駐車場は？", answer="<knowledge><rewrite>駐車場はどこか？</rewrite><question>駐車場 場", web=[], knowledge=[], rewrite="駐車場はどこか？"),
    Example(language="ja", message="ドイツは？", history=["フランスの祝日は何日？", "11日です[1]。"], answer=web("ドイツ 祝日 日数") + NO_KNOW, web=["ドイツ 祝日 日数"], knowledge=NO),
    # --- German
    Example(language="de", message="Wie verhält sich unser Urlaub zum Gesetz?", answer=web("gesetzlicher Mindesturlaub") + know("Wie verhält sich unser Urlaub zum gesetzlichen?", "Wie viel Urlaub gibt es?"), web=["gesetzlicher Mindesturlaub"], knowledge=["Wie viel Urlaub gibt es?"], rewrite="Wie verhält sich unser Urlaub zum gesetzlichen?"),
    Example(language="de", message="Guten Morgen!", answer=NOTHING, web=NO, knowledge=NO),
    Example(language="de", message="Hallo, wer genehmigt Reisen?", answer=NO_WEB + know("Wer genehmigt Reisen?", "Genehmigung von Reisen"), web=NO, knowledge=["Genehmigung von Reisen"], rewrite="Wer genehmigt Reisen?"),
    Example(language="de", message="Was steht in unseren Dokumenten zur Gleitzeit?", answer=web("Gleitzeit") + NO_KNOW, web=NO, knowledge=[]),
    Example(language="de", message="Suche bitte im Internet nach dem aktuellen Mindestlohn", answer=NO_WEB + know("Mindestlohn", "Mindestlohn"), web=[], knowledge=NO),
    Example(language="de", message="Darf ich im Internet privat surfen?", answer=NO_WEB + know("Darf ich privat surfen?", "private Nutzung des Internets"), web=NO, knowledge=["private Nutzung des Internets"], rewrite="Darf ich privat surfen?"),
    Example(language="de", message="Fasse https://a.example.de/1 zusammen", answer=web("summarize", links=["https://a.example.de/1"]) + NO_KNOW, summarized=True, links=["https://a.example.de/1"]),
    Example(language="de", message="Feiertage?", answer=web("10. Januar Feiertag") + NO_KNOW, web=["10. Januar Feiertag"], knowledge=NO),
    Example(language="de", message="Spesen für Übernachtungen?", answer=NO_WEB + know("Welche Spesen gibt es für &Uuml;bernachtungen?", "Spesen &Uuml;bernachtung"), web=NO, knowledge=["Spesen Übernachtung"], rewrite="Welche Spesen gibt es für Übernachtungen?"),
    Example(language="de", message="Und ohne Internet: was ist ein Mutex?", answer=web("Mutex") + know("Was ist ein Mutex?", "Mutex"), web=NO, knowledge=["Mutex"], rewrite="Was ist ein Mutex?"),
    # --- French and Spanish
    Example(language="fr", message="Quels sont nos congés et que dit la loi ?", answer=web("congés payés loi") + know("Quels sont nos congés ?", "durée des congés"), web=["congés payés loi"], knowledge=["durée des congés"], rewrite="Quels sont nos congés ?"),
    Example(language="fr", message="Bonjour !", answer=NOTHING, web=NO, knowledge=NO),
    Example(language="fr", message="Cherche le cours de l'euro sur internet", answer=NO_WEB + know("cours", "cours"), web=[], knowledge=NO),
    Example(language="fr", message="Que disent les règles dans nos documents ?", answer=web("règles") + NO_KNOW, web=NO, knowledge=[]),
    Example(language="es", message="¿Qué dice la ley y qué damos nosotros?", answer=web("ley vacaciones") + know("¿Cuántas vacaciones damos?", "vacaciones"), web=["ley vacaciones"], knowledge=["vacaciones"], rewrite="¿Cuántas vacaciones damos?"),
    Example(language="es", message="Hola", answer="<websearch><question>Not_Needed.</question></websearch><knowledge><question>not-needed</question>", web=NO, knowledge=NO),
    Example(language="es", message="Busca en internet el tiempo de mañana", answer=NO_WEB + know("tiempo", "tiempo"), web=[], knowledge=NO),
    Example(language="es", message="Según la base de conocimientos, ¿quién aprueba los viajes?", answer=web("viajes") + NO_KNOW, web=NO, knowledge=[]),
)  # fmt: skip
