"""The sentences and words of pages that stand in place of others: English, Chinese, Japanese, German."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from backend.web_search.results import Obstacle


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


SENTENCES: Mapping[Obstacle, re.Pattern[str]] = MappingProxyType(
    {
        Obstacle.CAPTCHA: _any_of(
            r"(verify|verifying|confirm|prove|check if|checking if) (that )?you('re| are) (a )?(human|not a (ro)?bot)",
            r"i('m| am) not a robot|are you a (human|robot)|human verification",
            r"checking (your browser|if the site connection is secure)|review the security of your connection",
            r"complete the (security check|captcha)|solve (the|this) captcha|captcha (is )?required",
            r"unusual (traffic|activity) (from|on) your|automated (requests|queries|access) from",
            r"press (and|&) hold|(enter|type) the characters you see",
            r"(请|請).{0,10}(验证|驗證)(后|後|以|$|[,.。，!！ ])|安全(验证|驗證)|(拖动|拖動|滑动|滑動).{0,4}(滑块|滑塊|拼图|拼圖|验证|驗證)",
            r"(输入|輸入).{0,6}(验证码|驗證碼)|不是(机器人|機器人)|人机验证|人機驗證|(访问|訪問).{0,4}(频繁|頻繁)|(异常|異常)流量",
            r"ロボットで(は)?ない|画像認証|人間であることを(確認|証明)|表示され(ている|た)文字を入力|不審なアクセス|通常と異なるトラフィック",
            r"kein(e)? roboter|sicherheits(über)?prüfung|dass sie ein mensch|ungewöhnliche[rn]? (datenverkehr|aktivität)|ihr browser wird (über)?geprüft",
        ),
        Obstacle.NOT_FOUND: _any_of(
            r"page (that )?(you('re| are| were)? ?(looking for|requested|trying to)|requested).{0,80}(not|no longer|n't|moved|removed|deleted)",
            r"page (was |could |can)?(not|n't) (be )?found|page not found|(can'?t|cannot|couldn't|could not|unable to) find (that|this|the) page",
            r"(this|that|the) (page|content|link|article) (does(n't| not) exist|no longer exists|(is |has been )?(no longer available|removed|deleted))",
            r"\b(error|http) ?404\b|\b404 ?(error|not found|[-–] ?(page|not|file))",
            r"(页面|頁面|网页|網頁|内容|內容|文章).{0,4}(不存在(?!任何)|找不到|被?(删除|刪除)|无法找到|走丢)|(找不到|没有找到|沒有找到).{0,10}(页面|頁面|网页|網頁)",
            r"(ページ|記事|コンテンツ)(は|が)?.{0,8}(見つかりません|存在しません|(削除|移動)(され|した).{0,2}(可能性|ました))",
            r"seite.{0,40}(nicht gefunden|existiert.{0,12}nicht|nicht (mehr )?(verfügbar|vorhanden)|nicht finden)",
        ),
        Obstacle.LOGIN: _any_of(
            r"(log|sign) ?in (or (register|sign up|create an account|subscribe) )?to (continue|view|read|see|access|proceed)",
            r"(must|need to|have to) (be (logged|signed) in|log ?in|sign ?in)|please (log|sign) ?in|(log|sign) ?in (is )?required",
            r"(subscribe|register|create (a free|an) account) (now )?to (continue|keep|read|view|unlock)|(content|article|page) is (only )?(available )?(for|to) (our )?(subscribers|members|registered)",
            r"(请|請)(您)?(先)?(登录|登錄|登入)|(登录|登錄|登入)后?(才能|才可|即可|可|再)?(查看|继续|繼續|阅读|閱讀)|(订阅|訂閱|付费|付費|注册|註冊)(后|後)?.{0,4}(阅读|閱讀|查看|全文)",
            r"ログイン(して|が必要|してから)|(会員|有料)(登録|会員|限定).{0,10}(必要|記事|限定)|続きを(読む|見る|ご覧)には",
            r"(melden sie sich|melde dich|loggen sie sich) .{0,20}(an|ein)\b|anmeldung erforderlich|(anmelden|registrieren|abonnieren).{0,6} um .{0,40}(zu|weiter)",
        ),
        Obstacle.SCRIPTS: _any_of(
            r"(enable|activate|turn on|requires?|without|needs?|allow|supports?) java ?script|java ?script (is|must be|has been|to be|and cookies) ",
            r"(启用|啟用|开启|開啟|打开|需要|支持).{0,4}java ?script|java ?script.{0,6}(禁用|未启用|停用)",
            r"java ?script.{0,4}[をが].{0,8}(有効|オン|必要|無効)",
            r"java ?script.{0,30}(aktivier|einschalt|deaktiviert|erforderlich|benötigt)|(aktivieren|benötigt|erfordert|braucht).{0,20}java ?script",
        ),
        Obstacle.CONSENT: _any_of(
            r"(cookies?|partners|personal data|privacy).{0,400}(accept|agree|allow|consent|reject|got it)|before you continue",
            r"(cookies?|隐私|隱私|个人信息|個人資料).{0,200}(接受|同意|拒绝|拒絕)",
            r"(cookie|クッキー|プライバシー).{0,200}(同意|許可|拒否)",
            r"(cookies?|einwilligung|personenbezogene|datenschutz).{0,400}(akzeptieren|zustimmen|ablehnen|einverstanden|verstanden)",
        ),
    }
)  # fmt: skip
"""Sentences that only such pages say. In the order in which they are looked for: a check of visitors may speak of JavaScript, and
a missing page of cookies."""

WORDS: Mapping[Obstacle, re.Pattern[str]] = MappingProxyType(
    {
        Obstacle.CAPTCHA: _any_of(r"human|robot|browser|secur|check|verif|ray id|cloudflare|验证|驗證|確認|認証|roboter|prüf"),
        Obstacle.NOT_FOUND: _any_of(r"404|not found|sorry|oops|home|search|back|首页|首頁|返回|抱歉|トップ|申し訳|startseite|leider|zurück"),
        Obstacle.LOGIN: _any_of(r"log ?in|sign ?(in|up)|password|account|register|subscri|e-?mail|user ?name|登录|登錄|登入|密码|密碼|账号|ログイン|パスワード|会員|anmeld|passwort|konto|registrier"),
        Obstacle.SCRIPTS: _any_of(r"java ?script|browser|reload|loading"),
        Obstacle.CONSENT: _any_of(r"cookie|consent|partner|privacy|data|accept|agree|reject|settings|preference|continue|隐私|隱私|接受|同意|拒绝|拒絕|設定|クッキー|プライバシー|拒否|einwillig|datenschutz|akzeptier|ablehn|einstellung|zustimm|personenbezogen"),
    }
)  # fmt: skip
"""Words of sentences that belong to such a page; other sentences are of another one."""

TITLES: Mapping[Obstacle, re.Pattern[str]] = MappingProxyType(
    {
        Obstacle.CAPTCHA: _any_of(
            r"^just a moment\b|^attention required|^(security|robot|bot) check|^human verification|^are you (a )?(human|robot)|\bcaptcha\b",
            r"^(安全验证|安全驗證|人机验证|访问验证|百度安全验证)|^sicherheits(über)?prüfung",
        ),
        Obstacle.NOT_FOUND: _any_of(
            r"^(error |http )?404\b|^(page |file )?not found\b|page (not found|doesn't exist|unavailable)",
            r"(页面|頁面|网页|網頁)(不存在|找不到|未找到|没有找到)|ページが見つかりません|seite (wurde )?nicht gefunden",
        ),
        Obstacle.LOGIN: _any_of(
            r"^(log|sign) ?in( (to|-|–|\||·|—|:) .*)?$|^(登录|登錄|登入|用户登录)|^ログイン|^(anmelden|anmeldung|login)( (-|–|\||·|—|:) .*)?$"
        ),
    }
)
"""Titles and first headings of such pages."""

LOADING = _any_of(
    # Possessive: with a choice of where the first dots end, many of them take quadratic time.
    r"^[\s.…]*+(loading|please wait|one moment|laden|wird geladen|加载中|载入中|載入中|正在加载|読み込み中)?[\s.…]*+$"
)
"""What an application shows until its scripts have run."""
