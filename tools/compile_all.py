"""Write the generated files that depend on the models and the commands: `python tools/compile_all.py`.

For developers, after a change of a model, a command or an option. Each tool runs in its own process, because it imports what the one
before has written.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WRITTEN = {
    "compile_kinds.py": (
        "gitmem/records/table.py",
        "gitmem/records/record_types.py",
        "gitmem/records/option_types.py",
        "docs/records.md",
    ),
    "compile_shape.py": ("gitmem/index/index_file.py",),
    "compile_parser.py": ("cli/parser_table.py",),
    "compile_help.py": ("cli/help_text.py",),
    "compile_man.py": ("docs/man/gitmem.1",),
}


def main() -> int:
    """Run the tools in their order and print what changed."""
    for tool, files in WRITTEN.items():
        before = [(ROOT / file).read_bytes() for file in files]
        subprocess.run([sys.executable, ROOT / "tools" / tool], check=True)
        for file, old in zip(files, before, strict=True):
            print(f"{file}: {'unchanged' if (ROOT / file).read_bytes() == old else 'changed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
