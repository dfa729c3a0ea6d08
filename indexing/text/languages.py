"""Languages: how each is stemmed, and what a text in it shows.

Most scripts identify the language, or are used by one that has a stemmer. Several languages share the others (Latin,
Cyrillic, Arabic, Devanagari); one of them is the default of its script: English, Russian, Arabic, Hindi.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import regex

from indexing.text.normalization import normalize
from indexing.text.stop_words import ENGLISH

Script: TypeAlias = Literal[
    "Latin", "Greek", "Cyrillic", "Arabic", "Devanagari", "Armenian", "Tamil"
]


@dataclass(frozen=True, slots=True)
class Language:
    code: str
    """Of ISO 639-1."""
    script: Script
    stemmer: str | None
    """The Snowball algorithm; `None`: there is none, and its words are indexed as they are."""
    letters: frozenset[str]
    """Letters beyond those of English, for languages in Latin script; else those that others lack."""
    stop_words: frozenset[str]
    """Normalized; neither indexed nor searched. Short, because words that are left out can never be found."""


def _language(code: str, script: Script, stemmer: str | None, letters: str, words: str) -> Language:
    return Language(
        code, script, stemmer, frozenset(letters), frozenset(map(normalize, words.split()))
    )


_ALL = (
    Language("en", "Latin", "english", frozenset(), ENGLISH),
    _language(
        "ca", "Latin", "catalan", "àçèéíïòóúü",
        "el la els les un una de del dels al als i o en és són per amb sense que no es se com més però l d seu seva aquest aquesta",
    ),
    _language(
        "cs", "Latin", "czech", "áčďéěíňóřšťúůýž",
        "a i nebo v ve z ze na do od o u po při za nad pod pro je jsou byl byla bylo to ten ta se že jak který která které ale jako s k by",
    ),
    _language(
        "da", "Latin", "danish", "æøå",
        "en et den det de der og eller men i på af for til fra med om er var som at ikke har sig ved efter under kan skal blev",
    ),
    _language(
        "de", "Latin", "german", "äöüß",
        """der die das den dem des ein eine einen einem einer eines und oder aber ist sind war waren im in an am auf aus bei mit nach
        nicht sich von vom zu zum zur für auch als wie es dass daß wird werden wurde wurden""",
    ),
    _language(
        "es", "Latin", "spanish", "áéíñóúü",
        "el la los las un una unos unas de del al y o en es son por para con sin su sus que se no lo como más pero este esta",
    ),
    _language(
        "et", "Latin", "estonian", "äõöüšž",
        "ja või on ei oli see need et mis kes kui ka aga oma ning tema selle seda nii pärast",
    ),
    _language(
        "eu", "Latin", "basque", "ñ",
        "eta edo da dira zen ziren ez bat ere du dute dela duen den hau hori baina izan",
    ),
    _language(
        "fi", "Latin", "finnish", "äö",
        "ja tai on ei oli ovat se ne hän että joka jotka kun kuin myös mutta niin sen hänen sitä siitä tämä mukaan sekä vain jos ole",
    ),
    _language(
        "fr", "Latin", "french", "àâæçéèêëîïôœùûüÿ",
        "le la les l un une des du de d et ou est sont au aux en dans par pour sur avec ce cette ces que qu qui ne pas se il elle son sa ses plus",
    ),
    _language(
        "ga", "Latin", "irish", "áéíóú",
        "an na agus nó is ba ar le do go ag ón faoi sé sí bhí tá nach níl",
    ),
    _language(
        "hu", "Latin", "hungarian", "áéíóöőúüű",
        "a az egy és vagy de is nem hogy ez azt ezt volt van meg el ki be fel le már csak mint amely aki után között",
    ),
    _language(
        "id", "Latin", "indonesian", "",
        "yang dan atau di ke dari untuk dengan pada adalah ini itu tidak akan dalam oleh sebagai juga karena bahwa para",
    ),
    _language(
        "it", "Latin", "italian", "àèéìòù",
        """il lo la i gli le un uno una di del dello della dei degli delle a al alla da dal dalla in nel nella con su sul per tra e ed o che
        non è sono si come più l d dell nell all""",
    ),
    _language(
        "lt", "Latin", "lithuanian", "ąčęėįšųūž",
        "ir ar yra buvo ne kad kaip į iš su ant per prie nuo iki bei tai o bet jis ji jo jos",
    ),
    _language(
        "nl", "Latin", "dutch", "éëïöü",
        "de het een en of van in op te ten ter aan bij met voor door uit naar om is zijn was werd wordt niet dat die dit deze er ook als maar",
    ),
    _language(
        "no", "Latin", "norwegian", "æøå",
        "en et den det de og eller men i på av for til fra med om er var som at ikke har seg ved etter under kan skal ble",
    ),
    _language(
        "pl", "Latin", "polish", "ąćęłńóśźż",
        "i oraz lub w z ze na do od o u po przy za nad pod przez dla jest są był była było to ten ta nie się że jak który która które ale",
    ),
    _language(
        "pt", "Latin", "portuguese", "áâãàçéêíóôõú",
        "o a os as um uma de do da dos das em no na nos nas por pelo pela para com sem e ou que não é são se ao à mais como sua seu",
    ),
    _language(
        "ro", "Latin", "romanian", "ăâîșțşţ",
        "un o unei unui și şi sau de din la în pe cu pentru prin este sunt a al ale ai că care nu se mai fi dar ca după între lui",
    ),
    _language(
        "sv", "Latin", "swedish", "åäö",
        "en ett den det de och eller men i på av för till från med om är var som att inte har sig vid efter under kan ska",
    ),
    _language(
        "tr", "Latin", "turkish", "çğıöşü",
        "ve veya bir bu şu o da de ki ile için mi mı ama gibi daha çok olan olarak en her ise ne kadar sonra değil",
    ),
    # Its words are syllables, which function words are too: none is left out.
    _language(
        "vi", "Latin", None,
        "àáảãạăằắẳẵặâầấẩẫậđèéẻẽẹêềếểễệìíỉĩịòóỏõọôồốổỗộơờớởỡợùúủũụưừứửữựỳýỷỹỵ", "",
    ),
    _language("el", "Greek", "greek", "",
        "ο η το οι τα του της των τον την και ή σε στο στη στην στον στα από για με που ότι είναι ήταν δεν να θα ως αλλά κατά μια ένα ένας",
    ),
    _language(
        "ru", "Cyrillic", "russian", "ёыэщъ",
        "и в во на с со к ко о об от до по за из у не но а или что как это его её их он она они был была были для при же бы только",
    ),
    _language(
        "sr", "Cyrillic", "serbian", "ђћџљњј",
        "и у на с са о од до по за из не али или што како је су био била било да се који која које то овај",
    ),
    _language(
        "bg", "Cyrillic", None, "ъщ",
        "и в на с със от до по за из не но или че да се е са как това той тя те като си при беше бяха",
    ),
    _language(
        "uk", "Cyrillic", None, "іїєґ",
        "і й та в у на з із до від по за не але або що як це його її їх він вона вони був була були для при",
    ),
    _language(
        "ar", "Arabic", "arabic", "ةىي",
        "في من على إلى عن مع هذا هذه ذلك التي الذي أن إن لا ما هو هي كان كانت أو ثم قد لم لن بين بعد قبل عند كل",
    ),
    _language(
        "fa", "Arabic", "persian", "پچژگکی",
        "و در به از که این آن را با برای است بود شد می یک تا بر هم نیز یا اما های خود او",
    ),
    _language(
        "ur", "Arabic", None, "ٹڈڑںے",
        "کے کا کی میں سے کو ہے ہیں اور پر یہ وہ نے ایک تھا تھے تھی لیے یا بھی نہیں ہو اس کر تو جو ہی",
    ),
    _language(
        "hi", "Devanagari", "hindi", "",
        "के का की में से को है हैं और पर यह वह ने एक था थे थी लिए या भी नहीं हो इस कर तो जो ही",
    ),
    _language(
        "ne", "Devanagari", "nepali", "",
        "र को का मा ले छ छन् हो थियो भएको यो त्यो गर्ने एक पनि तथा वा लाई बाट हुन्छ लागि",
    ),
    _language(
        "hy", "Armenian", "armenian", "",
        "և ու է են էր մեջ որ այս այն հետ մի համար նաև թե կամ ոչ իր նրա",
    ),
    _language(
        "ta", "Tamil", "tamil", "",
        "மற்றும் ஒரு இந்த அந்த என்று என இது அது உள்ள ஆகும் அல்லது இல்லை தான் மேலும்",
    ),
)  # fmt: skip

LANGUAGES: Mapping[str, Language] = {language.code: language for language in _ALL}

_DEFAULTS: Mapping[Script, Language] = {language.script: language for language in reversed(_ALL)}
DEFAULT_CODES = frozenset(language.code for language in _DEFAULTS.values())
"""Of the language of each script for which words are taken where nothing else is known."""
_SCRIPT = regex.compile("|".join(rf"(?P<{script}>\p{{{script}}})" for script in _DEFAULTS))


@lru_cache(maxsize=1 << 10)
def group_by_script(codes: frozenset[str]) -> Mapping[Script, tuple[Language, ...]]:
    """Return the languages that a word of each script may be in: the default one, then those of `codes`."""
    return {
        script: (
            default,
            *(LANGUAGES[code] for code in sorted(codes) if LANGUAGES[code].script == script),
        )
        for script, default in _DEFAULTS.items()
    }


def find_script(word: str) -> Script | None:
    """Return the script of a word; `None` for one whose languages have no stemmer."""
    if word.isascii():
        return "Latin"
    found = _SCRIPT.match(word, concurrent=False)
    return next(script for script in _DEFAULTS if found[script]) if found else None
