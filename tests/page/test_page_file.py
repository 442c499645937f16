"""The file of the page: nothing of the log gets into it but by the data, and the policy allows its own parts alone."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

from gitmem.page.page_file import Assets, as_json


def data_of(page: bytes) -> dict:
    """Return the data in a page, as its script reads them."""
    (block,) = re.findall(
        rb'<script type="application/octet-stream\+base64" id="data">([A-Za-z0-9+/=]*)</script>', page
    )
    return json.loads(gzip.decompress(base64.b64decode(block)))


def digests(page: str, tag: str) -> set[str]:
    """Return the digests of the elements of a page that a browser applies, in the form of a policy."""
    return {
        f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'"
        for each in re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    }


def test_the_policy_allows_the_parts_of_the_page_and_no_request() -> None:
    """A script that somebody brings in has another digest."""
    page = Assets().page({"format": "x"}).decode()
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    rules = {each.split()[0]: each.split()[1:] for each in policy.split("; ")}

    assert set(rules["script-src"]) == digests(page, "script") and rules["script-src"]
    assert set(rules["style-src"]) == digests(page, "style") and rules["style-src"]
    assert (
        rules["default-src"]
        == rules["connect-src"]
        == rules["base-uri"]
        == rules["form-action"]
        == ["'none'"]
    )
    assert page.index("Content-Security-Policy") < page.index("<style")
    assert not re.search(
        r"\son\w+=|javascript:|<!-- (policy|data|style|script)",
        re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL),
    )


def test_a_text_can_not_leave_the_data() -> None:
    """Markup, comments, halves of surrogate pairs and a name of a part of the template are only data."""
    hostile = "</script><script>alert(1)</script><!-- data -->]]>\u2028\u202e\x00\ud800"
    plain, page = (Assets().page({"format": text}) for text in ("x", hostile))

    assert data_of(page)["format"] == hostile
    data = re.compile(rb'id="data">[^<]*')
    assert data.sub(b"", page) == data.sub(b"", plain)
    assert json.loads(as_json({"format": "\ud800"}))


def test_a_part_that_names_the_end_of_a_script_does_not_end_it(tmp_path: Path) -> None:
    """Libraries have such texts in their strings."""
    (tmp_path / "page.html").write_text("<!-- policy --><!-- script one.js --><!-- data -->")
    (tmp_path / "one.js").write_text('a = "</script>"; b = "<!--"; c = /<\\/SCRIPT>/;\r\n')

    page = Assets(str(tmp_path)).page({"format": "x"}).decode()

    assert r'<script>a = "<\/script>"; b = "<\!--"; c = /<\/SCRIPT>/;' in page
    assert digests(page, "script") == set(re.findall(r"'sha256-[^']*'", page))


def test_a_page_of_a_server_asks_it_for_data() -> None:
    """It has none itself."""
    page = Assets().page(None).decode()

    assert 'id="data" data-source="data.json" data-events="events"></script>' in page
    assert "connect-src 'self';" in page
