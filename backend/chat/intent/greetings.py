"""Messages that need no look-up, by rule: greetings and thanks, in the languages of the product's own examples."""

import regex

LONGEST = 60
"""Characters; a longer message says more than a greeting."""

_WORDS = (
    r"hi|hey|hello|hallo|good morning|good afternoon|good evening|good day|greetings|thanks|thank you|thank you very much|thanks a lot|many thanks"
    r"|bye|goodbye|see you|cheers|how are you"
    r"|guten morgen|guten tag|guten abend|servus|moin|danke|vielen dank|danke schön|tschüss|auf wiedersehen"
    r"|bonjour|bonsoir|salut|merci|merci beaucoup|au revoir"
    r"|hola|buenos días|buenas tardes|buenas noches|gracias|muchas gracias|adiós"
    r"|ciao|buongiorno|grazie|olá|obrigad[oa]"
    r"|你好|您好|嗨|早上好|早安|晚上好|下午好|谢谢|謝謝|多谢|非常感谢|再见|再見"
    r"|こんにちは|こんばんは|おはよう|おはようございます|ありがとう|ありがとうございます|さようなら"
)
_FILLERS = r"there|all|everyone|everybody|team|again|so much|zusammen|dir|ihnen|à tous|a todos|大家|みなさん|quarry|吗|呀|啊"
# The longest first: what was matched is not given back.
_ALTERNATIVES = "|".join(sorted(_WORDS.split("|"), key=len, reverse=True))
_GREETING = regex.compile(
    rf"(?:[\p{{P}}\p{{S}}\s]*+(?:{_ALTERNATIVES})(?![\p{{Latin}}\d])(?:[\p{{P}}\p{{S}}\s]*+(?:{_FILLERS})(?![\p{{Latin}}\d]))?+)++[\p{{P}}\p{{S}}\s]*+",
    regex.IGNORECASE,
)


def is_greeting(message: str) -> bool:
    """Return whether a message is nothing but a greeting, a farewell or thanks."""
    text = message.strip()
    return len(text) <= LONGEST and _GREETING.fullmatch(text) is not None
