"""Detection of text that looks like a secret: others can read a pushed log, and a push can't be undone.

A text without any marker passes after a few substring searches. What follows a word such as `password` is in `secret_rules`, so that
everyday commands need not import it.

A format is (kind of secret, markers with `|` between them, context before the marker, steps after it, classes that the rest must contain).
Before: `edge` (no letter or digit), `word` (no letter, digit, `_` or `-`), `any`, or classes with their counts.
After: steps, separated by spaces: a class with a count (`a36`), a least count (`w20+`), a least and a greatest count (`w20-40`), or `=` and a literal text.
After a last step with a greatest count, no letter or digit may follow. The rest must contain a character of each class in the last field.
"""

from __future__ import annotations

from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


CLASSES = {
    "d": "0123456789",
    "l": "abcdefghijklmnopqrstuvwxyz",
    "c": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "h": "0123456789abcdef",
    "H": "0123456789abcdefABCDEF",
    "n": "0123456789abcdefghijklmnopqrstuvwxyz",
    "C": "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    "L": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "a": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
    "u": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_",
    "w": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
    "t": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.~",
    "b": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    "e": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-",
    "x": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "p": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-%+/",
}
LONGEST = 4_000  # characters of a step without a greatest count that is not the last one

# fmt: off
FORMATS: tuple[tuple[str, str, str, str, str], ...] = (
    ("a private key", "PRIVATE KEY-----|PRIVATE KEY BLOCK-----", "any", "", ""),
    ("a private key in base64", "UFJJVkFURSBLRVktLS|BSSVZBVEUgS0VZLS0|QUklWQVRFIEtFWS0t", "any", "b16+", ""),
    ("an age key", "AGE-SECRET-KEY-1", "edge", "C50+", ""),
    ("a JSON web token", "eyJ", "word", "w10+ =. w10+ =. w10+", ""),
    ("a private JSON web key", '"d":"|"d": "', "any", "w43+", "dcl"),
    # cloud providers
    ("an AWS access key", "AKIA|ASIA", "edge", "x16", ""),
    ("an AWS Bedrock key", "ABSK", "edge", "e100+", "d"),
    ("an AWS signed URL", "X-Amz-Signature=", "any", "h64", ""),
    ("an Amazon MWS token", "amzn.mws.", "edge", "h8 =- h4 =- h4 =- h4 =- h12", ""),
    ("a Google API key", "AIza", "edge", "w35", ""),
    ("a Google API key", "AQ.Ab8", "edge", "w40+", "d"),
    ("a Google signed URL", "X-Goog-Signature=", "any", "h100+", ""),
    ("a Firebase key", ":APA91b", "any", "w100+", "d"),
    ("a Google OAuth secret", "GOCSPX-", "edge", "w24+", ""),
    ("a Google OAuth token", "ya29.", "edge", "w30+", ""),
    ("an Azure storage key", "AccountKey=|SharedAccessKey=", "any", "b43-86 ==", ""),
    ("an Azure client secret", "Q~", "t3 d1", "t31-34", ""),
    ("an Azure key", "JQQJ99", "a52", "a10+", ""),
    ("an Azure SAS signature", "sig=", "edge", "p43+", "dcl"),
    ("an Azure DevOps token", "AZDO", "a76", "a4", ""),
    ("a DigitalOcean token", "dop_v1_|doo_v1_|dor_v1_", "edge", "h64", ""),
    ("a DigitalOcean key", "DO00", "edge", "C16", "c"),
    ("a Heroku key", "HRKU-", "edge", "w30+", "d"),
    ("an Alibaba key", "LTAI", "edge", "a20-26", "d"),
    ("a Cloudflare key", "v1.0-", "edge", "h24 =- h100+", ""),
    ("a Cloudflare token", "cfk_|cfut_|cfat_", "edge", "a40+", "d"),
    ("a Fly.io token", "fm1r_|fm1a_|fm2_|fo1_", "edge", "e40+", "d"),
    ("a Netlify token", "nfp_|nfc_|nfo_|nfb_|nfu_", "edge", "a36", ""),
    ("a Vercel token", "vercel_blob_rw_", "edge", "a20+", "d"),
    ("a Vercel token", "vcp_|vcc_|vci_|vca_|vcr_|vck_", "edge", "a24+", "d"),
    ("a Tencent key", "AKID", "edge", "a32", "d"),
    ("a Yandex key", "AQVN", "edge", "w35-38", "d"),
    ("a Scalingo token", "tk-us-", "word", "w48", "d"),
    ("an Infracost key", "ico-", "word", "a32", "d"),
    ("a Render key", "rnd_", "edge", "a24+", "d"),
    ("a Pulumi token", "pul-", "word", "h40", ""),
    ("a Tailscale key", "tskey-", "word", "w16+", "d"),
    # code hosting, package registries, CI
    ("a GitHub token", "ghp_|gho_|ghu_|ghs_|ghr_", "edge", "a36+", ""),
    ("a GitHub token", "github_pat_", "edge", "u50+", ""),
    ("a GitLab token", "glpat-|gldt-|glrt-|glptt-|glcbt-|glsoat-|glft-|glimt-|glagent-|gloas-|glffct-|glrtr-", "word", "t20+", "d"),
    ("a GitLab token", "GR1348941", "edge", "w20+", ""),
    ("a Bitbucket token", "ATBB", "edge", "a28+", ""),
    ("an Atlassian token", "ATATT3|ATCTT3", "edge", "e60+", ""),
    ("an npm token", "npm_", "edge", "a36", ""),
    ("a PyPI token", "pypi-AgE", "edge", "w50+", ""),
    ("a RubyGems key", "rubygems_", "edge", "h48", ""),
    ("a NuGet key", "oy2", "edge", "n43", "d"),
    ("a crates.io token", "cio", "edge", "a32", "dc"),
    ("a Clojars token", "CLOJARS_", "edge", "h60", ""),
    ("a Docker token", "dckr_pat_|dckr_oat_", "edge", "w24+", ""),
    ("an Artifactory key", "AKCp", "edge", "a60+", "d"),
    ("an Artifactory key", "cmVmdGtuOj", "edge", "a54+", "d"),
    ("a Packagist token", "packagist_", "edge", "l3 =_ h60+", ""),
    ("a CircleCI token", "CCIPAT_|CCIPRJ_", "edge", "w40+", "d"),
    ("a Buildkite token", "bkua_", "edge", "h40", ""),
    ("a Buildkite token", "bkct_", "edge", "a40+", "d"),
    ("a Harness token", "pat.", "word", "w22 =. h24 =. a20", ""),
    ("an Octopus Deploy key", "API-", "word", "C25-28", "d"),
    ("a Depot token", "depot_", "edge", "l3-7 =_ h64", ""),
    ("a Prefect key", "pnu_", "edge", "n36", "d"),
    ("a Snyk token", "snyk_", "edge", "l3 =. h8 =. w40+", ""),
    ("a SonarQube token", "sqp_|squ_|sqa_", "edge", "h40", ""),
    ("a Sourcegraph token", "sgp_", "edge", "u40+", "d"),
    # AI models
    ("an Anthropic key", "sk-ant-", "edge", "w26+", "d"),
    ("an OpenRouter key", "sk-or-v1-", "edge", "h64", ""),
    ("an OpenAI key", "sk-", "word", "w32+", "dc"),
    ("a DeepSeek key", "sk-", "word", "h32", "dl"),
    ("an ElevenLabs key", "sk_", "word", "h48", ""),
    ("a Groq key", "gsk_", "edge", "a40+", "d"),
    ("an xAI key", "xai-", "word", "a60+", "d"),
    ("a Hugging Face token", "hf_|api_org_", "edge", "L34", ""),
    ("a Langfuse key", "sk-lf-", "word", "h8 =- h4 =- h4 =- h4 =- h12", ""),
    ("a Jina key", "jina_", "edge", "a55+", "d"),
    ("a Firecrawl key", "fc-", "word", "h32", "dl"),
    ("a Brave key", "BSA", "edge", "w27-28", "dcl"),
    ("an E2B key", "e2b_", "edge", "h40", "d"),
    ("a Modal token", "ak-|as-", "word", "a22", "dc"),
    ("a Weights & Biases key", "wandb_v1_", "edge", "w40+", "d"),
    ("a Cursor key", "key_", "word", "h64", ""),
    ("a Cursor key", "crsr_", "edge", "h64", ""),
    ("a Replicate token", "r8_", "edge", "a37", ""),
    ("a Perplexity key", "pplx-", "word", "a40+", ""),
    ("a Cerebras key", "csk-", "word", "n40+", "d"),
    ("a Fireworks key", "fw_", "edge", "a22-30", "d"),
    ("a Together key", "tgp_v1_", "edge", "w40+", ""),
    ("an NVIDIA key", "nvapi-", "edge", "w60+", ""),
    ("a Tavily key", "tvly-", "word", "w28+", "d"),
    ("a LangSmith key", "lsv2_", "edge", "u40+", "d"),
    ("a Pinecone key", "pcsk_", "edge", "u40+", "d"),
    # chat and email
    ("a Slack token", "xoxa-|xoxb-|xoxc-|xoxo-|xoxp-|xoxr-|xoxs-", "edge", "w16+", "d"),
    ("a Slack token", "xoxd-", "edge", "p16+", "d"),
    ("a Slack token", "xoxe", "edge", "t16+", "d"),
    ("a Slack token", "xapp-", "edge", "d1 =- w20+", ""),
    ("a Slack webhook", "hooks.slack.com/", "any", "l8-9 =/ C8+ =/ C8+ =/ a16+", ""),
    ("a Discord webhook", "/api/webhooks/", "any", "d17-20 =/ w60+", ""),
    ("a Teams webhook", ".webhook.office.com/webhookb2/", "any", "w36 =@ w36 =/ L15 =/ h32", ""),
    ("a Telegram bot token", ":AA", "d8", "w33", ""),
    ("a Twilio key", "SK", "edge", "h32", "dl"),
    ("a SendGrid key", "SG.", "edge", "w22 =. w43", ""),
    ("a Mailgun key", "key-", "word", "h32", "dl"),
    ("a Mailchimp key", "-us", "h32", "d1-2", ""),
    ("a Twilio token", "AC", "edge", "h32 =: h32", ""),
    ("a Twitch token", "oauth:", "edge", "n30", "d"),
    ("a Zapier webhook", "hooks.zapier.com/hooks/catch/", "any", "d4-10 =/ n5+", ""),
    ("a Brevo key", "xkeysib-|xsmtpsib-", "edge", "h64", ""),
    ("a Facebook token", "EAAB|EAAC|EAAD|EAAE|EAAF|EAAG|EAAH|EAAI|EAAJ|EAAK|EAAL|EAAM|EAAN|EAAO|EAAP", "edge", "a99+", "dcl"),
    ("a Resend key", "re_", "word", "a8 =_ a20+", "d"),
    # payments
    ("a Stripe key", "sk_live_|rk_live_", "edge", "a16+", ""),
    ("a Stripe key", "sk_test_|rk_test_", "edge", "a16+", "d"),
    ("a Stripe key", "sk_org_", "edge", "l4 =_ a16+", ""),
    ("a Stripe webhook secret", "whsec_", "edge", "b32+", "d"),
    ("a Square token", "sq0atp-", "edge", "w22+", ""),
    ("a Square token", "EAAA", "edge", "w60", "dcl"),
    ("a Square secret", "sq0csb-|sq0csp-", "edge", "w43+", ""),
    ("a Braintree token", "access_token$production$|access_token$sandbox$", "edge", "n16 =$ h32", ""),
    ("a Plaid token", "access-production-|access-development-|access-sandbox-", "edge", "h8 =- h4 =- h4 =- h4 =- h12", ""),
    ("a PayPal token", "A21AA", "edge", "w60+", "d"),
    ("a Checkout.com key", "sk_", "word", "h8 =- h4 =- h4 =- h4 =- h12", ""),
    ("a Flutterwave key", "FLWSECK-|FLWSECK_TEST-", "edge", "a12+", "d"),
    ("a Razorpay key", "rzp_live_", "edge", "a14", ""),
    ("a Mollie key", "live_", "word", "a30+", "d"),
    ("a Shippo token", "shippo_live_", "edge", "h40", ""),
    ("an EasyPost key", "EZAK", "edge", "a54", "d"),
    ("a Shopify token", "shpat_|shpca_|shppa_|shpss_", "edge", "H32", "d"),
    # databases and secret stores
    ("a Vault token", "hvs.|hvb.|hvr.", "edge", "w24+", ""),
    ("a Terraform token", ".atlasv1.", "a14", "w60+", ""),
    ("a Databricks token", "dapi|dose", "edge", "h32", "dl"),
    ("a Doppler token", "dp.", "edge", "l2-5 =. a40+", "d"),
    ("a Doppler token", "dp.", "edge", "l2-5 =. w2-35 =. a40+", "d"),
    ("a 1Password token", "ops_eyJ", "edge", "e100+", ""),
    ("a PlanetScale token", "pscale_", "edge", "l2-5 =_ t32+", ""),
    ("a Supabase token", "sbp_|sbp_oauth_|sbp_v0_", "edge", "h40", ""),
    ("a CockroachDB key", "CCDB1_", "edge", "a22 =_ a40", ""),
    ("a Supabase key", "sb_secret_", "edge", "w20+", ""),
    ("a Neon key", "napi_", "edge", "n40+", "d"),
    ("a MongoDB Atlas secret", "mdb_sa_sk_", "edge", "w40+", ""),
    # monitoring
    ("a New Relic key", "NRAK-", "edge", "C27", ""),
    ("a New Relic key", "NRAL", "n36", "a0", ""),
    ("a New Relic key", "NRII-|NRIQ-", "edge", "w32", "d"),
    ("a Datadog token", "ddpat_", "edge", "a20+", "d"),
    ("an Axiom token", "xaat-|xapt-", "word", "h8 =- h4 =- h4 =- h4 =- h12", ""),
    ("a PostHog key", "phx_", "edge", "a40+", "d"),
    ("a Honeycomb key", "hcaik_|hcbik_", "edge", "n58", "d"),
    ("a Grafana token", "glsa_", "edge", "a32 =_ h8", ""),
    ("a Grafana token", "glc_", "edge", "e32+", "d"),
    ("a Grafana key", "eyJrIjoi", "word", "e60+", ""),
    ("a Sentry token", "sntrys_", "edge", "e40+", "d"),
    ("a Sentry token", "sntryu_", "edge", "h64", ""),
    ("a Dynatrace token", "dt0c01.", "edge", "C24 =. C64", ""),
    ("a LaunchDarkly key", "sdk-", "word", "h8 =- h4 =- h4 =- h4 =- h12", ""),
    # office tools
    ("an Airtable token", "pat", "edge", "a14 =. h64", ""),
    ("a Figma token", "figd_|figo_", "edge", "w40+", "d"),
    ("a Trello token", "ATTA", "edge", "H64+", ""),
    ("a ClickUp token", "pk_", "word", "d6-9 =_ C32", ""),
    ("a Dropbox token", "sl.", "word", "w100+", "dc"),
    ("a Dropbox token", "sl.", "word", "l1-2 =. w100+", "dc"),
    ("a Typeform token", "tfp_", "edge", "t40+", "d"),
    ("a ReadMe key", "rdme_", "edge", "n70", "d"),
    ("a Statsig key", "secret-", "word", "a40+", "dc"),
    ("a HubSpot token", "pat-", "word", "l2 d1 =- h8 =- h4 =- h4 =- h4 =- h12", ""),
    ("a Linear key", "lin_api_", "edge", "a40+", "d"),
    ("a Linear token", "lin_oauth_", "edge", "h64", ""),
    ("a Notion token", "ntn_", "edge", "a40+", "d"),
    ("a Notion token", "secret_", "edge", "a43", "dc"),
    ("a Postman key", "PMAK-", "edge", "h24 =- h34", ""),
    ("a Contentful token", "CFPAT-", "edge", "w40+", "d"),
    ("a Mapbox token", "sk.eyJ", "edge", "t40+", ""),
)
# fmt: on
# Strings that every text with a secret contains, so that other texts are searched no further: the markers of the formats.
# A format has at least this length, and no space unless its marker has one.
FORMAT_SHORTEST = 20
MARKERS = tuple(dict.fromkeys(marker for row in FORMATS for marker in row[1].split("|")))
# fmt: off
# Words of assignments: fewer searches than for each name.
WORDS = (
    "pass", "pwd", "secret", "token", "credential", "_key", "-key", "api key", "access key", "apikey",
    "accesskey", "authkey", "privatekey", "://", "bearer ", "basic ", "curl ", "cookie", ":5432:", ":5433:", ":6432:", ":*:",
    "kennwort", "contrase", "senha", "parol", "wachtwoord", "adgangskode", "lösenord", "hasło", "heslo", "salasana", "şifre",
    "jelszó", "пароль", "密码", "密碼", "パスワード", "비밀번호",
)
# fmt: on
PROSE_WORDS = ("auth", " -p", " -a ")  # the same for sentences, with those above
_ANY_WORD = (*WORDS, *PROSE_WORDS)
SPACED = tuple(marker for marker in MARKERS if " " in marker)
HARMLESS_MAX = 4_096  # cached texts without a secret, such as names: records of one writer share them
HARMLESS_CHARACTERS = 128
_harmless: set[str] = set()
SHORTEST = 10  # characters: a shorter text is not a secret, not even together with the name it is assigned to
_DISTINCT_MIN = 2  # `XXXX…` and `0000…` are placeholders
_MORE = 64  # characters of a last step that are read beyond the least
_DISCORD_SIZES = (23, 24, 26)  # of 17 to 19 digits in base64
_DIGITS_IN_BASE64 = ("MNO", "DTjz", "AEIMQUYcgk", "wxyz012345")
_EXAMPLES = ("example", "xxxx", "your", "placeholder", "redacted", "dummy")


class FoundSecret(Struct):
    """A secret in a text.

    Attributes:
        what: Its presumed kind, such as "a GitHub token".
        at: The number of its first character in the text, from 1.
    """

    what: str
    at: int


def locate(text: str) -> FoundSecret | None:
    """Return the first presumed secret in a text, and its position; None if there is none.

    Invisible characters and combining marks are removed and compatibility forms replaced first: `ｇｈｐ＿` is `ghp_`.
    """
    if len(text) < SHORTEST:
        return None
    plain = _plain(text)
    found = _formats(plain)
    if found is None:
        small = plain.lower()
        if len(small) != len(plain):  # the lower case of a letter is two characters
            small = "".join(low if len(low := char.lower()) == 1 else char for char in plain)
        has_word = any(word in small for word in WORDS)
        if has_word:
            from . import secret_rules

            found = secret_rules.find_assigned(plain, small)
        if found is None and (has_word or any(word in small for word in PROSE_WORDS)):
            from . import secret_rules

            found = secret_rules.find_in_prose(plain, small)
    if found is None:
        return None
    return FoundSecret(found[0], _original(text, found[1]) + 1)


def find_secret(text: str) -> str | None:
    """Return the kind of the first presumed secret in a text, such as "a GitHub token", or None."""
    found = locate(text)
    return found.what if found else None


def may_hold_secret(values: Iterable[object]) -> bool:  # noqa: C901  (one pass, without a call for each value)
    """Return whether `find_in` must search these values: quick, and mostly False."""
    texts: list[str] = []
    for value in values:
        if type(value) is str:
            if len(value) >= SHORTEST and value not in _harmless:
                texts.append(value)
        elif type(value) is list or type(value) is tuple:
            for item in value:
                if type(item) is not str:
                    return True
                if len(item) >= SHORTEST and item not in _harmless:
                    texts.append(item)
        elif type(value) is not bool:
            return True
    if texts and has_marker("\n".join(texts)):
        return True
    if len(_harmless) > HARMLESS_MAX:
        _harmless.clear()
    _harmless.update([text for text in texts if len(text) <= HARMLESS_CHARACTERS])
    return False


def has_marker(text: str) -> bool:
    """Return whether `locate` may find a secret in a text, or in one of several texts joined by LF."""
    together = _plain(text)
    long = _long_words(together)
    if long:
        for marker in MARKERS:  # a generator costs more than the search
            if marker in long:
                return True
        if _discord(long) >= 0:
            return True
    small = together.lower()
    for word in _ANY_WORD:  # noqa: SIM110  (a generator costs more than the searches)
        if word in small:
            return True
    return False


def find_in(value: object) -> FoundSecret | None:
    """Return the first presumed secret in any text inside a value of JSON, keys included; None if there is none."""
    for text in _texts(value):
        found = locate(text)
        if found:
            return found
    return None


def _long_words(text: str) -> str:
    """Return the words of a text that are long enough for a format; "" if there are none."""
    for marker in SPACED:
        if marker in text:
            return text
    return "\n".join([word for word in text.split() if len(word) >= FORMAT_SHORTEST])


def _formats(text: str) -> tuple[str, int] | None:
    """Return the first format in a text and its position, or None."""
    long = _long_words(text)
    if not long:
        return None
    for marker in MARKERS:
        if marker not in long:
            continue
        for what, markers, before, steps, needs in FORMATS:
            at = text.find(marker) if marker in markers.split("|") else -1
            while at >= 0:
                size = _size_before(text, at, before)
                if size >= 0 and _follows(text, at, size, len(marker), steps, needs):
                    return what, at - size
                at = text.find(marker, at + len(marker))
    if _discord(long) >= 0:
        return "a Discord token", _discord(text)
    return None


def _discord(text: str) -> int:
    """Return the position of a Discord bot's token: an id's digits in base64, a time and a digest; -1 if none."""
    at = text.find(".")
    while at >= 0:
        begin = _discord_before(text, at) if text[at + 7 : at + 8] == "." else -1
        if begin >= 0:
            return begin
        at = text.find(".", at + 1)
    return -1


def _discord_before(text: str, at: int) -> int:
    """Return its start if its first dot is at a position, and its second one seven after that; else -1."""
    piece = text[max(0, at - 28) : at]
    size = len(piece) - len(piece.rstrip(CLASSES["a"]))
    digest = text[at + 8 : at + 8 + 27]
    if size not in _DISCORD_SIZES or len(digest) < 27 or (text[at + 1 : at + 7] + digest).strip(CLASSES["w"]):
        return -1
    user = text[at - size : at][: size // 4 * 4 + 1]  # the last group may hold fewer bits
    # The byte of a digit is 0011 and four bits, so only few letters are possible at each position.
    fits = all(char in _DIGITS_IN_BASE64[number % 4] for number, char in enumerate(user))
    return at - size if fits else -1


def _size_before(text: str, at: int, before: str) -> int:
    """Return how many characters before a marker belong to its format; -1 if it can't begin there."""
    if before == "any":
        return 0
    if before in ("edge", "word"):
        return -1 if at and text[at - 1] in CLASSES["a" if before == "edge" else "w"] else 0
    start = at
    for step in reversed(before.split(" ")):
        count = int(step[1:])
        piece = text[max(0, start - count) : start]
        if len(piece) < count or piece.strip(CLASSES[step[0]]):
            return -1
        start -= count
    return at - start


def _follows(text: str, at: int, before: int, size: int, steps: str, needs: str) -> bool:
    """Return whether the rest of a format follows its marker, and is not an example."""
    if not steps:
        return text[max(0, at - 30) : at].rpartition("-----BEGIN ")[1] != ""
    end = at + size
    parts = steps.split(" ")
    for number, step in enumerate(parts, 1):
        if step[0] == "=":
            if not text.startswith(step[1:], end):
                return False
            end += len(step) - 1
            continue
        least, most = _numbers(step[1:])
        if step[-1] == "+":
            most = least + _MORE if number == len(parts) else LONGEST
        piece = text[end : end + most + 1]
        run = len(piece) - len(piece.lstrip(CLASSES[step[0]]))
        if run < least or (run > most and step[-1] != "+"):
            return False
        end += run
        if number == len(parts) and step[-1] != "+" and text[end : end + 1].isalnum():
            return False
    rest = text[at - before : at] + text[at + size : end]
    if len(set(rest)) < _DISTINCT_MIN or any(word in rest.lower() for word in _EXAMPLES):
        return False
    return all(any(char in CLASSES[need] for char in rest) for need in needs)


def _numbers(text: str) -> tuple[int, int]:
    """Return the least and the greatest count of a step."""
    least, _, most = text.rstrip("+").partition("-")
    return int(least), int(most or least)


def _plain(text: str) -> str:
    """Return a text in compatibility form, without invisible characters."""
    if text.isascii():
        return text
    from .lookalikes import COMPATIBLE

    return text.translate(COMPATIBLE)


def _original(text: str, at: int) -> int:
    """Map a position in the plain form of a text to the position in the text."""
    if text.isascii():
        return at
    from .lookalikes import COMPATIBLE

    end = 0
    for here, char in enumerate(text):
        end += len(COMPATIBLE[ord(char)])
        if end > at:
            return here
    return len(text)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
