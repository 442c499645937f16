"""The merge driver for git: it unites log files in a merge by hand, and is installed in git's config.

Importing it keeps modules of a project out of this process, as importing the command line does.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("PYTHONPATH"):
    _theirs = {os.path.abspath(each) for each in os.environ["PYTHONPATH"].split(os.pathsep)}
    _theirs -= {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}
    _python = os.path.dirname(os.__file__)
    sys.path[:] = [each for each in sys.path if each not in _theirs or each.startswith(_python)]
