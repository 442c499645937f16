"""Each rule by which a place of a remote is left out, by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.git.objects import Draft, Signature
from gitmem.log import log_refs, ref, ref_checks
from gitmem.log.committer import start_log
from gitmem.log.local_log import LocalLog
from gitmem.log.ref_checks import FOREIGN, INVALID, LARGE, NEWER, NO_PROJECTS, RefCheck
from gitmem.log.tree_checks import LIMITS, Limits
from tests.hazards.peers import git
from tests.log.logs import open_log

WHO = Signature("Mallory", "m@m", 1)
GONE = "ab" * 20
NAME = "refs/heads/gitmem"


@pytest.fixture
def log(repo: Path) -> LocalLog:
    found = open_log(repo, seed=1)
    start_log(found)
    return found


def local(log: LocalLog) -> str:
    tip = log.git.tip(ref.LOG_REF)
    assert tip is not None
    return tip


def put(log: LocalLog, onto: str | None, files: dict[str, bytes | None], text: str = "x\n") -> str:
    return log.git.write([Draft(files, WHO, WHO, text)], onto)[0]


def lacking(log: LocalLog, oid: str) -> str:
    """Make this a partial clone; return a commit with one file more, which it lacks."""
    at = Path(log.repo.common)
    git("config", "remote.origin.promisor", "true", cwd=at)
    rows = f"{git('ls-tree', oid, cwd=at)}\n100644 blob {GONE}\tgone\n"
    tree = git("mktree", "--missing", cwd=at, input=rows.encode())
    return git("commit-tree", tree, "-p", local(log), "-m", "x", cwd=at)


def raw(log: LocalLog, kind: str, data: bytes) -> str:
    at = Path(log.repo.common)
    return git("hash-object", "-t", kind, "--literally", "-w", "--stdin", cwd=at, input=data)


def without_projects(log: LocalLog) -> str:
    names = ref.project_ids(log.git, log.git.tree(log.git.commit(local(log)).tree))
    return put(log, local(log), {f"projects/{name}": None for name in names})


def accepted(log: LocalLog, oid: str | None = None) -> log_refs.LogTip:
    return log_refs.read(log, NAME, oid or local(log))


def look(log: LocalLog, oid: str, check: RefCheck | None = None) -> tuple[str, str]:
    """The kind and the reason why a place is left out; "" where it is taken."""
    log.passed_trees.clear()
    check = check or RefCheck(log, accepted(log), [local(log)])
    tip = check.check(NAME, oid)
    assert (tip is None) == (NAME in check.left_out)
    found = check.left_out.get(NAME)
    return (found.kind, found.why) if found is not None else ("", "")


def test_a_place_that_goes_on_passes(log: LocalLog) -> None:
    assert look(log, put(log, local(log), {"signals/x/gm-a.jsonl": b"1\n"})) == ("", "")


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b'{"format":0}\n', INVALID), (b'{"format":2}\n', NEWER), (b'{"format":101}\n', NEWER), (b'{"format":102}\n', INVALID),
     (b'{"format":1,"epoch":1}\n', INVALID), (b'{"format":1,"epoch":-1}\n', INVALID), (b"[", INVALID), (None, INVALID)],
)  # fmt: skip
def test_the_format_and_the_epoch_are_ours(log: LocalLog, content: bytes | None, kind: str) -> None:
    assert look(log, put(log, local(log), {"format": content}))[0] == kind


def test_a_newer_log_is_one_only_where_it_continues_ours(log: LocalLog) -> None:
    """Without ids, with those of others, or beside what was accepted it is invalid."""
    newer: dict[str, bytes | None] = {"format": b'{"format":2}\n'}
    base = accepted(log)
    ours = {f"projects/{name}": None for name in base.projects}
    beside = put(log, local(log), newer)
    went_on = accepted(log, put(log, local(log), {"signals/x/gm-a.jsonl": b"1\n"}))
    known = [local(log)]
    assert look(log, beside, RefCheck(log, went_on, known))[0] == INVALID
    assert look(log, beside, RefCheck(log, base, known))[0] == NEWER
    assert look(log, beside, RefCheck(log, None, known))[0] == NEWER
    others = put(log, local(log), {**newer, **ours, f"projects/{GONE}": b""})
    assert look(log, others, RefCheck(log, base, known))[0] == INVALID
    nobodys = put(log, local(log), {**newer, **ours})
    assert look(log, nobodys, RefCheck(log, None, known))[0] == INVALID


def test_projects_are_missing_only_where_they_always_were(log: LocalLog) -> None:
    """By what was accepted; else by the history, as far as it is looked at; else by outboxes that stand elsewhere."""
    bare = without_projects(log)
    known = [local(log)]
    assert look(log, bare) == (INVALID, NO_PROJECTS)
    assert look(log, bare, RefCheck(log, accepted(log, bare), known)) == ("", "")
    above = put(log, bare, {"signals/x/gm-a.jsonl": b"1\n"})
    assert look(log, above, RefCheck(log, None, known)) == (INVALID, NO_PROJECTS)
    log.limits = Limits(ancestors=1)
    assert look(log, above, RefCheck(log, None, known)) == ("", "")
    boxes = {"refs/gitmem/outbox/x": local(log)}
    root = log.git.write([Draft({}, WHO, WHO, "Bare\n", tree=log.git.commit(bare).tree)], ref.genesis(bare))[
        0
    ]
    assert look(log, root, RefCheck(log, None, [root])) == ("", "")
    assert look(log, root, RefCheck(log, None, [root], {"refs/gitmem/outbox/r": root})) == ("", "")
    assert look(log, root, RefCheck(log, None, [root], {"refs/gitmem/outbox/r": GONE})) == ("", "")
    assert look(log, root, RefCheck(log, None, [root], boxes)) == (INVALID, NO_PROJECTS)
    on_it = put(log, root, {f"projects/{GONE}": b""})
    assert look(log, put(log, root, {"signals/x/gm-b.jsonl": b"1\n"}),
                RefCheck(log, None, [root], {"refs/gitmem/outbox/r": on_it})) == ("", "")  # fmt: skip


def test_what_git_refused_or_lacks_is_told(log: LocalLog) -> None:
    """A refused commit is not even read; a partial clone's missing files are told by who reads them."""
    oid = put(log, local(log), {"signals/A": b"1\n"})
    assert "not allowed" in look(log, oid)[1]
    check = RefCheck(log, accepted(log), [local(log)])
    check.unfetchable = {oid: "git refuses it"}
    assert look(log, oid, check) == (INVALID, "git refuses it")
    assert not check.left_out[NAME].is_fetched and check.left_out[NAME].author == ""
    partial = lacking(log, oid)
    assert "not allowed" in look(log, oid)[1] and "not allowed" not in look(log, partial)[1]


def test_what_is_too_much_is_large_and_says_how_to_take_it(log: LocalLog) -> None:
    oid = put(log, local(log), {"signals/x/gm-a.jsonl": b"1\n", "signals/x/gm-b.jsonl": b"2\n"})
    log.limits = Limits(files=1)
    kind, why = look(log, oid)
    assert kind == LARGE and "--allow-large" in why


def test_files_of_the_log_and_of_the_accepted_tip_are_not_new(log: LocalLog) -> None:
    """Each for itself."""
    oid = put(log, local(log), {"signals/x/gm-a.jsonl": b"1\n"})
    log.limits = Limits(files=1)
    assert look(log, oid) == ("", "")
    assert look(log, oid, RefCheck(log, None, [local(log)])) == ("", "")
    before = accepted(log)
    log.git.swap(ref.LOG_REF, local(log), ref.genesis(oid), "test")
    assert look(log, oid, RefCheck(log, before, [before.oid])) == ("", "")
    assert look(log, oid, RefCheck(log, None, [before.oid]))[0] == LARGE


def test_a_commit_below_the_tip_is_checked_before_it_is_read(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its message may be too large; what is known is not looked at again."""
    below = put(log, local(log), {"signals/x/gm-a.jsonl": b"1\n"}, "x" * 5000 + "\n")
    oid = put(log, below, {"signals/x/gm-b.jsonl": b"1\n"})
    log.limits = Limits(object_bytes=4000)
    asked: list[str] = []
    read = log.git.commit
    with monkeypatch.context() as patch:
        patch.setattr(log.git, "commit", lambda each: asked.append(each) or read(each))
        check = RefCheck(log, accepted(log), [local(log)])
        assert check.check(NAME, oid) is None and oid in asked and below not in asked
    assert "bytes" in look(log, oid)[1]
    high = oid
    for number in range(40):  # so far from what is known that git is asked
        high = put(log, high, {"signals/x/gm-b.jsonl": b"%d\n" % number})
    assert "bytes" in look(log, high)[1]
    assert look(log, oid, RefCheck(log, accepted(log), [local(log), below])) == ("", "")
    assert look(log, oid, RefCheck(log, accepted(log, below), [local(log)])) == ("", "")
    assert "bytes" in look(log, below)[1]


@pytest.mark.parametrize("what", ["tree", "blob", "parent"])
def test_what_is_missing_is_said(log: LocalLog, what: str) -> None:
    """A tip's tree, a file of it, or a commit below it."""
    tree = log.git.commit(local(log)).tree
    by = "Mallory <m@m> 1 +0000"
    if what == "blob":
        rows = log.git.raw_tree(tree) + b"100644 zz\0" + bytes.fromhex(GONE)
        tree = raw(log, "tree", rows)
    text = f"tree {GONE if what == 'tree' else tree}\nparent {GONE if what == 'parent' else local(log)}\n"
    oid = raw(log, "commit", f"{text}author {by}\ncommitter {by}\n\nx\n".encode())
    kind, why = look(log, oid)
    assert kind == INVALID and (GONE in why or what == "parent"), why


def test_a_tip_is_looked_at_once_and_names_its_author(log: LocalLog) -> None:
    """Under its first name; a place at no commit is called what it is."""
    oid = put(log, local(log), {"signals/x/gm-a.jsonl": b"1\n"})
    bad = put(log, local(log), {"format": None})
    blob = raw(log, "blob", b"x\n")
    check = RefCheck(log, accepted(log), [local(log)])
    tips = check.admit({"refs/a": oid, "refs/b": oid, "refs/c": bad, "refs/d": blob})
    assert [(tip.name, tip.oid) for tip in tips] == [("refs/a", oid)]
    left = check.left_out
    assert sorted(left) == ["refs/c", "refs/d"]
    assert left["refs/c"].author == "Mallory <m@m>" and left["refs/c"].is_commit
    assert left["refs/d"].why == "it is a blob, not a commit" and not left["refs/d"].is_commit
    assert "object" in left["refs/d"].sentence("origin") and "by Mallory" in left["refs/c"].sentence("origin")


def test_the_kinds_are_those_of_the_answer() -> None:
    assert (NEWER, FOREIGN, INVALID, LARGE) == ("newer", "foreign", "invalid", "large")


def test_what_is_invalid_is_called_so_however_large_it_is(log: LocalLog) -> None:
    """Else nobody would be told to repair it; the same for a newer format."""
    files: dict[str, bytes | None] = {"signals/x/gm-a.jsonl": b"1\n", "signals/x/gm-b.jsonl": b"2\n"}
    log.limits = Limits(files=1)
    assert look(log, put(log, local(log), files))[0] == LARGE
    for form, kind in ((b'{"format":1,"epoch":1}\n', INVALID), (b"[", INVALID), (b'{"format":2}\n', NEWER)):
        assert look(log, put(log, local(log), {**files, "format": form}))[0] == kind
    assert look(log, put(log, None, {**files, "format": b'{"format":1}\n'}))[0] == INVALID


def test_places_with_less_are_read_first_and_those_that_fail_cost_nothing(log: LocalLog) -> None:
    """By their names the others come first; answers keep what each place is left out for."""
    log.limits = Limits(lines=4)
    bad = put(log, local(log), {"signals/x/gm-a.jsonl": b"1\n", "format": b'{"format":1,"epoch":1}\n'})
    small = put(log, local(log), {"signals/x/gm-b.jsonl": b"1\n2\n"})
    more = put(log, local(log), {"signals/x/gm-c.jsonl": b"1\n2\n3\n"})
    missing = raw(
        log, "commit", f"tree {GONE}\nauthor M <m@m> 1 +0000\ncommitter M <m@m> 1 +0000\n\nx\n".encode()
    )
    check = RefCheck(log, accepted(log), [local(log)])
    tips = check.admit({"refs/a": missing, "refs/b": bad, "refs/c": more, "refs/d": small})
    assert [tip.oid for tip in tips] == [small]
    assert {name: each.kind for name, each in check.left_out.items()} == {
        "refs/a": INVALID, "refs/b": INVALID, "refs/c": LARGE
    }  # fmt: skip
    alone = RefCheck(log, accepted(log), [local(log)])
    assert [tip.oid for tip in alone.admit({"refs/b": bad, "refs/c": more})] == [more]


def test_the_commits_of_all_places_count_together_and_are_not_read_beyond_that(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long message in a tip or below it: those with less come first, whatever their names, and the rest stays unread."""
    log.limits = Limits(history_bytes=20_000)
    below = put(log, local(log), {"signals/x/gm-a.jsonl": b"1\n"}, "x" * 9_000 + "\n")
    hidden = put(log, below, {"signals/x/gm-b.jsonl": b"1\n"})
    large = [
        put(log, local(log), {f"signals/x/gm-{at}.jsonl": b"1\n"}, "x" * 12_000 + "\n") for at in range(9)
    ]
    honest = put(log, local(log), {"signals/x/gm-z.jsonl": b"1\n"})
    log.git.close()
    log.git = type(log.git)(log.repo.common)  # type: ignore[call-arg]  # that remembers no commit
    asked: list[str] = []
    read = log.git.commit
    monkeypatch.setattr(log.git, "commit", lambda each: asked.append(each) or read(each))
    check = RefCheck(log, accepted(log), [local(log)])

    refs = {f"refs/{at}": oid for at, oid in enumerate([*large, hidden])} | {"refs/z": honest}
    tips = check.admit(refs)

    assert [tip.oid for tip in tips] == [honest, hidden]
    assert [each.kind for each in check.left_out.values()] == [LARGE] * 9
    assert "bytes of commits" in check.left_out["refs/0"].why
    assert sum(oid in asked for oid in large) * 12_000 <= LIMITS.read_bytes


def test_commits_of_a_place_that_is_left_out_take_no_room(log: LocalLog) -> None:
    """Nor folders; and what it had counts again for the next place that has it."""
    log.limits = Limits(history_bytes=4_000)
    bad = put(log, local(log), {"signals/x/gm-a.jsonl": b"1\n", "format": b"["}, "x" * 2_000 + "\n")
    good = put(log, local(log), {"signals/x/gm-b.jsonl": b"1\n"}, "x" * 2_500 + "\n")
    check = RefCheck(log, accepted(log), [local(log)])
    assert check.check("refs/a", bad) is None
    assert check.check("refs/b", good) is not None
    assert check.check("refs/c", put(log, bad, {"format": None}, "y" * 400)) is None
    assert check.left_out["refs/c"].kind == LARGE


def test_the_folders_of_all_places_count_together(log: LocalLog) -> None:
    """A folder that is there already counts for nothing, one that several places have counts once."""
    log.limits = Limits(history_bytes=12_000)

    def folder(name: str, count: int) -> dict[str, bytes | None]:
        return {f"{name}/{'x' * 60}{at}.jsonl": b"1\n" for at in range(count)}

    one, same, other, more = (
        put(log, local(log), {**folder(name, count), "signals/x/gm-a.jsonl": text})
        for name, count, text in (("a", 80, b"1\n"), ("a", 80, b"2\n"), ("b", 70, b"1\n"), ("c", 130, b"1\n"))
    )
    check = RefCheck(log, accepted(log), [local(log)])
    refs = {"refs/a": more, "refs/b": one, "refs/c": same, "refs/d": other}
    assert {tip.oid for tip in check.admit(refs)} in ({one, same}, {other})
    assert check.left_out["refs/a"].kind == LARGE
    alone = RefCheck(log, accepted(log, one), [local(log), one])
    assert {tip.oid for tip in alone.admit({"refs/b": same, "refs/c": other})} == {same, other}


def test_one_look_reads_only_so_much_of_what_it_leaves_out(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Places that are invalid count for nothing, but what is read of them does: the smaller ones are read first."""
    log.limits = Limits(read_bytes=30_000)
    bad = [
        put(
            log,
            local(log),
            {f"x{at}/{'x' * 60}{each}.jsonl": b"1\n" for each in range(60)} | {f"x{at}/A": b""},
        )
        for at in range(20)
    ]
    good = put(log, local(log), {"signals/x/gm-b.jsonl": b"1\n"})
    read: list[int] = []
    raw_tree = log.git.raw_tree
    monkeypatch.setattr(log.git, "raw_tree", lambda oid: read.append(len(found := raw_tree(oid))) or found)
    log.limits = Limits(read_bytes=30_000)
    check = RefCheck(log, accepted(log), [local(log)])

    tips = check.admit({**{f"refs/{at}": oid for at, oid in enumerate(bad)}, "refs/z": good})

    assert [tip.oid for tip in tips] == [good]
    assert sum(read) < 2 * 30_000
    assert {each.kind for each in check.left_out.values()} == {INVALID, LARGE}


def test_the_author_of_a_large_commit_is_not_looked_up(log: LocalLog) -> None:
    """What is left out because of its size is not read to name it."""
    most = ref_checks.NAMED_BYTES_MAX
    for size, author in ((most // 2, "Mallory <m@m>"), (most, "")):
        oid = put(log, local(log), {"signals/x/gm-a.jsonl": b"1\n"}, "x" * size + "\n")
        assert ref_checks.author_of(log.git, oid) == author


def chain(log: LocalLog, onto: str, count: int) -> str:
    """Put commits of about 700 bytes on a commit; return the last."""
    tip = onto
    for number in range(count):
        tip = put(log, tip, {}, "x" * 500 + f"{number}\n")
    return tip


def test_a_history_of_unknown_length_takes_no_room_from_short_ones(log: LocalLog) -> None:
    """Behind a merge, or beyond the first steps: it is read last, whatever its name."""
    log.limits = Limits(history_bytes=36_000)
    long = chain(log, local(log), 40)
    tree = log.git.commit(local(log)).tree
    who = "A <a@example.org> 1793000000 +0000"
    merge = raw(
        log, "commit",
        f"tree {tree}\nparent {long}\nparent {local(log)}\nauthor {who}\ncommitter {who}\n\nx\n".encode(),
    )  # fmt: skip
    honest = put(log, local(log), {"signals/x/gm-z.jsonl": b"1\n"}, "x" * 12_000 + "\n")
    check = RefCheck(log, accepted(log), [local(log)])

    tips = check.admit({"refs/a": merge, "refs/z": honest})

    assert [tip.oid for tip in tips] == [honest]
    assert check.left_out["refs/a"].kind == LARGE


def test_commits_that_many_places_share_count_for_each(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their history is listed for each of them, however often it was listed before."""
    log.limits = Limits(history_bytes=45_000)
    long = chain(log, local(log), 40)
    one, two = (put(log, long, {f"signals/x/gm-{at}.jsonl": b"1\n"}) for at in "ab")
    check = RefCheck(log, accepted(log), [local(log)])
    assert [tip.oid for tip in check.admit({"refs/a": one, "refs/b": two})] == [one]
    assert check.left_out["refs/b"].kind == LARGE

    log.limits = Limits(history_bytes=1_000_000, listed=10)
    check = RefCheck(log, accepted(log), [local(log)])
    listed: list[str] = []
    real = log.git.unread_history
    monkeypatch.setattr(
        log.git, "unread_history", lambda oid, without: listed.append(oid) or real(oid, without)
    )
    far = chain(log, long, 230)
    tips = check.admit({"refs/a": one, "refs/b": two, "refs/c": far})
    assert listed == [one] and [tip.oid for tip in tips] == [one, two], "each ref has 256 commits of its own"
    assert "were listed" in check.left_out["refs/c"].why
