"""`python -m cli` in the checkout, `python -m gitmem_cli` installed."""

from __future__ import annotations

import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main())
