"""Find names in Chinese and Japanese: of people by their surnames, of projects and firms by the words that announce them.

Neither language puts blanks or capitals around a name. A Chinese name of a person is a surname with one or two characters
behind it that make no ordinary word with it, where punctuation, a title or a word that people go with shows that a name
begins or ends there. A Japanese one is a frequent surname of two characters or more, alone and with what may be the first name.
"""

from collections.abc import Iterator

import regex

from backend.chat.privacy.words_around_han_names import (
    BEFORE_PERSON,
    BEHIND_PERSON,
    CHINESE_SURNAMES,
    CHINESE_TITLES,
    COMPOUND_SURNAMES,
    JAPANESE_SURNAMES,
    ORDINARY_KATAKANA,
    ORDINARY_MODIFIERS,
    ORDINARY_WORDS,
    OTHER_THAN_PROPER,
)

_SURNAME = rf"(?:{'|'.join(COMPOUND_SURNAMES)}|[{CHINESE_SURNAMES}])"
_BEFORE = rf"(?<=\A|{'|'.join(BEFORE_PERSON)})"
_BEHIND = rf"(?=\Z|{'|'.join(BEHIND_PERSON)}|{'|'.join(CHINESE_TITLES)})"
_SHORT_NAME = regex.compile(rf"{_BEFORE}{_SURNAME}\p{{Han}}{_BEHIND}")
_BEGUN_NAME = regex.compile(rf"{_BEFORE}{_SURNAME}\p{{Han}}(?!{'|'.join(CHINESE_TITLES)})\p{{Han}}")
_ENDED_NAME = regex.compile(rf"{_SURNAME}\p{{Han}}{{2}}{_BEHIND}")
_TITLE = regex.compile("|".join(one[:2] for one in CHINESE_TITLES))

_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_JAPANESE_NAME = regex.compile(
    rf"(?P<surname>{'|'.join(JAPANESE_SURNAMES)})(?![県市区町村府都駅道島])(?P<given>[\p{{Han}}]{{1,3}}(?![\p{{Han}}]))?+"
)
_JAPANESE_TITLE = regex.compile(
    "部長|課長|社長|会長|係長|主任|先生|取締|専務|常務|店長|支店|氏|様|君|殿|家|製作|工業|商事|建設|電機|産業"
)

_BOUNDARY = r"(?<=\A|[\s\p{P}]|收购|收購|并购|投资|成立|注册|買収した|[的在由和与與对對为為从從把将將是给給让讓跟向于於称稱叫即のはがをにとでや])"
_KIND = r"(?:项目|計画|计划|計劃|工程|行动|行動|平台|系统|系統|公司|集团|集團|资本|基金|作戦|プロジェクト|事業部|社(?!\p{Han}))"
_KIND_BEHIND = regex.compile(rf"{_BOUNDARY}(?P<name>\p{{Han}}{{2,4}}?){_KIND}")
_KIND_BEFORE = regex.compile(
    r"(?:代号|代號|代码名|コードネーム|名为|名為|取名|命名为|命名為)(?:为|為|是|叫|は|「|“|：|:|\s)*(?P<name>\p{Han}{2,4}?|[\p{Katakana}ー]{2,12})"
    r"(?=\Z|[\s\p{P}]|[的在由和与與对为為从把将是のはがをにとでや于]|项目|计划|計画|プロジェクト|で)"
)
_KATAKANA_KIND = regex.compile(r"(?P<name>[\p{Katakana}ー]{3,20}?)(?:プロジェクト|計画|作戦|事業部|社(?!\p{Han}))|プロジェクト(?:・|\s)?(?P<name>[\p{Katakana}ー]{3,20})")  # fmt: skip


def find_han_names(text: str) -> Iterator[str]:
    """Yield names, some more than once."""
    if _KANA.search(text):
        yield from _find_japanese_people(text)
    else:
        yield from _find_chinese_people(text)
    yield from _find_announced(text)


def _find_chinese_people(text: str) -> Iterator[str]:
    for pattern in (_SHORT_NAME, _BEGUN_NAME, _ENDED_NAME):
        for found in pattern.finditer(text, overlapped=True):
            if not _is_ordinary(found[0]):
                yield found[0]


def _is_ordinary(name: str) -> bool:
    """Return whether what looks like a name begins with an ordinary word, or is a surname with a title behind it."""
    return (
        name[:2] in ORDINARY_WORDS
        or name[1:] in ORDINARY_WORDS
        or _TITLE.match(name, 1) is not None
    )


def _find_japanese_people(text: str) -> Iterator[str]:
    for found in _JAPANESE_NAME.finditer(text):
        yield found["surname"]
        given = found["given"]
        if given and not _JAPANESE_TITLE.search(given):
            yield found[0]


def _find_announced(text: str) -> Iterator[str]:
    for found in (*_KIND_BEHIND.finditer(text, overlapped=True), *_KIND_BEFORE.finditer(text)):
        if not _is_modifier(found["name"]):
            yield found["name"]
    for found in _KATAKANA_KIND.finditer(text):
        if not _is_ordinary_katakana(found["name"]):
            yield found["name"]


def _is_modifier(name: str) -> bool:
    """Return whether a word only describes what stands behind it, such as "年度" in "年度计划"."""
    ordinary = ORDINARY_MODIFIERS | ORDINARY_WORDS
    begins = name[0] in OTHER_THAN_PROPER or name[:2] in ordinary
    return begins or name[-2:] in ordinary or _is_ordinary_katakana(name)


def _is_ordinary_katakana(name: str) -> bool:
    return any(name.startswith(word) or name.endswith(word) for word in ORDINARY_KATAKANA)
