"""Stop words of English for the index, and function words of several languages for keyword queries."""

from collections.abc import Mapping

from indexing.text.normalization import fold


def _fold_words(words: str) -> frozenset[str]:
    return frozenset(fold(word) for word in words.split())


ENGLISH = _fold_words(
    """a an and are as at be but by for if in into is it no not of on or such that the their then
    there these they this to was will with"""
)
"""Neither indexed nor searched. Short on purpose: words that are left out can never be found."""

_FUNCTION_WORDS: Mapping[str, str] = {
    "English": """what which who whom whose when where why how whether do does did done doing can could should
        would shall may might must have has had having am were been being i me my mine we us our
        ours you your yours he him his she her hers its them theirs can cannot don doesn didn isn
        aren wasn weren hasn haven hadn couldn shouldn wouldn mustn any some so than too very just
        about from up down out over under again further once here all both each few more most other
        only own same because until while during before after above below between through against
        please tell show give find explain describe know want need let get anything something anyone
        someone also""",
    "German": """der die das den dem des ein eine einen einem einer eines und oder aber ist sind war waren
        wird werden wurde wurden hat habe hast habt haben hatte hatten kann können konnte soll
        sollen muss müssen darf dürfen was wer wen wem wessen wann wo woher wohin warum wieso
        weshalb wie wieviel viele welche welcher welches welchen welchem ich du er sie es wir ihr
        mich dich uns euch mir dir ihm ihnen mein meine meinen unser unsere in im ins an am auf aus
        bei beim bis durch für gegen mit nach ohne seit um über unter vom von vor zu zum zur
        zwischen nicht kein keine keinen auch nur noch schon sich man dass wenn als so sehr bitte
        gibt es dieser diese dieses diesen diesem""",
    "French": """le la les l un une des du de d et ou mais est sont était étaient sera être a ai as avons
        avez ont avait avoir fait faire peut peuvent doit doivent dois puis que qu qui quoi quel
        quelle quels quelles quand où comment pourquoi combien lequel laquelle je tu il elle on nous
        vous ils elles me te se mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs ce
        cet cette ces c j m n s t y en dans sur sous avec sans pour par à au aux chez entre vers ne
        pas plus aussi très si donc est-ce dont""",
    "Spanish": """el la los las un una unos unas de del al y e o u pero es son era eran fue ser está están
        estar ha han había haber hay hace hacer puede pueden puedo debe deben debo que qué quien
        quién quienes cual cuál cuales cuáles cuando cuándo donde dónde como cómo cuanto cuánto
        cuántos cuántas por para porque yo tú él ella nosotros ellos ellas usted ustedes me te se
        nos le les lo mi mis tu tus su sus nuestro nuestra este esta estos estas ese esa eso en con
        sin sobre entre hasta desde no ni más muy también si sí""",
    "Italian": """il lo la i gli le un uno una l c d un all dell nell sull dall di del dello della dei degli
        delle a al allo alla ai agli alle da dal dalla dai in nel nella nei nelle su sul sulla con
        per tra fra e ed o ma è sono era erano essere ha hanno avere può possono posso deve devono
        devo fare che chi cosa quale quali quando dove come perché quanto quanti quante io tu lui
        lei noi voi loro mi ti si ci vi mio mia suo sua nostro nostra questo questa questi queste
        non più anche molto se""",
    "Portuguese": """o a os as um uma uns umas de do da dos das em no na nos nas por pelo pela para com sem sobre
        entre até e ou mas é são era eram foi ser está estão estar há tem têm ter pode podem posso
        deve devem devo fazer que quem qual quais quando onde como porque quanto quantos quantas eu
        tu ele ela nós eles elas você vocês me te se meu minha seu sua nosso nossa este esta isto
        esse essa isso não mais muito também ao aos à às""",
    "Dutch": """de het een en of maar is zijn was waren wordt worden werd heb hebt heeft hebben had hadden
        kan kunnen kon moet moeten mag mogen zal zullen wat wie waar wanneer waarom hoe hoeveel
        welke welk ik je jij u hij zij ze we wij jullie mij me mijn jouw uw haar ons onze hun in op
        aan van voor met naar bij uit over onder tussen door tot om te niet geen ook nog wel er dat
        die dit deze als dan zich men""",
}

FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    language: _fold_words(words) | (ENGLISH if language == "English" else frozenset())
    for language, words in _FUNCTION_WORDS.items()
}
"""Function words and question words, by language."""

CHINESE = (
    "^请(?:问|告诉我|介绍|说明|解释)?|(?:请问|(?:请)?告诉我|我(?:想|要)知道)",
    "为什么|为何|什么时候|什么样|是什么|什么|怎么样|怎么办|怎么|怎样|如何",
    "(?:是|有)?(?:哪些|哪里|哪儿|哪个|哪位|哪种|哪年|哪一|多少|几个|谁)|多久",
    "是否|有没有|能不能|可不可以|是不是|可以|应该|需要|以及|关于|我们|你们|(?<!自)我(?!国)|你",
    r"(?:吗|呢|吧|啊)(?!\p{Han})|(?<!(?<![项题节栏数科书])目)的(?!确)|了(?!解)|(?<!但|于|凡)是(?!非)",
)
"""Patterns of function words and question words, the longer ones first."""

JAPANESE = (
    "ではありませんか|でしょうか|のですか|ですか|です|(?:ありま|いま|できま|しま|なりま|りま|ま)(?:すか|せんか|す)",
    "すればよい|すればいい|したらよい|したらいい|よいですか|いいですか|ください|されています|している",
    "どのように|どのような|どのくらい|どれくらい|どこ|いつ|だれ|どれ|どの|どんな|どちら|どう|なぜ|なに|なん|何|誰",
    "いくつ|いくら|それぞれ|という|として|について|に関して|するには|とは|には|では|への|との|での|まで|から|より",
    "する|した|して|される|された|は|が|を|に|で|の|と|も|へ|や|か|な",
)
"""Patterns of particles, endings and question words; a run of nothing else is dropped."""

JAPANESE_REQUESTS = ("を?教えて(?:ください|下さい)?", "を?知りたい(?:です)?")
