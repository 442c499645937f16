"""The entry point of `python -m cli` in the checkout and `python -m gitmem_cli` when installed."""

from __future__ import annotations

import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main())
