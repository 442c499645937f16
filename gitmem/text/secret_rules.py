"""What follows the name of a secret: assignments (`PASSWORD=…`, `scheme://user:pass@host`), command lines and sentences.

Each search starts at a fixed word and reads a bounded number of characters after it, so its cost is linear in the length of the text.
The rule for sentences is stricter than for assignments: after `password`, a sentence nearly always has another word.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


PASSWORDS = (
    "password", "passwd", "passphrase", "pwd", "pass", "passwort", "kennwort", "contraseña", "contrasena", "mot de passe",
    "motdepasse", "senha", "parola", "wachtwoord", "adgangskode", "lösenord", "hasło", "heslo", "salasana", "şifre", "jelszó",
    "пароль", "密码", "密碼", "パスワード", "비밀번호",
)  # fmt: skip
KEYS = (
    "secret", "token", "apikey", "api_key", "api-key", "accesskey", "access_key", "auth_key", "authkey", "private_key",
    "privatekey", "signing_key", "encryption_key", "master_key", "credential", "api key", "access key", "app_key",
    "application_key", "application-key", "license_key", "subscription-key", "auth-key", "consumer_key",
    "client-key", "client_key",
)  # fmt: skip
_NAME_MAX, _VALUE_MAX, _JUDGED_MAX, _HEADER_MAX = 32, 160, 64, 4_096
# Endings of names that hold no secret: `password_file`, `token_url`, `max_tokens`.
_ABOUT = (
    "url", "uri", "file", "path", "name", "id", "hash", "type", "count", "length", "len", "max", "min", "ttl", "expiry",
    "expires", "expiration", "limit", "policy", "field", "regex", "pattern", "version", "endpoint", "env", "var", "ref", "arn",
    "label", "prompt", "at", "created", "updated", "date", "usage", "budget", "algorithm", "digest", "checksum", "ids",
    "names", "format", "class", "less", "ize", "izer", "ized",
)  # fmt: skip
# Placeholders for a value in examples, templates and tests.
_STANDS = (
    "example", "changeme", "change-me", "change_me", "placeholder", "your", "xxxx", "redacted", "dummy", "insert", "****",
    "...", "…", "environ", "getenv", "process.env", "<", "${", "{{",
)  # fmt: skip
_WORDS_OF_CODE = frozenset(
    ["password", "passwd", "secret", "token", "pass", "key", "user", "test", "value", "arg", "param", "var"]
)
_TYPES = frozenset((
    "int", "uint", "bytes", "u", "i", "f", "float", "str", "string", "utf", "base", "sha", "md", "bcrypt", "argon", "pbkdf",
    "varchar", "nvarchar", "char", "text", "aes", "rsa", "hmac", "hs", "rs", "es", "ed", "blake", "crc", "oauth", "scram-sha-",
    "sha-", "utf-", "aes-", "v",
))  # fmt: skip
_BEFORE_PLACEHOLDER = ("$", "%", "{", "<", "/", "./", "../", "~", ":", "?", "*", "&", "!", "http://", "https://", "file:",
                       "arn:", "env:", "op://", "sha1-", "sha256-", "sha384-", "sha512-", "sha256:")  # fmt: skip
_USERINFO_ENDS = frozenset(" \t\r\n\"'`<>()[]{}|\\^,/?#")
_PLACEHOLDER_PASSWORDS = frozenset((
    "", "password", "passwd", "pass", "pw", "pwd", "secret", "token", "user", "username", "credentials", "x", "changeme",
    "example", "redacted", "x-oauth-basic",
))  # fmt: skip

Found = tuple[str, int]


def find_assigned(text: str, small: str) -> Found | None:  # noqa: C901  (one pass over a text)
    """Return the first presumed secret in a text as its kind and its position, or None.

    Args:
        small: The same in lower case.
    """
    for at in _positions(small, "://"):
        if _userinfo(text, at):
            return "a URL with a password", at
    for at in _positions(small, "bearer "):
        if is_random(_run(text, at + 7), 16):
            return "a bearer token", at
    for at in _positions(small, "basic "):
        if _is_basic(_run(text, at + 6)):
            return "HTTP basic credentials", at
    for at in _positions(small, "cookie"):
        if _is_cookie(text[at + 6 :][:_HEADER_MAX].partition("\n")[0]):
            return "a cookie", at
    for port in (":5432:", ":5433:", ":6432:", ":*:"):
        for at in _positions(text, port):
            rest = text[at + len(port) : at + _VALUE_MAX].partition("\n")[0].replace("\\:", "").split(":")
            # A comma: addresses.
            plain = len(rest) == 3 and all(rest) and not {" ", ","}.intersection(rest[0] + rest[1])
            is_row = plain and not text[at - 1].isspace()
            if at and is_row and not _is_placeholder(rest[2].strip()):
                return "a password of PostgreSQL", at
    if "curl " in small:
        for option in (" -u ", " -u", " --user ", " --user="):
            for at in _positions(small, option):
                if "curl " not in small[max(0, at - _VALUE_MAX) : at + 1]:
                    continue
                user, colon, password = _value(text, at + len(option))[0].partition(":")
                if user and colon and not _is_placeholder(password):
                    return "a password of curl", at
    for words, is_password in ((PASSWORDS, True), (KEYS, False)):
        for word in words:
            for at in _positions(small, word):
                found = _assigned(text, small, at, word, is_password)
                if found:
                    return found, at
    return None


def _is_cookie(rest: str) -> bool:
    """Return whether a header of cookies, after its name, has a value that looks random."""
    rest = rest.lstrip("\"'")
    if rest[:1] not in (":", "="):
        return False
    pairs = (each.strip(" :=\"'").partition("=") for each in rest.split(";"))
    return any(
        is_random((value.split(None, 1) or [""])[0].strip("'\""), 16)
        for name, sign, value in pairs
        if name and sign
    )


def _positions(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def _run(text: str, at: int) -> str:
    """Return the characters of a token that begins at a position."""
    piece = text[at : at + _VALUE_MAX]
    rest = piece.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+/=-")
    return piece[: len(piece) - len(rest)]


def _userinfo(text: str, at: int) -> bool:
    """Return whether a user and a password follow the `://` at a position."""
    if not at or not text[at - 1].isalnum():
        return False
    piece = text[at + 3 : at + 3 + _VALUE_MAX]
    end = piece.find("@")
    if end < 0 or piece.startswith("sha256:", end + 1):
        return False
    user, colon, password = piece[:end].partition(":")
    if not colon or any(sign in _USERINFO_ENDS for sign in piece[:end]):
        return False
    return password != user and not _is_placeholder(password)


def _is_placeholder(password: str) -> bool:
    """Return whether a password is a placeholder in an example."""
    small = password.lower()
    if small in _PLACEHOLDER_PASSWORDS or len(set(small)) < 3:
        return True
    return small.startswith(("$", "%", "{", "<", "[")) or any(word in small for word in _STANDS)


def _is_basic(value: str) -> bool:
    """Return whether a text is `user:password` in base64."""
    if len(value) < 8 or len(value) % 4:
        return False
    from binascii import Error, a2b_base64

    try:
        plain = a2b_base64(value).decode("ascii")
    except (Error, ValueError):
        return False
    user, colon, password = plain.partition(":")
    return bool(user and colon) and plain.isprintable() and not _is_placeholder(password)


def _assigned(text: str, small: str, at: int, word: str, is_password: bool) -> str | None:  # noqa: C901  (the refusals of a value, in order)
    """Return the kind of secret that is assigned to a name with this word in it, or None if it is not a secret."""
    end = at + len(word)
    tail = small[end : end + _NAME_MAX]
    about = tail[: len(tail) - len(tail.lstrip("abcdefghijklmnopqrstuvwxyz0123456789_-"))]
    last = about.replace("-", "_").rstrip("_").rpartition("_")[2]
    if last in _ABOUT or (len(last) > len("expires") and last.endswith(_ABOUT)):
        return None
    if word == "pass" and about:
        return None
    is_option = _is_option(small, at)
    start, spaced, sign = _separator(text, end + len(about), is_option)
    if start < 0 or (word == "pass" and sign == ":" and not (at and small[at - 1] == "_")):
        return None
    if sign == ":":
        start += _next_line(text[start : start + _VALUE_MAX])
    value, quoted = _value(text, start)
    if sign == ":" and not quoted and value.isidentifier():  # `password: str = "…"`
        rest = text[start + len(value) : start + len(value) + 3]
        if rest.startswith(" = "):
            value, quoted = _value(text, start + len(value) + 3)
    name = small[max(0, at - 4) : end + len(about)]
    if "key" in name and "secret" in name and len(value) == 40 and not value.strip(_B64):
        return None if "EXAMPLE" in value else "an AWS secret key"
    if not value or _is_placeholder(value) or (not quoted and value.startswith(_BEFORE_PLACEHOLDER)):
        return None
    if quoted and value.startswith(("http://", "https://", "/", "./", "~/", "$", "%", "{", "sha")):
        return None
    if is_password:
        return "a password" if _is_password(value, quoted, spaced and sign == "=") else None
    if _is_code(value, quoted):
        return None
    if (
        "token" in name
        and _is_uuid(value)
        and not (sign == "=" and not spaced and text[at : at + 6] == "TOKEN=")
    ):
        return None  # a page token; only one in an environment variable counts as a secret
    return "a secret value" if is_random(value, 16) else None


_B64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _is_option(small: str, at: int) -> bool:
    """Return whether the name is an option of a command line: `--db-password`."""
    before = small[max(0, at - _NAME_MAX) : at]
    name = before[len(before.rstrip("abcdefghijklmnopqrstuvwxyz0123456789_-")) :]
    return name.startswith("--")


def _separator(text: str, at: int, is_option: bool) -> tuple[int, bool, str]:
    """Return the start of the value, whether spaces precede the sign, and the sign; the start is -1 without a sign."""
    piece = text[at : at + 12]
    rest = piece.lstrip("\\\"'])")
    closed = len(piece) - len(rest)
    bare = rest.lstrip(" \t")
    spaces = len(rest) - len(bare)
    if bare[:1] in ("=", ":") and closed <= 4:
        sign = bare[0]
        after = bare.lstrip("=:>")
        if len(bare) - len(after) > 3:
            return -1, False, ""
        left = after.lstrip(" \t")
        return at + len(piece) - len(left), spaces > 0, sign
    if is_option and spaces and bare and not closed:
        return at + spaces, False, " "
    return -1, False, ""


def _next_line(rest: str) -> int:
    """Return where a value of YAML begins that is on the next line, deeper than its name: after `password:` or `password: |-`."""
    after = rest.lstrip("|>+-0123456789 \t").lstrip("\r")
    value = after.lstrip("\n\r \t")
    is_below = after[:1] == "\n" and after[len(after) - len(value) - 1] in " \t"
    return len(rest) - len(value) if is_below else 0


def _value(text: str, at: int) -> tuple[str, bool]:
    """Return the value at a position, and whether it is quoted; "" if it is a call or has blanks in quotes."""
    piece = text[at : at + _VALUE_MAX].lstrip("\\")
    if piece[:1] in ('"', "'", "`"):
        value = piece[1:].partition(piece[0])[0].rstrip("\\")
        return ("" if any(sign.isspace() for sign in value) else value), True
    value = piece.split(None, 1)[0] if piece[:1].strip() else ""
    for sign in ",;)]}>&|`\"'\\":
        value = value.partition(sign)[0]
    if "(" in value or "[" in value:
        return "", False  # a call, or a type
    return value.partition("=")[0].rstrip(".!?:"), False


def _is_password(value: str, quoted: bool, in_code: bool) -> bool:
    """Return whether a value looks like a chosen password: letters, with digits or signs in them."""
    value = value[:_JUDGED_MAX]
    letters = sum(char.isalpha() for char in value)
    digits = sum(char.isdigit() for char in value)
    signs = sum(not (char.isalnum() or char in "_-.") for char in value)
    if len(value) < 6 or letters < 2 or not (digits or signs) or len(set(value)) < 5:
        return False
    small = value.lower()
    if not signs and small.rstrip("0123456789").rstrip("_-") in _TYPES:
        return False
    if _is_code(value, quoted) or (not signs and _is_words(small)):
        return False
    return not (in_code and not quoted and value.isidentifier() and not is_random(value, 10))


def _is_words(small: str) -> bool:
    """Return whether a value without signs is a name of code with a number in it: `new_password_2`, `value12`."""
    if "_" in small or "-" in small or "." in small:
        parts = small.replace("-", "_").replace(".", "_").split("_")
        return all(part.isalpha() or part.isdigit() or part.lstrip("v").isdigit() for part in parts if part)
    return small.rstrip("0123456789") in _WORDS_OF_CODE


def _is_code(value: str, quoted: bool) -> bool:
    """Return whether a value without quotes is an expression: `user.password`, `Config::token`, `a->b`."""
    if quoted:
        return False
    if "::" in value or "->" in value or "@sha256" in value:
        return True
    return "." in value and all(part.isidentifier() for part in value.split(".")) and not is_random(value, 24)


def _is_uuid(value: str) -> bool:
    return [len(part) for part in value.split("-")] == [8, 4, 4, 4, 12]


def is_random(value: str, least: int) -> bool:
    """Return whether a text of at least `least` characters looks random, not written by a person.

    It counts how often letters, capitals and digits alternate, except a capital before a letter, as in `CamelCase`; and
    how many distinct characters there are.
    """
    if len(value) < least:
        return False
    plain = [char for char in value[:_JUDGED_MAX] if char.isalnum()]
    if len(plain) < least or sum(char.isdigit() for char in plain) < 2 or len(set(plain)) < 8:
        return False
    small = value.lower()
    if any(word in small for word in _STANDS):
        return False
    changes, before = 0, ""
    for char in plain:
        kind = "d" if char.isdigit() else "c" if char.isupper() else "l"
        changes += kind != before and (before, kind) != ("c", "l")
        before = kind
    return changes - 1 >= 0.2 * len(plain)


# A command, the option for its password, and whether a space may separate the option from the password.
_COMMANDS = (
    ("mysql", "-p", False), ("mariadb", "-p", False), ("sshpass", "-p", True), ("docker login", "-p", True),
    ("podman login", "-p", True), ("mongo", "-p", True), ("unzip", "-P", True), ("redis-cli", "-a", True),
)  # fmt: skip
_LINE_MAX = 160  # characters of a command line that are read
_KEY_MIN = 20  # characters of a key in a sentence
_NOUNS = (" access key", " key", " token", " value")
_LINKS = (
    " is now ", " is: ", " is ", " was ", " to ", " ist ", " est ", " es ", " é ", " è ", " to jest ", ": ", "：", "是", " = ", " -> ", " ",
)  # fmt: skip
_PASSWORD_WORDS = tuple(word for word in PASSWORDS if word not in ("pwd", "pass"))


def find_in_prose(text: str, small: str) -> Found | None:  # noqa: C901  (one pass over a text)
    """Return the first presumed secret in a text as its kind and its position, or None.

    Args:
        small: The same in lower case.
    """
    if " -p" in small or " -a " in small:
        for command, option, spaced in _COMMANDS:
            for at in _positions(small, command):
                if _has_option(text[at : at + _LINE_MAX], option, spaced):
                    return "a password", at
    if "auth" in small:
        found = _authorization(text, small)
        if found:
            return found
    for word in _PASSWORD_WORDS:
        for at in _positions(small, word):
            value, sure = _said(text, small, at + len(word))
            if value and _is_generated(value, sure):
                return "a password", at
    if not any(len(word) >= _KEY_MIN for word in text.split()):
        return None
    for word in KEYS:
        for at in _positions(small, word):
            value, sure = _said(text, small, at + len(word))
            if (
                len(value) < _KEY_MIN
                or _is_placeholder(value)
                or not is_random(value, _KEY_MIN)
                or _is_uuid(value)
            ):
                continue
            if word == "secret" and len(value) == 40 and " key" in small[at : at + 20]:
                return "an AWS secret key", at
            is_digest = not value.strip("0123456789abcdef")  # without "is": a digest of something else
            if value.isalnum() and (sure or not is_digest):
                return "a secret value", at
    return None


def _has_option(line: str, option: str, spaced: bool) -> bool:
    """Return whether a command line passes a password in an option."""
    words = line.partition("\n")[0].split(" ")
    for number, word in enumerate(words):
        if not word.startswith(option):
            continue
        given = word[len(option) :]
        if not given and spaced and number + 1 < len(words):
            given = words[number + 1]
        value, quoted = _value(given, 0)
        if not given.startswith(("$", "<", "{", "%", '"$')) and not _is_placeholder(value):
            return _is_password(value, quoted, False)
    return False


def _authorization(text: str, small: str) -> Found | None:
    """Return the credentials of an `Authorization` header, of npm's `_auth` or of docker's `"auth"`."""
    for at in _positions(small, "authorization"):
        start = at + len("authorization")
        piece = text[start : start + 24].lstrip("\"'")
        if piece[:1] not in (":", "="):
            continue
        words = text[start : start + _LINE_MAX].lstrip("\"':= ").split(" ", 2)
        for word in words[:2]:
            value = _run(word, 0)
            if is_random(value, 16) and not _is_uuid(value):
                return "a secret value", at
    for name in ("_auth", '"auth"', "_authtoken"):
        for at in _positions(small, name):
            piece = text[at + len(name) : at + len(name) + 4]
            value = _run(text, at + len(name) + len(piece) - len(piece.lstrip(":= \"'")))
            if piece[:1] not in (":", "=") or value == "":
                continue
            if name == "_authtoken" and _is_uuid(value):
                return "a secret value", at
            if _is_basic(value):
                return "HTTP basic credentials", at
    return None


def _said(text: str, small: str, at: int) -> tuple[str, bool]:
    """Return the value that follows a name in a sentence, and whether a link such as `is` or `:` assigns it."""
    for noun in _NOUNS:
        if small.startswith(noun, at):
            at += len(noun)
            break
    for link in _LINKS:
        if small.startswith(link, at):
            return _value(text, at + len(link))[0], link != " "
    return "", False


def _is_generated(value: str, sure: bool) -> bool:
    """Return whether a value in a sentence can only be a password: alternating letters and digits, not a name."""
    if not 8 <= len(value) <= 64 or _is_placeholder(value) or _is_uuid(value) or not value.isascii():
        return False
    kinds = ["d" if char.isdigit() else "l" for char in value if char.isalnum()]
    groups = sum(kind == "d" and (not at or kinds[at - 1] == "l") for at, kind in enumerate(kinds))
    mixed = value.lower() != value and value.upper() != value
    if kinds.count("d") < 2 or kinds.count("l") < 3 or len(set(value)) < 6:
        return False
    if not sure and not value.strip("0123456789abcdef"):
        return False
    if any(sign in value for sign in "_-./:@") and not (sure and mixed and groups > 1):
        return False
    return groups > 1 and (mixed or kinds.count("d") > 2)
