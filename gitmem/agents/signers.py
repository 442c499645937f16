"""The file `.gitmem/signers` of a work tree: which writers and SSH keys a project knows under which words, and SSH signatures.

The file is untrusted, marks addresses as known and helps words that are ambiguous otherwise. No state is computed from it. The merge gate of CI reads it
from a commit of the target branch.
Signatures are made and verified by the program `ssh-keygen`: without a terminal or a question, within a time, and in a folder of its own.
"""

from __future__ import annotations

import os
from binascii import a2b_base64, b2a_base64

from .. import records
from ..git import work_tree_files
from ..index import entities
from ..log.lines import writer_of as line_writer
from ..log.ref import lookup
from ..outcome import Struct
from ..text.addresses import words_of, writer_of
from ..text.sanitize import sanitize
from ..trust.keys import is_writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from ..store import Store

FILE = ".gitmem/signers"
EVENT = "endorse"  # of a record with an SSH signature of its writer
PATTERNS_MAX = 1_000
PATTERN_MAX = 256  # characters, as of an address
STARS_MAX = 8  # of a pattern
WORDS_MAX = 500  # of one answer
PROBLEMS_MAX = 5
VERIFIED_MAX = 20  # signatures of one answer
SIGNATURES_MAX = 4  # of a writer, the latest ones

PROGRAM = "ssh-keygen"
NAMESPACE = "gitmem"  # so that a signature of anything else is none of a writer
SIGN_SECONDS = 30.0  # somebody may have to touch a hardware key
VERIFY_SECONDS = 5.0
SIGNATURE_MAX = 6_000  # bytes: of an RSA key of 16,384 bits they are 4,300
OUTPUT_MAX = 64 * 1024
_ASKING = ("SSH_ASKPASS", "DISPLAY", "WAYLAND_DISPLAY")
_MAGIC = b"SSHSIG\0\0\0\1"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_PATTERN = r"!?[^\s\",\[\]\\@!]*[:*][^\s\",\[\]\\]*"


class Row(Struct):
    """A line of the file.

    Attributes:
        patterns: Expressions of which words must match one.
        without: Those of which they must match none.
        writer: The writer that it names; "" for none.
        key: The public key that it names, as `public_key` returns it; "" for none.
    """

    patterns: list[re.Pattern[str]]
    without: list[re.Pattern[str]]
    writer: str
    key: str

    def names(self, words: str) -> bool:
        """Return whether it is about an address of these words."""
        return any(each.match(words) for each in self.patterns) and not any(
            each.match(words) for each in self.without
        )


def parse(text: str) -> tuple[list[Row], list[str]]:
    """Return the rows of a file, and sentences about the lines that do not count."""
    import fnmatch
    import re  # here: `whoami` reads the file, which is nearly always missing

    def is_pattern(text: str) -> bool:
        return (
            len(text) <= PATTERN_MAX and text.count("*") <= STARS_MAX and bool(re.fullmatch(_PATTERN, text))
        )

    rows: list[Row] = []
    problems: list[str] = []
    left = PATTERNS_MAX
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        patterns = fields[0].split(",")
        left -= len(patterns)
        if left < 0:
            problems.insert(
                0, f"Line {number} and what follows does not count: {PATTERNS_MAX:,} patterns are read"
            )
            break
        wrong = next((each for each in patterns if not is_pattern(each)), None)
        writer = fields[1] if len(fields) > 1 and is_writer(fields[1]) else ""
        key = public_key(fields[1], fields[2]) if len(fields) > 2 and not writer else ""
        if wrong is not None:
            problems.append(
                f"Line {number} does not count: no pattern of an address: {sanitize(wrong)[:80] or '(empty)'}; such as human:*@example.org or codex:*:*"
            )
        elif not writer and not key:
            problems.append(
                f"Line {number} does not count: a writer, as `gitmem trust` shows it, or an SSH key, such as ssh-ed25519 AAAA…, must follow the patterns"
            )
        else:
            taken, without = (
                [
                    re.compile(fnmatch.translate(each.lstrip("!")))
                    for each in patterns
                    if each.startswith("!") is negated
                ]
                for negated in (False, True)
            )
            rows.append(Row(taken, without, writer, key))
    return rows, problems


class Signers(Struct):
    """The file of a work tree, or of a commit.

    Attributes:
        path: Its path, or how it is called; None if there is none.
        problems: Sentences about what of it does not count; they have no end.
        is_cut: Whether it knows addresses, perhaps, that it was not asked about to the end.
    """

    path: str | None = None
    rows: list[Row] = []
    problems: list[str] = []
    is_cut: bool = False
    _about: dict[str, list[Row]] = {}  # by words
    _signed: dict[str, list[bytes]] | None = None  # with a key of the file
    _verified: dict[tuple[str, bytes], bool] = {}

    def known(self, store: Store, addresses: Iterable[str]) -> set[str]:
        """Return those of these addresses that the file knows: by their writer, or by an SSH key that has signed it."""
        return {each for each in addresses if self.rows and self._knows(store, each)}

    def may_know(self, store: Store, writer: str) -> bool:
        """Return whether the file names a writer, or a key with which it has recorded a signature, verified or not."""
        return any(row.writer == writer for row in self.rows) or writer in self._signatures(store)

    def _knows(self, store: Store, address: str) -> bool:
        writer, words = writer_of(address), words_of(address)
        if not writer or not self.may_know(store, writer):
            return False
        if words not in self._about:
            if len(self._about) >= WORDS_MAX:
                self._tell(f"Only {WORDS_MAX} addresses were looked for in it")
                return False
            self._about[words] = [row for row in self.rows if row.names(words)]
        rows = self._about[words]
        keys = {row.key for row in rows if row.key}
        return any(row.writer == writer for row in rows) or any(
            key_of(each) in keys and self._verifies(each, writer)
            for each in self._signatures(store).get(writer, ())
        )

    def _signatures(self, store: Store) -> dict[str, list[bytes]]:
        if self._signed is None:
            keys = {row.key for row in self.rows if row.key}
            self._signed = signatures(store.db(), lambda _, key: key in keys) if keys else {}
        return self._signed

    def _verifies(self, signature: bytes, writer: str) -> bool:
        if (writer, signature) not in self._verified:
            if len(self._verified) >= VERIFIED_MAX:
                self._tell(f"Only {VERIFIED_MAX} SSH signatures were verified")
                return False
            self._verified[writer, signature] = False
            try:
                self._verified[writer, signature] = verifies(signature, writer)
            except SshError as error:
                self._tell(f"Lines with an SSH key do not count: {error}")
        return self._verified[writer, signature]

    def _tell(self, problem: str) -> None:
        self.is_cut = True
        if problem not in self.problems:
            self.problems.append(problem)

    def sentences(self) -> list[str]:
        """Return what is wrong with the file, and where it is."""
        more = len(self.problems) - PROBLEMS_MAX
        told = [f"{each}." for each in self.problems[:PROBLEMS_MAX]] + [f"{more} more problems."] * (more > 0)
        return [f"{sanitize(self.path or FILE)}: {each}" for each in told]


def read(store: Store) -> Signers:
    """Return the file of the work tree of a store. Nothing that it contains makes this fail."""
    top = store.repo.worktree
    if top is None:
        return Signers()
    found = Signers(os.path.join(top, *FILE.split("/")))
    try:
        real = work_tree_files.resolve(top, FILE)
        if real is None:
            return Signers()
        found.path = real
        found.rows, found.problems = parse(work_tree_files.read_text(real))
    except OSError as error:
        found.problems = [f"It does not count: it cannot be read ({error.strerror})"]
    except ValueError as error:
        found.problems = [f"It does not count: {error}"]
    return found


def read_at(store: Store, commit: str, called: str) -> Signers:
    """Return the file of a commit. Nothing that it contains makes this fail.

    Args:
        called: How the commit is called in sentences.
    """
    git, found = store.git, Signers(f"{FILE} of {called}")
    try:
        entry = lookup(git, git.commit(commit).tree, FILE)
        if entry is None:
            return Signers()
        kind, size = git.heads([entry.oid])[entry.oid]
        if kind != "blob" or not entry.mode.startswith("100"):
            raise ValueError("it is not a file")
        is_small = size <= work_tree_files.FILE_MAX
        text = work_tree_files.text_of(git.blob(entry.oid) if is_small else b"", size)
        found.rows, found.problems = parse(text)
    except KeyError:
        found.problems = ["It does not count: its content is missing from this clone"]
    except ValueError as error:
        found.problems = [f"It does not count: {error}"]
    return found


def signatures(db: sqlite3.Connection, takes: Callable[[str, str], bool]) -> dict[str, list[bytes]]:
    """Return the latest SSH signatures that writers have recorded of themselves, verified or not.

    Args:
        takes: Whether those of a writer with a public key are asked for.
    """
    import base64

    found: dict[str, list[bytes]] = {}
    of = "l.kind = 'trust' AND instr(l.body, '\"event\":\"endorse\"')"
    for line in entities.bodies(db, of, (), order="l.at DESC, l.body"):
        record: Any = records.read(line)
        text = record.get("signature") if record is not None and record["event"] == EVENT else None
        if text and len(text) % 4 != 1:  # else it is no base64
            signature, writer = base64.urlsafe_b64decode(f"{text}=="), line_writer(line)
            if takes(writer, key_of(signature)) and len(found.get(writer, ())) < SIGNATURES_MAX:
                found.setdefault(writer, []).append(signature)
    return found


def signing_key(store: Store) -> tuple[str, str] | None:
    """Return the program with which git makes SSH signatures, and the key: a path, or a public one; None without one."""
    from ..git import processes

    found = store.git.config(r"^(user\.signingkey|gpg\.format|gpg\.ssh\.program)$", store.repo.git_dir)
    key = found.get("user.signingkey", "").strip()
    if found.get("gpg.format") != "ssh" or not key:
        return None
    home = processes.variable("HOME") or os.sep
    program, path = (
        os.path.join(home, each[2:]) if each.startswith("~/") else each
        for each in (found.get("gpg.ssh.program") or PROGRAM, key)
    )
    if key.startswith(("key::", "ssh-")):
        return program, key.removeprefix("key::")
    return program, os.path.join(store.repo.worktree or store.repo.common, path)


class SshError(Exception):
    """The program could not do it; the argument is why, in a sentence without an end."""


def sign(program: str, key: str, text: str, *, seconds: float = SIGN_SECONDS) -> bytes:
    """Return the signature of a text, in the binary form of SSHSIG.

    Args:
        program: What signs, such as `PROGRAM`.
        key: The absolute path of a key, or a public key whose other half an agent has.

    Raises:
        SshError: There is none.
    """
    import tempfile

    from ..git.processes import summary_line

    with tempfile.TemporaryDirectory(prefix="gitmem-ssh-") as folder:
        path = key if os.path.isabs(key) else _write(folder, "key.pub", f"{key}\n")
        of = _write(folder, "text", text)
        code, _, err = _run([program, "-Y", "sign", "-n", NAMESPACE, "-f", path, of], folder, seconds)
        try:
            with open(f"{of}.sig", "rb") as file:
                lines = file.read(2 * SIGNATURE_MAX).decode("ascii").split()
            found = a2b_base64("".join(lines[3:-3]), strict_mode=True)
        except (OSError, ValueError):
            found = b""
    if code or not key_of(found):
        raise SshError(f"{program} has not signed: {summary_line(err) or f'exit status {code}'}")
    return found


def verifies(signature: bytes, text: str, *, program: str = PROGRAM) -> bool:
    """Return whether a signature is one of a text, made with the key that it names.

    Args:
        text: One word, which names who has signed.

    Raises:
        SshError: Nothing can be said.
    """
    import base64
    import tempfile

    with tempfile.TemporaryDirectory(prefix="gitmem-ssh-") as folder:
        allowed = _write(folder, "allowed", f"{text} {key_of(signature)}\n")
        encoded = base64.encodebytes(signature).decode()
        armored = _write(folder, "signature", f"{_BEGIN}\n{encoded}{_END}\n")
        command = [program, "-Y", "verify", "-n", NAMESPACE, "-I", text, "-f", allowed, "-s", armored]
        code, out, _ = _run(command, folder, VERIFY_SECONDS, text.encode())
    # Both: where this process ignores SIGCHLD, each exit status is 0.
    return code == 0 and out.startswith(f'Good "{NAMESPACE}" signature for {text} '.encode())


def key_of(signature: bytes) -> str:
    """Return the public key that a signature names; "" if it is none."""
    size = int.from_bytes(signature[len(_MAGIC) :][:4], "big")
    key = signature[len(_MAGIC) + 4 :][:size]
    return _shown(key) if signature.startswith(_MAGIC) and len(key) == size else ""


def public_key(kind: str, encoded: str) -> str:
    """Return a public key in the one form that it has here, `KIND BASE64`; "" if it is none.

    Args:
        kind: Such as `ssh-ed25519`.
        encoded: Its base64.
    """
    try:
        found = _shown(a2b_base64(encoded, strict_mode=True))
    except ValueError:
        return ""
    return found if found.startswith(f"{kind} ") else ""


def _shown(key: bytes) -> str:
    kind = key[4:][: int.from_bytes(key[:4], "big")].decode("ascii", "replace")
    is_kind = kind.startswith(("ssh-", "ecdsa-", "sk-")) and kind.replace("@", "").replace(".", "").replace("-", "").isalnum()  # fmt: skip
    return f"{kind} {b2a_base64(key, newline=False).decode()}" if is_kind and kind.isascii() else ""


def _write(folder: str, name: str, text: str) -> str:
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _run(command: Sequence[str], folder: str, seconds: float, input: bytes = b"") -> tuple[int, bytes, str]:
    """Return exit status, output and errors of a command that can ask nobody anything."""
    from ..git import processes

    variables = processes.environment({"SSH_ASKPASS_REQUIRE": "never"})
    for name in _ASKING:
        variables.pop(name, None)
    try:
        done = processes.run_program(command, folder, variables, seconds, OUTPUT_MAX, input)
    except processes.ProgramError as error:
        raise SshError(str(error)) from None
    if done.code and "option -- " in done.err:
        raise SshError(f"{command[0]} is too old: it has no -Y, which OpenSSH 8.2 has")
    return done.code, done.out, done.err
