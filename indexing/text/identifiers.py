"""Find identifiers in a message: codes, part numbers, file names, addresses.

They are recognised by their shape, with few false positives rather than few misses: chunks that contain an
identifier rank above all others, so an ordinary word taken for one would do harm. Plain numbers, dates,
times, quantities, periods and hyphenated words are not identifiers.
"""

from collections.abc import Iterator

import regex

from connectors.document import Span
from indexing.text.normalization import LETTER

_FILE_TYPE = (
    "(?i:7z|bat|bin|bmp|cfg|conf|cpp|css|csv|dat|db|dll|docx?|eml|env|epub|exe|gif|gz|html?|ini|ipynb|jar|"
    "java|jpe?g|js|jsonl?|log|md|mp3|mp4|msg|od[pst]|parquet|pdf|pem|php|png|pptx?|ps1|py|rst|rtf|sh|sql|"
    "sqlite|svg|tar|tex|tgz|tiff?|toml|tsx?|tsv|txt|wav|webp|xls[mx]?|xml|ya?ml|zip)"
)
_TOP_LEVEL = (
    "(?:com|org|net|edu|gov|int|info|io|ai|dev|app|cloud|local|internal|example|test|"
    "eu|de|ch|fr|es|nl|pt|pl|se|uk|ca|au|br|jp|cn|kr)"
)

_CANDIDATE = regex.compile(
    rf"""
      (?P<address> [A-Za-z][A-Za-z0-9+.-]{{1,9}}+://[^\s<>"'`“”„«»「」『』（）()，。、]++
        | (?<![\w.+-])[A-Za-z0-9_.+-]{{1,64}}+@[A-Za-z0-9-]++(?:\.[A-Za-z0-9][A-Za-z0-9-]*+)++
        | (?<![\w.-])(?:~|\.{{1,2}}|[A-Za-z]:)?+[/\\]{{1,2}}+[\w.-]*+(?:[/\\][\w.-]*\w)++
        | (?<![A-Za-z0-9_./-])(?:[A-Za-z0-9_.-]{{1,64}}+/)++[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_][A-Za-z0-9_-]*+)++
        | (?<![\w-])--[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]
        | (?<![\w\#&])\#[0-9]++ ) (?!{LETTER}|[-._]\d)
    | (?P<run> (?:{LETTER}|_)++ (?:(?:::|[-.:@])(?:{LETTER}|_)++)*+ (?:\+\+|\#)?+ )
    """,
    regex.VERBOSE | regex.V1,
)
_ADDRESS_END = ".,;:!?-"

_UNIT = r"(?:\p{L}{0,2}\p{Ll}+|[KMGT]?[ABCDFGHKMSTVWX]|HZ|AM|PM|ST|ND|RD|TH|USD|EUR|GBP)"
_QUANTITY = rf"\d+(?:[.,]\d+)?{_UNIT}?"
_PERIOD = r"(?:Q[1-4]|H[12]|(?:FY|CY)-?\d{2,4}|(?:KW|CW|W)\d{1,2}|\d{4}|\d{2})"
_ORDINARY = regex.compile(
    rf"""
      {_QUANTITY}(?:-\p{{L}}\p{{Ll}}*+)*+        # 16GB, 100mbps, 1st, 3PM, 24-hour, 5-year-old, 3-D
    | [1-9]\d{{0,4}}x\d{{1,5}}                                    # 4x4
    | {_PERIOD}(?:[-.:]{_PERIOD})*+              # Q3, FY24, 2024-Q3, 2019-2024, 10:30
    | \d{{1,2}}(?::\d\d){{1,2}}\p{{L}}{{0,2}}    # 9:30am
    | \d{{1,4}}-\d{{1,2}}-\d{{1,4}}\w*+ | \d{{1,2}}\.\d{{1,2}}\.\d{{4}} | \d{{4}}\.\d{{1,2}}\.\d{{1,2}}
    | \d{{1,3}}(?:\.\d{{3}})++                   # 1.000.000
    | (?:\p{{L}}\.)++\p{{L}}                     # e.g, U.S
    | (?:\p{{L}}++-)?+\d++s                      # mid-1990s
    """,
    regex.VERBOSE,
)

_WORD = r"[\p{L}\p{M}\p{N}_]"
_MIXED = r"(?=[\p{L}\d]*\p{L})(?=(?:[\p{L}]*\d){2})[\p{L}\d]+"
_CODE = regex.compile(
    rf"""
      (?=.*\p{{L}}).*[^_]_[^_].* | __\w+?__                            # max_size, __init__
    | .*\w::\w.*                                                       # std::vector
    | (?=.*\p{{L}}).*\w@\w.*                                           # root@db1
    | {_MIXED}                                                         # ISO9001, 0x80070005, B12
    | (?=.*\d)(?=(?:.*-)?\p{{Lu}}+(?:-|$))[\p{{L}}\d]++(?:-[\p{{L}}\d]++)++   # AB-1234, COVID-19, RFC-2119-bis
    | \p{{L}}{{1,2}}-\d{{2,}}[-\p{{L}}\d]*+                            # e-22
    | \d++-\p{{Lu}}{{2,}}[-\p{{L}}\d]*+                                # 1099-NEC
    | \p{{L}}++(?:-\d++){{2,}}                                         # inv-2024-001
    | (?:[\p{{L}}\d]++-)*?{_MIXED}(?:-[\p{{L}}\d]++)*+                 # web01-prod, a uuid
    | (?=(?:\D*\d){{7,}})\d++(?:-\d++)++                               # 978-3-16-148410-0
    | (?:{_WORD}|[-.])+\.{_FILE_TYPE}                                  # report.final.pdf
    | (?:{_WORD}|-){{2,}}(?:\.(?:{_WORD}|-){{2,}})*?\.{_TOP_LEVEL}(?::\d++)?+   # example.com:8080
    | \p{{L}}(?:{_WORD}|-)+(?:\.\p{{L}}(?:{_WORD}|-)+){{2,}}           # os.path.join
    | [vV]?+\d++(?:\.\d++){{2,}}(?:[-.:]?\w++)*+                       # 3.11.7, 10.0.0.1:80
    | [vV]\d++(?:\.\d++)++(?:[-.]?\w++)*+                              # v2.1
    | \d++\.\d++-?(?:a|b|rc|alpha|beta|dev|post)\.?\d++                # 1.0rc2
    | (?:[\p{{L}}\d]++-)*+\p{{L}}++\d++(?:\.\d++)++                    # python3.11
    | (?:localhost:\d++|\p{{L}}[\w-]*+:\d{{4,5}}|\w++(?::\w++){{2,}})  # db:5432, a MAC address
    | \p{{Ll}}{{2,}}\d*+(?:\p{{Lu}}\p{{Ll}}+\d*+)++                    # getUserName
    | (?:\p{{Lu}}\p{{Ll}}+){{3,}}\d*+                                  # AccessKeyId
    | (?:\p{{Lu}}\p{{Ll}}+)+(?:Error|Exception|Warning)                # KeyError
    | \p{{L}}{{1,2}}(?:\+\+|\#)                                        # C++, C#
    """,
    regex.VERBOSE,
)
_SUFFIX = regex.compile(
    r"(?:-(?:related|based|like|dependent|independent|positive|negative|certified|compliant|compatible|"
    r"specific|mediated|induced|deficient|style|type|free))+$"
)
_MAX_LENGTH = 200


def find_identifiers(message: str) -> Iterator[Span]:
    """Yield the spans of the identifiers of `message`, in order."""
    for match in _CANDIDATE.finditer(message, concurrent=False):
        start, end = match.span()
        if match["address"] is not None:
            yield Span(start, start + len(match[0].rstrip(_ADDRESS_END)))
        elif end - start <= _MAX_LENGTH:
            bare = _SUFFIX.sub("", match[0], concurrent=False)
            if _is_identifier(bare):
                yield Span(start, start + len(bare))


def _is_identifier(run: str) -> bool:
    return (
        _ORDINARY.fullmatch(run, concurrent=False) is None
        and _CODE.fullmatch(run, concurrent=False) is not None
    )
