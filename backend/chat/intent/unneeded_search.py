"""What models write in place of a query where nothing has to be searched, in English, German, French, Spanish, Chinese and Japanese.

It counts as the whole query alone: "none" says that no search is needed, "none of the above meaning" is searched.
"""

import unicodedata

import regex

LONGEST = 80
"""Characters; a longer query asks for something."""

_ENGLISH_SEARCH = r"(?:(?:web|internet|online|internal|document|knowledge|further|additional|more|external) )*(?:search|searches|searching|query|queries|lookup|look up|research|retrieval)"
_ENGLISH_NEED = r"(?:needed|required|necessary|applicable)"
_ENGLISH = (
    "none|null|n/a|n / a"
    rf"|not? (?:{_ENGLISH_NEED}|needed or {_ENGLISH_NEED})"
    rf"|(?:there is |there's )?no (?:need for (?:an? )?)?{_ENGLISH_SEARCH}(?: (?:is|are|was|were))?(?: {_ENGLISH_NEED})?"
    rf"|(?:a )?{_ENGLISH_SEARCH}(?: (?:is|are|was))? (?:not {_ENGLISH_NEED}|unnecessary)"
    r"|(?:there is |there's )?no need(?: to search| to look (?:it|this|anything) up)?|nothing to (?:search|look up)(?: for)?"
    r"|(?:i|we) (?:do not|don't) need to search|(?:does not|doesn't) (?:need|require) (?:a )?search(?:ing)?"
)
_ENGLISH_REASON = r"(?: based on the query analysis| (?:for|in) (?:this|the) (?:question|message|query|greeting|request|case|turn)| here)?"
_GERMAN_SEARCH = (
    r"(?:suche|websuche|internetsuche|onlinesuche|suchanfrage|recherche|abfrage|web suche)"
)
_GERMAN_NEED = r"(?:nötig|notwendig|erforderlich|benötigt)"
_GERMAN = (
    rf"(?:ist )?(?:nicht|nichts) {_GERMAN_NEED}|keine {_GERMAN_SEARCH}(?: (?:ist|wird))?(?: {_GERMAN_NEED})?"
    rf"|(?:eine )?{_GERMAN_SEARCH}(?: (?:ist|wird))? nicht {_GERMAN_NEED}|kein suchbedarf|nichts zu suchen"
)
_FRENCH = (
    r"(?:aucune|pas de) recherche(?: (?:web|internet|en ligne))?(?: n'est)?(?: (?:nécessaire|requise|n'est requise))?"
    r"|(?:ce n'est )?(?:pas|non) (?:nécessaire|requis)|recherche (?:non|pas) (?:nécessaire|requise)|recherche inutile"
    r"|(?:pas|aucun) besoin(?: de (?:recherche|chercher|rechercher))?|rien à (?:chercher|rechercher)"
)
_SPANISH = (
    r"no (?:es )?(?:necesari[oa]|requerid[oa])|(?:ninguna|sin) búsqueda(?: (?:necesaria|requerida))?"
    r"|(?:no se (?:necesita|requiere)|no es necesaria) (?:ninguna |una )?búsqueda|búsqueda (?:no necesaria|innecesaria)"
    r"|no (?:hace falta|es necesario|se necesita) buscar|nada que buscar"
)
_CHINESE = (
    r"(?:这个|此|该)?(?:问题)?(?:不需要|不需|无需|無需|无须|無須|不用|不必|没必要|没有必要|沒有必要)(?:再|进行|進行)*"
    r"(?:联网|聯網|网络|網路|网上|互联网|上网|内部)?(?:搜索|搜寻|搜尋|检索|檢索|查询|查詢|查找)?|[无無]|没有查询"
)
_JAPANESE = (
    r"(?:(?:ウェブ|ネット|web)?検索(?:する|の)?(?:必要)?(?:は|が)?)?"
    r"(?:不要|必要なし|必要ない|ありません|必要ありません|必要はありません|必要がない)(?:です)?|検索なし|検索しない"
)
_UNNEEDED = regex.compile(
    rf"(?:{_ENGLISH}){_ENGLISH_REASON}|{_GERMAN}|{_FRENCH}|{_SPANISH}|{_CHINESE}|{_JAPANESE}"
)
_BLANK = regex.compile(r"[\s_–—-]+")
_AROUND = regex.compile(r"\A[\p{P}\p{S}\s]+|[\p{P}\p{S}\s]+\Z")


def says_not_needed(query: str) -> bool:
    """Return whether a model wrote, in place of a query, that none is needed."""
    if len(query) > LONGEST:
        return False
    plain = unicodedata.normalize("NFKC", query).casefold().replace("’", "'")
    return _UNNEEDED.fullmatch(_BLANK.sub(" ", _AROUND.sub("", plain))) is not None
