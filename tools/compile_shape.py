"""Write the shape of the index, which depends on its views, into `gitmem/index/index_file.py`.

For developers, after a change of a view, or of a field that it has: `python tools/compile_shape.py`. The constant saves the
import of the views at each query. A test compares it with the views.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INDEX_FILE = ROOT / "gitmem" / "index" / "index_file.py"


def main() -> int:
    """Write the constant."""
    from gitmem import records, views
    from gitmem.index import index_file

    shape = index_file.in_memory(views.VIEWS, records.read).shape()
    text = INDEX_FILE.read_text(encoding="utf-8")
    INDEX_FILE.write_text(re.sub(r"(?m)^SHAPE = .*$", f"SHAPE = {shape}", text, count=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
