"""Detection of text that looks like a secret: others can read a pushed log, and a push can't be undone.

A text without any marker passes after a few substring searches. What follows a marker is in `secret_rules`, so that everyday commands need not import it.
"""

from __future__ import annotations

from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


# Strings that every text with a secret contains, so that other texts are searched without further imports.
# The markers of the formats in `secret_rules`: a format has at least this length, and no space unless its marker has one.
FORMAT_SHORTEST = 20
# fmt: off
MARKERS = (
    "PRIVATE KEY-----", "PRIVATE KEY BLOCK-----", "UFJJVkFURSBLRVktLS", "BSSVZBVEUgS0VZLS0", "QUklWQVRFIEtFWS0t", "AGE-SECRET-KEY-1", "eyJ", '"d":"', '"d": "', "AKIA",
    "ASIA", "ABSK", "X-Amz-Signature=", "amzn.mws.", "AIza", "AQ.Ab8", "X-Goog-Signature=", ":APA91b",
    "GOCSPX-", "ya29.", "AccountKey=", "SharedAccessKey=", "Q~", "JQQJ99", "sig=", "AZDO", "dop_v1_",
    "doo_v1_", "dor_v1_", "DO00", "HRKU-", "LTAI", "v1.0-", "cfk_", "cfut_", "cfat_", "fm1r_", "fm1a_",
    "fm2_", "fo1_", "nfp_", "nfc_", "nfo_", "nfb_", "nfu_", "vercel_blob_rw_", "vcp_", "vcc_", "vci_",
    "vca_", "vcr_", "vck_", "AKID", "AQVN", "tk-us-", "ico-", "rnd_", "pul-", "tskey-", "ghp_", "gho_",
    "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-",
    "glft-", "glimt-", "glagent-", "gloas-", "glffct-", "glrtr-", "GR1348941", "ATBB", "ATATT3", "ATCTT3",
    "npm_", "pypi-AgE", "rubygems_", "oy2", "cio", "CLOJARS_", "dckr_pat_", "dckr_oat_", "AKCp",
    "cmVmdGtuOj", "packagist_", "CCIPAT_", "CCIPRJ_", "bkua_", "bkct_", "pat.", "API-", "depot_", "pnu_",
    "snyk_", "sqp_", "squ_", "sqa_", "sgp_", "sk-ant-", "sk-or-v1-", "sk-", "sk_", "gsk_", "xai-", "hf_",
    "api_org_", "sk-lf-", "jina_", "fc-", "BSA", "e2b_", "ak-", "as-", "wandb_v1_", "key_", "crsr_", "r8_",
    "pplx-", "csk-", "fw_", "tgp_v1_", "nvapi-", "tvly-", "lsv2_", "pcsk_", "xoxa-", "xoxb-", "xoxc-",
    "xoxd-", "xoxe", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-", "hooks.slack.com/", "/api/webhooks/",
    ".webhook.office.com/webhookb2/", ":AA", "SK", "SG.", "key-", "-us", "AC", "oauth:",
    "hooks.zapier.com/hooks/catch/", "xkeysib-", "xsmtpsib-", "EAAB", "EAAC", "EAAD", "EAAE", "EAAF", "EAAG",
    "EAAH", "EAAI", "EAAJ", "EAAK", "EAAL", "EAAM", "EAAN", "EAAO", "EAAP", "re_", "sk_live_", "rk_live_",
    "sk_test_", "rk_test_", "sk_org_", "whsec_", "sq0atp-", "EAAA", "sq0csb-", "sq0csp-",
    "access_token$production$", "access_token$sandbox$", "access-production-", "access-development-",
    "access-sandbox-", "A21AA", "FLWSECK-", "FLWSECK_TEST-", "rzp_live_", "live_", "shippo_live_", "EZAK",
    "shpat_", "shpca_", "shppa_", "shpss_", "hvs.", "hvb.", "hvr.", ".atlasv1.", "dapi", "dose", "dp.",
    "ops_eyJ", "pscale_", "sbp_", "sbp_oauth_", "sbp_v0_", "CCDB1_", "sb_secret_", "napi_", "mdb_sa_sk_",
    "NRAK-", "NRAL", "NRII-", "NRIQ-", "ddpat_", "xaat-", "xapt-", "phx_", "hcaik_", "hcbik_", "glsa_",
    "glc_", "eyJrIjoi", "sntrys_", "sntryu_", "dt0c01.", "sdk-", "pat", "figd_", "figo_", "ATTA", "pk_",
    "sl.", "tfp_", "rdme_", "secret-", "pat-", "lin_api_", "lin_oauth_", "ntn_", "secret_", "PMAK-",
    "CFPAT-", "sk.eyJ",
)
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
        from .secret_rules import BY_MARKER

        for what, before, steps, needs in BY_MARKER[marker]:
            at = text.find(marker)
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
    from .secret_rules import CLASSES

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
    from .secret_rules import CLASSES

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
    from .secret_rules import CLASSES, LONGEST

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
