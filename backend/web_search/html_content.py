"""Reading an HTML page: its article, or all that a person sees of it."""

import re
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from lxml import html
from lxml.html import HtmlElement

from backend.web_search.obstacles import PageSigns
from backend.web_search.page_content import PageContent
from backend.web_search.page_dates import find_declared_date, guess_date
from backend.web_search.page_languages import find_language
from backend.web_search.page_links import collect_links, find_refresh
from connectors.document import Section
from connectors.extraction.html import read_html
from connectors.extraction.result import ExtractionError
from connectors.extraction.web_page import (
    extract_article,
    parse_html,
    remove_hidden,
)
from connectors.text_cleaning import shorten_title, to_one_line

_LEAST_ARTICLE = 400
"""Characters. With less text the detection of the article is not reliable."""
_LEAST_DENSE_ARTICLE = 150
"""The same in scripts whose characters are words or syllables."""
_DENSE = re.compile("[぀-ヿ㐀-鿿가-힯]")
_CONSENT_NAME = re.compile(
    r"onetrust|didomi|usercentrics|cybot|sp_message|qc-cmp|trustarc|truste-|"
    r"(^|\s)(cookie|consent|gdpr)s?([-_](banner|wall|notice|dialog|modal|popup|overlay|layer|page|bar|form|box|message|manager))?(\s|$)",
    re.IGNORECASE,
)
_CHALLENGE = re.compile(
    r"_cf_chl_opt|/challenge-platform/.{0,60}(orchestrate|chl_)|captcha-delivery\.com|px-captcha|awswafcaptcha",
    re.IGNORECASE,
)
_CAPTCHA_FIELD = re.compile(r"\b(g-recaptcha|h-captcha|cf-turnstile)\b", re.IGNORECASE)
_FILLED_IN = {"text", "email", "search", "tel", ""}


def read_html_page(page: str, url: str, server_language: str | None = None) -> PageContent:
    """Read a page that was sent or rendered.

    Args:
        server_language: The language that the server declares.

    Raises:
        ExtractionError: it is nested too deeply, or a tag has too many attributes.
    """
    root = parse_html(page)
    if root is None:
        return PageContent("", "", None, None, signs=PageSigns("", ""))
    has_challenge = _find_challenge(root)
    noscript = " ".join(to_one_line(one.text_content()) for one in root.iter("noscript"))
    remove_hidden(root)
    links, refresh = collect_links(root, url), find_refresh(root, url)
    seen = _read_visible(root)
    _remove_consent(root)
    article = _find_article(root, url)
    text = article or seen
    return PageContent(
        title=_find_title(root, url),
        text=text,
        published=find_declared_date(root) or (guess_date(url, text) if article else None),
        language=find_language(_declared_language(root) or server_language, text),
        links=links,
        refresh=refresh,
        signs=PageSigns(
            title=to_one_line(root.findtext(".//title") or ""),
            text=seen,
            heading=_find_heading(root),
            noscript=noscript,
            has_article=article is not None,
            has_password_field=any(True for _ in root.iterfind(".//input[@type='password']")),
            has_challenge=has_challenge,
            has_scripts=next(root.iter("script"), None) is not None,
        ),
    )


def join_sections(sections: Iterable[Section]) -> str:
    """Return the text of sections, each below its heading."""
    lines: list[str] = []
    path: tuple[str, ...] = ()
    for section in sections:
        heading = section.place.heading_path
        if heading != path and heading and heading[-1] != section.text:
            lines.append(heading[-1])
        path = heading
        lines.append(section.text)
    return "\n\n".join(lines)


def name_by_address(url: str) -> str:
    """Return a title for what has none: the last part of its path, else its host."""
    parts = urlsplit(url)
    return unquote(parts.path.rstrip("/").rpartition("/")[2]) or parts.hostname or url


def _read_visible(root: HtmlElement) -> str:
    try:
        return join_sections(read_html(_write(root).encode("utf-8")).sections)
    except ExtractionError as error:
        if "nested" in str(error):
            raise
        return ""


def _find_article(root: HtmlElement, url: str) -> str | None:
    article = extract_article(_write(root), url, "txt") or ""
    is_dense = len(_DENSE.findall(article)) > len(article) / 2
    least = _LEAST_DENSE_ARTICLE if is_dense else _LEAST_ARTICLE
    return article if len(article) >= least else None


def _write(root: HtmlElement) -> str:
    return str(html.tostring(root, encoding="unicode"))


def _remove_consent(root: HtmlElement) -> None:
    """Remove banners that ask for consent, whose text is no part of any article."""
    for element in list(root.iter("div", "section", "aside", "form", "dialog")):
        names = f"{element.get('id') or ''} {element.get('class') or ''}"
        if _CONSENT_NAME.search(names) and element.getparent() is not None:
            element.drop_tree()


def _find_title(root: HtmlElement, url: str) -> str:
    """Return a title that people see; those of the metadata they do not."""
    title = to_one_line(root.findtext(".//title") or "")
    return shorten_title(title or _find_heading(root) or name_by_address(url))


def _find_heading(root: HtmlElement) -> str:
    headings = (to_one_line(one.text_content()) for one in root.iter("h1", "h2"))
    return next(filter(None, headings), "")


def _declared_language(root: HtmlElement) -> str | None:
    tags = {one.get("http-equiv", "").lower(): one.get("content") for one in root.iter("meta")}
    return root.get("lang") or root.get("xml:lang") or tags.get("content-language")


def _find_challenge(root: HtmlElement) -> bool:
    """Return whether the page tells people from robots, and has no other form."""
    if any(_CHALLENGE.search((one.get("src") or "") + (one.text or "")) for one in root.iter("script", "iframe")):  # fmt: skip
        return True
    fields = list(root.iter("input", "textarea"))
    if any((one.get("type") or "").lower() in _FILLED_IN for one in fields):
        return False
    return any(_CAPTCHA_FIELD.search(one.get("class") or "") for one in root.iter("div", "span"))
