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
    "compile_reference.py": ("docs/man/gitmem.1", "docs/reference/*.md", "docs/settings.md"),
    "compile_plugins.py": (
        ".agents/plugins/*.json",
        ".claude-plugin/*.json",
        ".pre-commit-hooks.yaml",
        "gemini-extension.json",
        "hooks/*.json",
        "plugins/**/*.json",
        "plugins/**/*.sh",
    ),
}


def main() -> int:
    """Run the tools in their order and print what changed."""
    for tool, files in WRITTEN.items():
        before = contents(files)
        subprocess.run([sys.executable, ROOT / "tools" / tool], check=True)
        for path, content in contents(files).items():
            print(f"{path.relative_to(ROOT)}: {'unchanged' if before.get(path) == content else 'changed'}")
    return 0


def contents(patterns: tuple[str, ...]) -> dict[Path, bytes]:
    """Return the content of each file that matches."""
    return {path: path.read_bytes() for each in patterns for path in sorted(ROOT.glob(each))}


if __name__ == "__main__":
    sys.exit(main())
