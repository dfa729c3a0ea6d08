"""The words that state facts: numbers, months, units, ordinals, shares and opposites."""

from collections.abc import Mapping, Sequence

from indexing.text.tokenizer import words

_MONTH_LIST = """
january february march april may june july august september october november december
"""
MONTHS = _MONTH_LIST.split()
MONTH_NUMBERS: Mapping[str, int] = (
    {name: number for number, name in enumerate(MONTHS, 1)}
    | {name[:3]: number for number, name in enumerate(MONTHS, 1)}
    | {"sept": 9}
)

_UNIT_LIST = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""
_UNITS = _UNIT_LIST.split()
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
NUMBER_WORDS: Mapping[str, int] = (
    {word: value for value, word in enumerate(_UNITS)}
    | {word: 10 * value for value, word in enumerate(_TENS, 2)}
    | {"dozen": 12}
)
MAGNITUDES: Mapping[str, float] = {
    "hundred": 1e2,
    "thousand": 1e3,
    "k": 1e3,
    "lakh": 1e5,
    "million": 1e6,
    "mn": 1e6,
    "crore": 1e7,
    "billion": 1e9,
    "bn": 1e9,
    "trillion": 1e12,
}


def _measures() -> dict[str, tuple[str, float]]:
    table = {
        "time": "ms millisecond=.001; s sec second=1; min minute=60; h hr hour=3600; day=86400; week=604800",
        "months": "month=1; quarter=3; year yr=12; decade=120; century=1200",
        "length": "mm millimetre millimeter=.001; cm centimetre centimeter=.01; m metre meter=1;"
        " km kilometre kilometer=1000",
        "imperial length": "inch inches=1; foot feet ft=12; yard=36; mile mi=63360",
        "mass": "mg milligram=.000001; g gram=.001; kg kilogram=1; tonne=1000",
        "imperial mass": "ounce oz=1; pound lb=16",
        "volume": "ml millilitre milliliter=.001; litre liter=1",
        "imperial volume": "pint=1; gallon=8",
        "force": "newton=1; kn kilonewton=1000; meganewton=1e6",
        "pressure": "pascal=1; hpa hectopascal=100; kpa kilopascal=1000; bar=1e5; mpa megapascal=1e6",
        "imperial pressure": "psi=1",
        "voltage": "mv millivolt=.001; volt=1; kv kilovolt=1000",
        "current": "ma milliamp milliampere=.001; amp ampere=1",
        "frequency": "hz hertz=1; khz kilohertz=1000; mhz megahertz=1e6; ghz gigahertz=1e9",
        "energy": "joule=1; kj kilojoule=1000; wh=3600; kwh=3.6e6; mwh=3.6e9",
        "data": "kb kilobyte=1; mb megabyte=1000; gb gigabyte=1e6; tb terabyte=1e9",
        "binary data": "kib=1; mib=1024; gib=1048576",
        "share": "% percent pct percentage=1; permille mille ‰=.1",
        "percentage points": "pp=1",
        "dollars": "$ dollar usd=1; cent=.01",
        "euros": "€ euro eur=1",
        "pounds": "£ gbp=1",
        "yen": "¥ yen jpy=1",
        "francs": "franc chf=1",
        "temperature": "°c celsius=1",
        "temperature in Fahrenheit": "°f fahrenheit=1",
        "power": "w watt=1; kw kilowatt=1000; mw megawatt=1e6",
        "people": "person people=1",
        "points": "point=1",
        "times": "times=1",
    }
    found: dict[str, tuple[str, float]] = {}
    for dimension, line in table.items():
        for part in line.split(";"):
            names, _, factor = part.strip().rpartition("=")
            for name in names.split():
                found |= {name: (dimension, float(factor))}
                found |= {f"{name}s": (dimension, float(factor))} if len(name) > 1 else {}
    return found


MEASURES: Mapping[str, tuple[str, float]] = _measures()
"""Of a unit, what it measures, and how many of the smallest; weeks are days, but not months."""

EPONYMS = frozenset({"newton", "pascal", "hertz", "volt", "ampere", "joule", "bar"})
"""Units that are names, too."""

_ORDINAL_LIST = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
"""
_ORDINALS = _ORDINAL_LIST.split()
ORDINALS: Mapping[str, str] = {word: str(value) for value, word in enumerate(_ORDINALS, 1)} | {
    "last": "last",
    "final": "last",
    "penultimate": "last but one",
}

SHARES: Mapping[str, str] = {
    word: share
    for share, line in {
        "all": "all every everyone everybody each entire entirely whole wholly full fully complete"
        " completely both total always",
        "most": "most mostly majority usually mainly often frequently many numerous",
        "some": "some sometimes several occasionally",
        "part": "partly partial partially",
        "few": "few minority rarely seldom hardly barely scarcely",
        "none": "none neither nobody",
        "half": "half halves",
        "quarter": "quarter quarters",
        "third": "thirds",
        "fifth": "fifths",
        "double": "double doubled doubles twice twofold",
        "triple": "triple tripled triples thrice threefold",
    }.items()
    for word in line.split()
}
ENTAILED_SHARES: Mapping[str, frozenset[str]] = {
    "some": frozenset({"all", "most", "half", "quarter", "third", "fifth"}),
    "most": frozenset({"all"}),
}
"""Of a share, those that support it."""
EXACT_SHARES = frozenset({"half", "quarter", "third", "fifth", "double", "triple"})
"""Shares that a passage must have, where it says nothing else."""

_OPPOSITES = """
increase growth grow grew grown rise rose risen climb gain expand raise surge upregulate elevate boost
 / decrease decline shrink shrank shrunk fall fell fallen drop reduce reduction diminish dwindle cut downregulate
higher high highest / lower low lowest
more greater / less fewer
greatest / least fewest
larger large largest big bigger biggest greater greatest huge / smaller small smallest little tiny
longer long longest / shorter short shortest brief briefly
better best / worse worst
improve improvement enhance / worsen impair deteriorate harm
stronger strong strongest strengthen / weaker weak weakest weaken
faster fast fastest quick quickly rapid rapidly accelerate / slower slow slowest slowly
earlier early earliest / later late latest
before prior preceding / after following
above over exceed beyond / below under beneath
maximum max upper / minimum min lower
allow permit authorise / forbid forbidden prohibit ban disallow
required mandatory compulsory must obligatory / optional voluntary
win won winner victory beat defeat / lose lost loser
internal internally inside interior indoor indoors within / external externally outside exterior outdoor outdoors
public publicly / private privately
north northern northward / south southern southward
east eastern eastward / west western westward
northeast northeastern / southwest southwestern
northwest northwestern / southeast southeastern
left / right
top / bottom
front / rear back
new newer newest modern recent recently / old older oldest ancient
young younger youngest / old older oldest
begin began begun start beginning onset / end ended finish stop conclude cease
open opened / close closed shut
enable activate switched / disable deactivate
accept approve approval / reject refuse decline deny denied
include inclusive including contain / exclude exclusive excluding except
positive positively / negative negatively
success successful successfully succeed succeeded / failure fail failed unsuccessful unsuccessfully
possible able / impossible unable
common frequent frequently often / rare rarely seldom
easy easily simple / difficult hard complicated
buy bought purchase / sell sold sale
gain profit / loss lose
import / export
join joined enter entered / leave left exit quit
arrive arrived arrival / depart departure
add added addition / remove removed removal delete deleted
create build built construct / destroy demolish
support supported favour favor endorse / oppose opposed opposition
promote stimulate induce / hinder inhibit inhibition suppress prevent block
cause lead led / prevent avoid
with including / without
rich wealthy / poor
wide wider broad / narrow narrower
heavy heavier / light lighter
full / empty
thick / thin
deep / shallow
important significant essential crucial major / unimportant insignificant negligible minor
safe safely harmless / dangerous unsafe harmful hazardous
male man men boy / female woman women girl
husband father son brother / wife mother daughter sister
dry / wet
hot warm hotter warmer / cold cool colder cooler
urban city / rural countryside
majority / minority
permanent permanently / temporary temporarily
hire hired recruit / dismiss dismissed fire fired
employer / employee
teacher / student pupil
seller vendor / buyer customer
sender / recipient receiver
ancestor / descendant
agree agreed / disagree disagreed
legal legally lawful / illegal illegally unlawful
true correct / false incorrect wrong
known / unknown
likely / unlikely
necessary / unnecessary
regular regularly / irregular irregularly
direct directly / indirect indirectly
dependent depend / independent independently
complete completely / incomplete
formal / informal
active actively / inactive passive
visible / invisible hidden
equal / unequal
stable / unstable
available / unavailable
paid / unpaid
limited / unlimited
encrypted / unencrypted plain
resistant resistance / susceptible sensitive
sensitive / insensitive
upstream / downstream
horizontal horizontally / vertical vertically
daytime / night nightly
morning / evening afternoon
summer / winter
spring / autumn
weekday / weekend
domestic / foreign international
local / remote global
manual manually / automatic automatically
online / offline
odd / even
divide / multiply
ascend ascending / descend descending
attack / defend
friend ally / enemy foe
peace / war
alive living / dead
birth born / died death
love / hate
remember / forget
lend lent / borrow borrowed
push / pull
send sent / receive received
cheap cheaper cheapest / expensive dearer
gradually gradual / suddenly sudden
optimistic / pessimistic
advantage benefit / disadvantage drawback
liberal left-wing / conservative right-wing
democratic / authoritarian
acid acidic / alkaline
solid / liquid
quiet silent / loud noisy
clean / dirty
alone individually / together jointly
credit / debit
asset / liability
income revenue / expense expenditure
surplus / deficit
"""


def _sides() -> dict[str, frozenset[tuple[int, int]]]:
    found: dict[str, set[tuple[int, int]]] = {}
    for number, line in enumerate(_OPPOSITES.replace("\n /", " /").strip().splitlines()):
        for side, listed in enumerate(line.split("/")):
            for form in (form for word in listed.split() for form in _inflect(word)):
                found.setdefault(form, set()).add((number, side))
    return {word: frozenset(sides) for word, sides in found.items()}


def _inflect(word: str) -> frozenset[str]:
    """Return the forms of a word; a stem would take in others ("position" with "positive")."""
    bare = word.removesuffix("e")
    forms = {word, f"{word}s", f"{word}es", f"{bare}ed", f"{bare}ing", f"{word}ly"}
    if word.endswith("y"):
        forms |= {f"{word[:-1]}ies", f"{word[:-1]}ied"}
    return frozenset(forms | {f"{word}{word[-1]}{ending}" for ending in ("ed", "ing")})


def stem(word: str) -> str:
    """Return the form of a folded word by which it is compared; stop words stay as they are."""
    found: Sequence[str] = words(word)
    return found[-1] if found else word


OPPOSITES: Mapping[str, frozenset[tuple[int, int]]] = _sides()
"""Of a folded word, the number of each pair of opposites that it belongs to, and the side, 0 or 1."""
