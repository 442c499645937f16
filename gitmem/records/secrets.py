"""Text that looks like a secret. A log is pushed to where others read it, and can't be unsaid."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

# What it is, the markers of which one stands in every such secret, and its exact form. The markers are
# searched first, because that needs no `re`.
_EDGE = r"(?<![A-Za-z0-9])"
_START = r"(?<![A-Za-z0-9_-])"  # before a form that looks ahead: one try for each word, so never slow
_KINDS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "a private key",
        ("PRIVATE KEY",),
        r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----",
    ),
    (
        "an AWS access key",
        ("AKIA", "ASIA"),
        r"(?<![A-Za-z0-9+/])(?:AKIA|ASIA)(?![A-Z2-7]{9}EXAMPLE)[A-Z2-7]{16}(?![A-Za-z0-9+/])",
    ),
    (
        "an AWS secret key",
        ("ecret_access_key", "ECRET_ACCESS_KEY", "ecretAccessKey", "ecret_key", "ECRET_KEY"),
        r"(?i:secret_?(?:access_?)?key)[\"'\\]*\s*(?:=>|[:=])\s*[\"'\\]*"
        r"(?![A-Za-z0-9/+]{30}EXAMPLEKEY)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])",
    ),
    ("a Google API key", ("AIza",), _EDGE + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    ("a Google OAuth secret", ("GOCSPX-",), _EDGE + r"GOCSPX-[A-Za-z0-9_-]{24,}"),
    (
        "an Azure storage key",
        ("AccountKey=", "SharedAccessKey="),
        r"(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{43,86}={1,2}",
    ),
    ("an Azure client secret", ("Q~",), r"(?<![A-Za-z0-9_~.])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    (
        "a GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        _EDGE + r"(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})",
    ),
    (
        "a GitLab token",
        ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-"),
        _START + r"gl(?:pat|dt|rt|ptt|cbt|soat)-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_.-]{20,}",
    ),
    (
        "a Bitbucket token",
        ("ATBB", "ATATT3", "ATCTT3"),
        _EDGE + r"(?:ATBB[A-Za-z0-9]{28,}|AT[AC]TT3[A-Za-z0-9_=-]{60,})",
    ),
    ("an npm token", ("npm_",), _EDGE + r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9_])"),
    ("a PyPI token", ("pypi-AgE",), _EDGE + r"pypi-AgE[A-Za-z0-9_-]{50,}"),
    (
        "a Slack token",
        ("xox", "xapp-"),
        _EDGE + r"(?:xox[abeoprs]-[0-9A-Za-z]+-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{20,})",
    ),
    ("an Anthropic key", ("sk-ant-",), _EDGE + r"sk-ant-[a-z]+[0-9]{2}-[A-Za-z0-9_-]{20,}"),
    (
        "an OpenAI key",
        ("sk-",),
        _START
        + r"sk-(?!ant-)(?:(?:proj|svcacct|admin)-)?(?=[A-Za-z_-]*[0-9])(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{32,}",
    ),
    ("a Stripe key", ("k_live_",), _EDGE + r"[sr]k_live_[A-Za-z0-9]{16,}"),
    ("a Hugging Face token", ("hf_",), _EDGE + r"hf_[A-Za-z]{34}(?![A-Za-z0-9_])"),
)
_forms: list[re.Pattern[str]] = []


def find_secret(text: str) -> str | None:
    """What kind of secret this text seems to hold, such as "a GitHub token", or None."""
    marked = [at for at, (_, markers, _) in enumerate(_KINDS) if any(marker in text for marker in markers)]
    if not marked:
        return None
    if not _forms:
        import re

        _forms.extend(re.compile(form) for _, _, form in _KINDS)
    for at in marked:
        if _forms[at].search(text):
            return _KINDS[at][0]
    return None


_MARKERS = tuple(marker for _, markers, _ in _KINDS for marker in markers)
_SHORTEST = 20  # characters: no secret above is shorter


def marked(values: Iterable[object]) -> bool:
    """Whether `find_in` must look at these values: quick, and nearly always False."""
    texts: list[str] = []
    for value in values:
        if type(value) is str:
            if len(value) >= _SHORTEST:
                texts.append(value)
        elif type(value) is list or type(value) is tuple:
            for item in value:
                if type(item) is not str:
                    return True
                if len(item) >= _SHORTEST:
                    texts.append(item)
        elif type(value) is not bool:
            return True
    together = "\n".join(texts)
    for marker in _MARKERS:  # noqa: SIM110  (a generator costs more than the search)
        if marker in together:
            return True
    return False


def find_in(value: object) -> str | None:
    """The same for every text inside a value of JSON, keys included."""
    for text in _texts(value):
        found = find_secret(text)
        if found:
            return found
    return None


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
