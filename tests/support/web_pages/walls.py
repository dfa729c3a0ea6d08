"""Pages that a site shows in place of what was asked for, and articles about such pages."""

from collections.abc import Iterator

from backend.web_search.results import Obstacle
from tests.support.web_pages import texts
from tests.support.web_pages.page import (
    Fails,
    IsBlocked,
    LocalPage,
    Reads,
    article,
    html,
)

_WALLS: tuple[tuple[str, str, Obstacle, str, str], ...] = (
    ("captcha", "en", Obstacle.CAPTCHA, "Just a moment...", "<p>Verifying you are human. This may take a few seconds.</p><p>news.test needs to review the security of your connection before proceeding.</p>"),
    ("captcha", "zh", Obstacle.CAPTCHA, "安全验证", "<p>请完成下方验证后继续操作</p><div>拖动滑块完成拼图</div>"),
    ("captcha", "ja", Obstacle.CAPTCHA, "確認", "<p>あなたがロボットではないことを確認してください。</p><button>続ける</button>"),
    ("captcha", "de", Obstacle.CAPTCHA, "Sicherheitsprüfung", "<p>Bitte bestätigen Sie, dass Sie kein Roboter sind.</p><button>Weiter</button>"),
    ("consent", "en", Obstacle.CONSENT, "Before you continue", "<p>We and our 842 partners store and access cookies on your device to process personal data.</p><button>Accept all</button><button>Reject all</button>"),
    ("consent", "zh", Obstacle.CONSENT, "隐私提示", "<p>我们使用Cookie来改善您的体验。继续访问前请选择。</p><button>接受全部</button><button>拒绝全部</button>"),
    ("consent", "ja", Obstacle.CONSENT, "プライバシー", "<p>当サイトではCookieを使用しています。続けるにはCookieの使用に同意してください。</p><button>すべて同意する</button>"),
    ("consent", "de", Obstacle.CONSENT, "Datenschutz", "<p>Wir und unsere 213 Partner verwenden Cookies und verarbeiten personenbezogene Daten.</p><button>Alle akzeptieren</button><button>Einstellungen</button>"),
    ("login", "en", Obstacle.LOGIN, "Log in", "<p>You must log in to continue.</p><form><input name='u'><input type='password' name='p'><button>Log in</button></form>"),
    ("login", "zh", Obstacle.LOGIN, "登录", "<p>请先登录后再查看该内容</p><form><input name='u'><input type='password' name='p'></form>"),
    ("login", "ja", Obstacle.LOGIN, "ログイン", "<p>この記事を読むにはログインしてください。</p><form><input type='password' name='p'></form>"),
    ("login", "de", Obstacle.LOGIN, "Anmelden", "<p>Bitte melden Sie sich an, um fortzufahren.</p><form><input type='password' name='p'></form>"),
    ("scripts", "en", Obstacle.SCRIPTS, "App", "<noscript>You need to enable JavaScript to run this app.</noscript><div id='root'></div><script src='/missing.js'></script>"),
    ("scripts", "zh", Obstacle.SCRIPTS, "应用", "<noscript><strong>请启用JavaScript以继续访问。</strong></noscript><div id='app'></div><script src='/missing.js'></script>"),
    ("scripts", "ja", Obstacle.SCRIPTS, "アプリ", "<p>このページを表示するにはJavaScriptを有効にしてください。</p><script src='/missing.js'></script>"),
    ("scripts", "de", Obstacle.SCRIPTS, "Anwendung", "<p>Bitte aktivieren Sie JavaScript in Ihrem Browser, um diese Seite zu nutzen.</p><script src='/missing.js'></script>"),
    ("missing", "en", Obstacle.NOT_FOUND, "Oops", "<h1>Page not found</h1><p>Sorry, the page you are looking for does not exist or has been moved.</p><a href='/'>Home</a>"),
    ("missing", "zh", Obstacle.NOT_FOUND, "出错了", "<h1>404</h1><p>抱歉,您访问的页面不存在或已被删除。</p><a href='/'>返回首页</a>"),
    ("missing", "ja", Obstacle.NOT_FOUND, "エラー", "<p>お探しのページは見つかりませんでした。</p><a href='/'>トップへ戻る</a>"),
    ("missing", "de", Obstacle.NOT_FOUND, "Fehler", "<h1>Seite nicht gefunden</h1><p>Die angeforderte Seite existiert leider nicht mehr.</p>"),
)  # fmt: skip

_CLOUDFLARE = html(
    "Just a moment...",
    "<noscript>Enable JavaScript and cookies to continue</noscript><script>window._cf_chl_opt={cType:'managed'};</script><div id='challenge-error-text'></div>",
)
_LONG_CONSENT = """<div class="consent-page"><h1>Before you continue to the news</h1><form action="/collect-consent">
<p>We and our 842 partners store and access information on your device, such as cookies, and process personal data such as unique identifiers and standard
information sent by a device for personalised advertising and content, advertising and content measurement, audience research and services development.</p>
<p>With your permission we and our partners may use precise geolocation data and identification through device scanning. You may click to consent to our and our
842 partners' processing as described above. Alternatively you may access more detailed information and change your preferences before consenting or refuse consenting.</p>
<p>Please note that some processing of your personal data may not require your consent, but you have a right to object to such processing. Your preferences will
apply to this website only.</p><button>Accept all</button><button>Reject all</button><button>Manage privacy settings</button></form></div>"""

_ABOUT = (
    ("captcha", "en", "How a captcha works", texts.EN, "A captcha asks you to verify you are human. “Just a moment...” and “I'm not a robot” are what people see, and security checks such as “Checking your browser before accessing” are run by scripts."),
    ("consent", "en", "What cookie banners cost", texts.EN, "“We use cookies” stands on every page. Most people click “Accept all”, few “Reject all”; a consent wall stands in place of the page."),
    ("login", "de", "Das Ende der Passwörter", texts.DE, "„Bitte melden Sie sich an“ und „Passwort vergessen?“ sind Sätze, die jeder kennt. Wer sich anmelden will, braucht bald nur noch einen Schlüssel."),
    ("missing", "zh", "网页为什么会消失", texts.ZH, "“404 页面不存在”是互联网上最常见的提示之一。请先登录、请完成验证,也是人们每天都会遇到的句子。"),
    ("scripts", "ja", "スクリプトのない世界", texts.JA + texts.JA_MORE, "「JavaScriptを有効にしてください」という文は、多くのサイトで目にする。ページが見つかりません、ログインしてください、という文も同じだ。"),
)  # fmt: skip

_SCRIPTED = """<div id="root"></div><noscript>You need to enable JavaScript to run this app.</noscript>
<script>document.title = "A tidal pool"; document.getElementById("root").innerHTML = `%s`;</script>"""
_FETCHED = """<div id="root"></div><script>fetch("/scripted/data.json").then(answer => answer.json()).then(data => {
document.getElementById("root").innerHTML = "<article><h1>A tidal pool</h1>" + data.paragraphs.map(one => "<p>" + one + "</p>").join("") + "</article>";});</script>"""


def pages() -> Iterator[LocalPage]:
    for name, language, obstacle, title, body in _WALLS:
        yield LocalPage(
            f"/walls/{name}-{language}", html(title, body, lang=language), IsBlocked(obstacle)
        )
    yield from _odd_walls()
    yield from _articles_about_walls()
    yield from _answers_with_status()
    yield from _scripted()


def _odd_walls() -> Iterator[LocalPage]:
    yield LocalPage(
        "/walls/consent-long",
        html("Before you continue to the news", _LONG_CONSENT, lang="en"),
        IsBlocked(Obstacle.CONSENT),
    )
    yield LocalPage(
        "/walls/teaser",
        html("A tidal pool", "<h1>A tidal pool</h1><p>The harbour town of Vellmar opened its pool on Saturday…</p><p>Subscribe to continue reading. Already a subscriber? Sign in.</p>", lang="en"),
        IsBlocked(Obstacle.LOGIN),
    )  # fmt: skip
    yield LocalPage(
        "/walls/recaptcha",
        html("news.test", "<p>To continue, please tick the box.</p><div class='g-recaptcha' data-sitekey='x'></div>", lang="en"),
        IsBlocked(Obstacle.CAPTCHA),
    )  # fmt: skip
    yield LocalPage("/walls/empty", b"", IsBlocked(Obstacle.EMPTY))
    yield LocalPage("/walls/blank", html("Blank", "<div> </div>"), IsBlocked(Obstacle.EMPTY))
    yield LocalPage(
        "/walls/shell",
        html("Shell", "<div id='__next'></div><script src='/missing.js'></script>"),
        IsBlocked(Obstacle.SCRIPTS),
        rendered=IsBlocked(Obstacle.EMPTY),
    )


def _articles_about_walls() -> Iterator[LocalPage]:
    for name, language, title, paragraphs, sentence in _ABOUT:
        yield LocalPage(
            f"/about/{name}-{language}",
            html(title, article(title, (sentence, *paragraphs)), lang=language),
            Reads(title, (sentence[:20], paragraphs[0][:20]), (), language),
        )


def _answers_with_status() -> Iterator[LocalPage]:
    missing = html("Gone fishing", article("Gone fishing", texts.EN))
    yield LocalPage("/status/404", missing, Fails("no page at this address"), status=404)
    yield LocalPage("/status/410", missing, Fails("no page at this address"), status=410)
    yield LocalPage("/status/401", b"", IsBlocked(Obstacle.LOGIN), status=401)
    yield LocalPage("/status/403", html("Forbidden", "<h1>Forbidden</h1>"), Fails("refuses"), status=403)  # fmt: skip
    yield LocalPage("/status/500", html("Error", "<h1>Error</h1>"), Fails("status 500"), status=500)
    yield LocalPage("/status/503", b"", Fails("status 503"), status=503)
    yield LocalPage("/status/204", b"", IsBlocked(Obstacle.EMPTY), status=204)
    yield LocalPage(
        "/status/challenge",
        _CLOUDFLARE,
        IsBlocked(Obstacle.CAPTCHA),
        status=403,
        headers={"cf-mitigated": "challenge"},
    )
    yield LocalPage("/status/challenge-503", _CLOUDFLARE, IsBlocked(Obstacle.CAPTCHA), status=503)
    yield LocalPage(
        "/status/429-captcha",
        html("Sorry...", "<p>Our systems have detected unusual traffic from your computer network.</p>"),
        IsBlocked(Obstacle.CAPTCHA),
        status=429,
    )  # fmt: skip
    yield LocalPage("/status/429", b"slow down", Fails("too many requests"), status=429)


def _scripted() -> Iterator[LocalPage]:
    """Pages whose text only scripts make."""
    made = article("A tidal pool", texts.EN)
    read = Reads("A tidal pool", ("4.2 tonnes",), (), "en")
    yield LocalPage(
        "/scripted/inline",
        html("Loading", _SCRIPTED % made, lang="en"),
        IsBlocked(Obstacle.SCRIPTS),
        rendered=read,
    )
    yield LocalPage(
        "/scripted/fetched",
        html("A tidal pool", _FETCHED, lang="en"),
        IsBlocked(Obstacle.SCRIPTS),
        rendered=read,
    )
    yield LocalPage(
        "/scripted/wall",
        html("Loading", f"<div id='root'></div><script>document.getElementById('root').innerHTML = `{_WALLS[8][4]}`</script>", lang="en"),
        IsBlocked(Obstacle.SCRIPTS),
        rendered=IsBlocked(Obstacle.LOGIN),
    )  # fmt: skip
