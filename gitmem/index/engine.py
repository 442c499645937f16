"""SQLite and SHA-256 without the parts of the standard library's modules that nobody here uses.

`import sqlite3` also loads datetime and collections.abc, and `hashlib` loads OpenSSL: together half an
empty Python. The C modules below them are CPython's own; elsewhere the usual ones serve.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from hashlib import sha256
else:
    try:
        import _sqlite3 as sqlite3
    except ImportError:
        import sqlite3
    try:
        from _sha2 import sha256
    except ImportError:
        try:
            from _sha256 import sha256  # Python 3.11
        except ImportError:
            from hashlib import sha256

__all__ = ["sha256", "sqlite3"]
