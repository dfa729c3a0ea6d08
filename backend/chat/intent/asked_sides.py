"""The words by which an asker says where to look: "from the web", "in our documents", 「根据知识库」.

They are read by rules, in English, Chinese, Japanese, German, French and Spanish. A rule asks for more than the name of
a side: "may I post this on the internet?" is a question about the internet and says nothing of where to look.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import regex

from backend.chat.intent.search_plan import Side
from backend.search.query_syntax import blank_out
from indexing.text.tokenizer import find_quotes

MAX_READ_CHARACTERS = 4_000
"""At the beginning of a message, and at its end."""


@dataclass(frozen=True, slots=True)
class AskedSides:
    wanted: frozenset[Side] = frozenset()
    unwanted: frozenset[Side] = frozenset()


_END = (
    r"(?=\s*(?:$|[,;:!?…)\]，。？！、；]|\.(?!\w)|(?:for|about|what|how|who|when|where|why|which|whether|and|or|only|please"
    r"|if|is|are|the|then|instead|too|as|that|to|in|on)\b))"
)
_NET = r"(?:web|internet|world wide web)"
_OUR = r"(?:our|my|the company(?:['’]s)?|our company['’]s|internal|the internal|our (?:own|internal)|company)"
_STORE = r"(?:documents?|docs|files|knowledge ?base|wiki|intranet|handbooks?|records|policies|company knowledge)"
_GAP = r"(?:\s+[\w'’-]+){0,6}?\s+"

_WEB = (
    rf"(?:from|via|using|with) (?:the )?(?:open |public |whole )?{_NET}{_END}",
    rf"(?:search(?:ing)?|look(?:ing)?|check(?:ing)?|find|browse|research){_GAP}(?:on|in|across|through) the (?:open |public )?{_NET}\b",
    rf"(?:search|browse|check) (?:the )?(?:open |public |whole )?(?:{_NET}|google){_END}",
    r"(?:search|look (?:it |this |that |them )?up|find (?:it |this |that )?out|check) online\b",
    r"^\W*(?:please |just |can you |could you )*google (?:the|for|how|what|who|when|where|whether|it|this|that|up|a|an|my|our)\b",
    rf"(?:do|run|make) an? (?:quick )?(?:{_NET}|online) search\b",
    r"(?:上网|联网|連網|上網|在?网上|在?網上|从网上|从互联网上?|在?互联网上?)(?:去|来|帮我|给我)*(?:搜|查|找|检索|看看)",
    r"(?:搜索|搜一下|查一下|检索|查询)(?:一下)?(?:互联网|网络|全网|网页|网上)(?!安全|政策|故障|设备|配置|部门)",
    r"(?:根据|基于|从)(?:互联网|网络|网上|网页)(?:上的?)?(?:信息|资料|内容|搜索|结果|公开)",
    r"(?:百度|谷歌|必应)(?:一下|搜索)",
    r"(?:ウェブ|ネット|インターネット|web)上?(?:で|から|を)[^。？！]{0,12}?(?:検索|調べ|探し|さがし|見つけ|確認)",
    r"(?:ググって|ネット検索|ウェブ検索|web検索)",
    r"(?:aus|laut|mit) (?:dem|hilfe des) (?:internets?|netz|webs?)\b(?!-)",
    rf"(?:such\w*|recherchier\w*|schau\w*|sieh|finde?n?|prüf\w*|googl\w*){_GAP}(?:im (?:internet|netz|web)|online)\b(?!-)",
    r"(?:im (?:internet|netz|web)|online) (?:nach\w*|such\w*|recherchier\w*|nachsehen|nachschlagen)\b",
    r"(?:depuis|d['’]après|à partir d[eu]|selon) (?:le web|l['’]internet|internet)\b",
    rf"(?:cherche\w*|recherche\w*|trouve\w*|regarde\w*|vérifie\w*|consulte\w*){_GAP}(?:sur (?:le web|l['’]internet|internet)|en ligne)\b",
    r"(?:desde|según) (?:la web|el internet|internet)\b",
    rf"(?:busca\w*|búsca\w*|encuentra\w*|consulta\w*|investiga\w*|mira\w*){_GAP}(?:en (?:la web|internet|línea)|por internet)\b",
)
_KNOWLEDGE = (
    rf"(?:in|from|inside|using|per|based on|according to|within|against) {_OUR} {_STORE}\b",
    rf"(?:search|check|consult|look through|look in) {_OUR} {_STORE}\b",
    r"(?:in|from|using|based on|according to|search|check) the knowledge ?base\b",
    r"(?:根据|依据|基于|按照|从|在|查询?|查一下|搜索?|检索|參考|参考|根據|依據)(?:一下)?(?:我们|我們|公司|内部|內部|本公司|企业)?的?(?:内部)?"
    r"(?:知识库|知識庫|文档库|内部文档|内部资料|公司文档|公司资料|文档|资料库|規章制度|规章制度)",
    r"(?:社内|当社|弊社|わが社|会社)の?(?:文書|資料|ドキュメント|規程|ナレッジ(?:ベース)?|マニュアル)(?:から|で|を|の中|内|に基づ|によ)",
    r"(?:ナレッジベース|知識ベース)(?:から|で|を|の中|内|に基づ|によ)",
    r"(?:in|aus|laut|gemäß|nach|anhand|durchsuche) (?:unser(?:en|er|em|e)|den internen|internen|die internen|unseren internen) "
    r"(?:dokumente?n?|unterlagen|dateien|wissensdatenbank|wiki|intranet|richtlinien|handbuch)\b",
    r"(?:in|aus|laut|gemäß|durchsuche) (?:der|die) wissensdatenbank\b",
    r"(?:dans|depuis|d['’]après|selon|à partir de) (?:nos|les|notre) (?:documents?|fichiers|wiki|intranet|base de connaissances)"
    r"(?: internes?)?\b(?<!les documents)(?<!les fichiers)",
    r"(?:dans|selon|d['’]après|à partir de|de) la base de connaissances\b",
    r"(?:en|según|desde|de acuerdo con) (?:nuestr[oa]s?|los) (?:documentos|archivos|wiki|intranet|base de conocimientos?)"
    r"(?: internos)?\b(?<!los documentos)(?<!los archivos)",
    r"(?:en|según|de) la base de conocimientos?\b",
)
_NOT_WEB = (
    rf"(?:without|instead of|rather than|not)(?: \w+){{0,2}} (?:the )?(?:{_NET}|google)\b(?! \w*(?:site|page))",
    rf"(?:do not|don['’]t|never)(?: \w+){{0,2}} (?:search|use|browse|look|google|go)(?: \w+){{0,3}} (?:{_NET}|online|google)\b",
    rf"no (?:{_NET}|online) search\w*\b",
    r"(?:不要|不用|别|別|无需|無需|不必|不需要)(?:去|再|从|在)?(?:上网|上網|联网|網上|网上|搜索?网络|搜索?互联网|查网络|互联网)",
    r"(?:ウェブ|ネット|インターネット|web)(?:検索)?(?:は|を|で)?(?:使わず|使わない|検索しない|検索せず|調べない|調べず|なし|不要)",
    r"(?:ohne|nicht) (?:im |aus dem |das |in das |ins )?(?:internet|netz|web|online)\b",
    r"(?:sans|pas) (?:sur |chercher sur |utiliser |depuis )?(?:le web|l['’]internet|internet|en ligne)\b",
    r"(?:sin|no) (?:en |buscar en |buscar por |buscar |usar |de )?(?:la web|internet|en línea)\b",
)
_NOT_KNOWLEDGE = (
    rf"(?:without|instead of|rather than|not from|not in|not)(?: using| searching)? {_OUR} {_STORE}\b",
    rf"(?:do not|don['’]t|never) (?:search|use|check|look in|look through) (?:{_OUR}|the) {_STORE}\b",
    r"(?:不要|不用|别|別|无需|不必|不需要)(?:再|去)?(?:查询?|搜索?|检索|用|使用|参考|根据|从|在)?(?:我们|公司|内部)?的?(?:知识库|内部文档|公司文档|文档库)",
    r"(?:社内の?(?:文書|資料|ドキュメント)|ナレッジベース)(?:は|を)?(?:使わず|使わない|検索しない|検索せず|見ない|見ず)",
    r"(?:ohne|nicht) (?:in |aus )?(?:unseren?|die|der|den internen) (?:dokumenten?|unterlagen|wissensdatenbank)\b",
    r"(?:sans|pas) (?:dans |depuis |utiliser )?(?:nos documents|notre base de connaissances|la base de connaissances)\b",
    r"(?:sin|no) (?:en |usar |de |buscar en )?(?:nuestros documentos|nuestra base de conocimientos?|la base de conocimientos?)\b",
)
_IS_SUBJECT = regex.compile(
    r"\b(?:may|can|could|should|must|do|are|is|am)\s+(?:i|we|employees?|staff|people|anyone|somebody|it)\b|\b(?:allowed|permitted|download\w*|install\w*"
    r"|copy(?:ing)?|protect\w*|upload\w*|publish\w*|post(?:ed|ing)?)\b|\b(?:darf|dürfen|herunterlad\w*|télécharg\w*|descarg\w*)\b",
    regex.IGNORECASE,
)
"""Where a sentence is about the web itself, its words do not say where to look."""
_SENTENCE = regex.compile(r"[^.!?。！？\n]++(?:[.!?](?=\w)[^.!?。！？\n]*+)*+")


def _compile(patterns: tuple[str, ...]) -> regex.Pattern[str]:
    spaced = (pattern.replace(" ?", r"\s{0,4}").replace(" ", r"\s{1,4}") for pattern in patterns)
    bounded = (f"(?<![\\p{{Latin}}\\d-]){pattern}" for pattern in spaced)
    return regex.compile("|".join(f"(?:{one})" for one in bounded), regex.IGNORECASE)


_WANTED: Mapping[Side, regex.Pattern[str]] = {
    Side.WEB: _compile(_WEB),
    Side.KNOWLEDGE: _compile(_KNOWLEDGE),
}
_UNWANTED: Mapping[Side, regex.Pattern[str]] = {
    Side.WEB: _compile(_NOT_WEB),
    Side.KNOWLEDGE: _compile(_NOT_KNOWLEDGE),
}


def find_asked_sides(message: str) -> AskedSides:
    """Return the sides that a message names as those to search, and those that it excludes; quoted words name none."""
    text = _read_part(message)
    plain = blank_out(text, [quote.outer for quote in find_quotes(text)], " ")
    unwanted = frozenset(side for side, pattern in _UNWANTED.items() if pattern.search(plain))
    rest = plain
    for pattern in _UNWANTED.values():
        rest = pattern.sub(" ", rest)
    sentences = _SENTENCE.findall(rest)
    wanted = frozenset(side for side in Side if any(_names(side, each) for each in sentences))
    return AskedSides(wanted - unwanted, unwanted)


def _read_part(message: str) -> str:
    if len(message) <= 2 * MAX_READ_CHARACTERS:
        return message
    return f"{message[:MAX_READ_CHARACTERS]}\n{message[-MAX_READ_CHARACTERS:]}"


def _names(side: Side, sentence: str) -> bool:
    if not _WANTED[side].search(sentence):
        return False
    return side is not Side.WEB or _IS_SUBJECT.search(sentence) is None
