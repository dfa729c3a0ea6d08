"""Say a true Chinese sentence in other words, by rules; one function a way, None where it does not apply."""

import re
from collections.abc import Sequence
from random import Random

from tests.benchmarks.claims.rewordings import Rewording, reword_by

_SYNONYM_LIST = """
因为/由于 所以/因此 但是/不过 但/然而 然而/但是 并且/而且 以及/和 大约/约 约/大概 许多/很多 很多/不少 非常/十分 十分/相当
开始/着手 使用/采用 利用/使用 包括/包含 认为/觉得 成为/变成 建立/设立 成立/创立 目前/现在 如今/现时 曾经/曾 位于/坐落于
重要/关键 主要/首要 拥有/具有 获得/取得 得到/获得 举行/举办 举办/举行 进行/开展 表示/称 指出/提到 通过/经由 根据/依照
同时/与此同时 之后/以后 以后/之后 之前/以前 期间/时期 直到/一直到 最终/最后 后来/其后 例如/比如 如果/假如 可以/能够
能够/可以 需要/须 必须/务必 全部/所有 整个/全 部分/一部分 特别/尤其 尤其/特别 迅速/快速 增加/增长 减少/下降 提高/提升
城市/都市 地区/区域 国家/国度 公司/企业 人口/居民人数 电影/影片 学校/院校 著名/知名 当时/那时 其中/当中 导致/造成 属于/归属于
被称为/称作 称为/叫做 只有/仅有 仅/只 超过/多于 不足/少于 随着/伴随 为了/为 世界/全球 影响/作用 制造/生产 出现/产生 发生/出现
"""
_SAME = {old: new for old, _, new in (pair.partition("/") for pair in _SYNONYM_LIST.split())}
_KNOWN = re.compile("|".join(sorted(_SAME, key=len, reverse=True)))
_ASIDE = re.compile(r"\s*（[^（）]{1,40}）|\s*\([^()]{1,40}\)")
_CLAUSES = re.compile(r"^([^，。；]{6,40})，([^，。；]{6,60})，([^，。；]{6,60})。$")
_FRONTED = re.compile(
    r"^((?:在|从|自|到|于)[^，。]{3,24}(?:年|月|日|时|中|上|里|后|前|间))，([^。]{10,})。$"
)
_SUBJECT = re.compile(r"^([^，。的在是有被将]{2,8})(是|有|在|被|将|曾)([^。]{8,})。$")
_LEADS = ("据介绍，{0}", "资料显示，{0}", "文中提到，{0}", "简而言之，{0}", "需要说明的是，{0}")
_FIGURES = "零一二三四五六七八九"
_SMALL = re.compile(r"(?<![\d.,%])\s?([2-9])\s?(?=[个名位次年种场部])")


def use_synonyms(text: str, chance: Random) -> str | None:
    del chance
    new, count = _KNOWN.subn(lambda found: _SAME[found[0]], text)
    return new if count else None


def write_figures_otherwise(text: str, chance: Random) -> str | None:
    del chance
    new, count = _SMALL.subn(lambda found: _FIGURES[int(found[1])], text)
    return new if count else None


def drop_aside(text: str, chance: Random) -> str | None:
    del chance
    new, count = _ASIDE.subn("", text, count=1)
    return new if count else None


def move_front_behind_subject(text: str, chance: Random) -> str | None:
    """在 1990 年，公司迁址。 becomes 公司迁址，那是在 1990 年。"""
    del chance
    found = _FRONTED.match(text)
    return f"{found[2]}，那是{found[1]}。" if found else None


def swap_clauses(text: str, chance: Random) -> str | None:
    del chance
    found = _CLAUSES.match(text)
    return f"{found[1]}，{found[3]}，{found[2]}。" if found else None


def name_the_subject_first(text: str, chance: Random) -> str | None:
    del chance
    found = _SUBJECT.match(text)
    return f"至于{found[1]}，{found[2]}{found[3]}。" if found else None


REWORDINGS: Sequence[Rewording] = (
    use_synonyms,
    write_figures_otherwise,
    drop_aside,
    move_front_behind_subject,
    swap_clauses,
    name_the_subject_first,
)


def reword(text: str, chance: Random) -> str | None:
    return reword_by(REWORDINGS, add_lead, text, chance)


def add_lead(text: str, chance: Random) -> str | None:
    return chance.choice(_LEADS).format(text)
