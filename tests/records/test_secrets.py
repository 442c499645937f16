"""What looks like a secret, and what only looks a little like one.

The samples are put together here, so that no forge's push protection takes this file for a leak.
"""

from __future__ import annotations

import base64
import hashlib
import time

import pytest

from gitmem.records.secrets import _MARKERS, _SHORTEST, find_in, find_secret, marked

MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6kL9nP2rS5tV8xY1zA4cE7gI0kM3oQ6sU9wX2zB5dG8fH1jL4nP7r"
UPPER = "QWERTYUIOPASDFGHJKLZXCVB2345"

SECRETS = [
    ("an AWS access key", "AK" + "IA" + UPPER[:12] + "2345"),
    ("an AWS access key", "AS" + "IA" + UPPER[:12] + "2345"),
    ("an AWS secret key", "aws_secret_" + "access_key = " + MIXED[:40]),
    ("an AWS secret key", "AWS_SECRET_" + 'ACCESS_KEY="' + MIXED[:40] + '"'),
    ("an AWS secret key", '"Secret' + 'AccessKey": "' + MIXED[:40].replace("B", "/") + '"'),
    ("a Google API key", "AI" + "za" + MIXED[:35]),
    ("a Google OAuth secret", "GOC" + "SPX-" + MIXED[:28]),
    ("a private key", '{"private_key": "-----BEGIN ' + 'PRIVATE KEY-----\\nMIIE"}'),
    ("a private key", "-----BEGIN " + "OPENSSH PRIVATE KEY-----\nb3Bl"),
    ("a private key", "-----BEGIN " + "PGP PRIVATE KEY BLOCK-----"),
    ("a private key", "-----BEGIN " + "RSA PRIVATE KEY-----"),
    ("an Azure storage key", "Account" + "Key=" + MIXED[:86] + "=="),
    ("an Azure client secret", "abc8" + "Q~" + MIXED[:34]),
    *(("a GitHub token", f"gh{letter}" + "_" + MIXED[:36]) for letter in "pousr"),
    ("a GitHub token", "github" + "_pat_" + MIXED[:22] + "_" + MIXED[:59]),
    ("a GitLab token", "gl" + "pat-" + MIXED[:20]),
    ("a Bitbucket token", "ATB" + "B" + MIXED[:32]),
    ("a Bitbucket token", "ATA" + "TT3" + MIXED[:80]),
    ("an npm token", "np" + "m_" + MIXED[:36]),
    ("a PyPI token", "pypi-" + "AgEIcHlwaS5vcmc" + MIXED[:60]),
    ("a Slack token", "xo" + "xb-123456789012-1234567890123-" + MIXED[:24]),
    ("a Slack token", "xa" + "pp-1-A0123456789-" + MIXED[:20]),
    ("an Anthropic key", "sk-" + "ant-api03-" + MIXED[:60]),
    ("an OpenAI key", "sk-" + "proj-" + MIXED[:48]),
    ("an OpenAI key", "sk-" + MIXED[:48]),
    ("a Stripe key", "sk" + "_live_" + MIXED[:24]),
    ("a Hugging Face token", "h" + "f_" + "abcdefghijklmnopqrSTUVWXYZabcdefgh"),
]

HARMLESS = [
    "ASIAN and AKIAN, ASIA-PACIFIC",
    "AKIA" + "IOSFODNN7" + "EXAMPLE",
    "sk-learn", "sk-learn-2024-classification-of-long-branch-names-v3",
    "task-0123456789abcdefABCDEF0123456789abcdef",
    hashlib.sha1(b"x").hexdigest(), hashlib.sha256(b"x").hexdigest(),
    base64.b64encode(hashlib.sha512(b"x").digest() * 20).decode(),
    "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 8).decode(),
    "ghp_ is the prefix of a GitHub token, glpat- of a GitLab one", "ghp_XXXX", "glpat-your-token-goes-here-please",
    "secret_key = os.environ['SECRET_KEY']", "aws_secret_access_key = <yours>", "SecretAccessKey: !Ref Key",
    "-----BEGIN " + "PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----", "the PRIVATE KEY is in the vault",
    "npm_config_registry=https://registry.example.org/with/a/very/long/path", "npm_package_dependencies_left_pad_version",
    "hf_hub_download(repo_id=name, filename=file)", "AccountKey=${AZURE_KEY}", "xoxo, Curie", "inbox-box-xoxb-",
    "0198c6f0-2f7e-7c31-b1c5-d1d9b2c7a1e0", "codex:implementer:host42@gitmem", "pypi-AgEnt", "sk-ant-",
    "FAQ~answers", "~/.ssh/id_ed25519", "sk_live_ and sk_test_ keys", "",
]  # fmt: skip


@pytest.mark.parametrize(("what", "text"), SECRETS, ids=range(len(SECRETS)))
def test_a_secret_is_named(what: str, text: str) -> None:
    """Alone, in a sentence, in quotes, on a line of its own and as a value in the environment."""
    for around in ("{}", "use {} please", '"{}"', "a\n{}\nb", "TOKEN={}", "({}),", "`{}`"):
        assert find_secret(around.format(text)) == what
    assert len(text) >= _SHORTEST
    assert marked([text]) and marked([True, "short", [text]])
    assert find_in({"a": [{"b": (text,)}]}) == find_in({text: None}) == what


@pytest.mark.parametrize("text", HARMLESS, ids=range(len(HARMLESS)))
def test_what_is_no_secret_passes(text: str) -> None:
    """Hashes, ids, code, documentation and base64 are said every day."""
    assert find_secret(text) is None
    assert find_in([text, {"a": text}]) is None


def test_an_everyday_message_is_not_even_looked_at() -> None:
    """The quick search lets plain talk pass without importing re."""
    assert not marked(["Approve this boundary? The parser stays in records.", True, ["a:b:c"], "0" * 64])
    assert marked([{"nested": "x"}])


@pytest.mark.parametrize("marker", _MARKERS)
def test_no_message_makes_the_search_slow(marker: str) -> None:
    """The longest message of nothing but one marker, with any joint, is searched in no time."""
    started = time.process_time()

    for joint in ("", "-", "_", "a", '"', " ", "=", "- "):
        word = marker + joint
        find_secret(word * (65536 // len(word)))
        find_secret(marker + joint * 65536)

    assert time.process_time() - started < 2
