"""The options that commands of the memory share, with their help."""

from __future__ import annotations

from typing import Annotated

import typer

from ... import shared_options as shared
from ..options import AllowSecret as AllowSecret
from ..options import Quiet as Quiet

NodeId = Annotated[str, typer.Argument(metavar="ID", help="A node id (mem-…), or a unique prefix of it.")]
NodeIds = Annotated[list[str], typer.Argument(metavar="ID...", help="Node ids, or unique prefixes.")]
Type = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help=shared.NODE_TYPE.help,
    ),
]
OneType = Annotated[
    str | None,
    typer.Option("--type", metavar="TYPE", help=shared.STORED_TYPE.help),
]
Lifecycle = Annotated[str | None, typer.Option("--lifecycle", metavar="L", help=shared.LIFECYCLE.help)]
NewLifecycle = Annotated[
    str | None,
    typer.Option(
        "--lifecycle",
        metavar="L",
        help=shared.NEW_LIFECYCLE.help,
    ),
]
Wu = Annotated[
    str | None,
    typer.Option("--wu", metavar="ID", help=shared.NODE_WU.help),
]
NewWu = Annotated[
    str | None, typer.Option("--wu", metavar="ID", help="The work unit that it belongs to from now on.")
]
OnlyWu = Annotated[str | None, typer.Option("--wu", metavar="ID", help=shared.ONLY_WU.help)]
Lane = Annotated[
    str | None,
    typer.Option("--lane", metavar="LANE", help="The lane that it matters in; every one without it."),
]
NewLane = Annotated[
    str | None, typer.Option("--lane", metavar="LANE", help="The lane that it matters in from now on.")
]
OnlyLane = Annotated[str | None, typer.Option("--lane", metavar="LANE", help="Only nodes of this lane.")]
ReaderLane = Annotated[
    str | None,
    typer.Option(
        "--lane",
        metavar="LANE",
        help="Your lane, your session's without it: project knowledge of other lanes is left out.",
    ),
]
Priority = Annotated[str | None, typer.Option("--priority", metavar="P", help=shared.PRIORITY.help)]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", "--tags", metavar="A,B", help="Tags. May be repeated.")
]
NewTags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag", "--tags", metavar="A,B", help="All of its tags from now on: they replace the others."
    ),
]
OnlyTags = Annotated[
    list[str] | None,
    typer.Option("--tag", "--tags", metavar="A,B", help="Only nodes with all of these tags."),
]
Tag = Annotated[str | None, typer.Option("--tag", metavar="T", help="Only nodes with this tag.")]
Paths = Annotated[
    list[str] | None,
    typer.Option("--path", metavar="FILE", help=f"{shared.PATHS.help} May be repeated."),
]
NewPaths = Annotated[
    list[str] | None,
    typer.Option(
        "--path",
        metavar="FILE",
        help="All of its paths from now on. May be repeated; they replace the others.",
    ),
]
Path = Annotated[
    str | None, typer.Option("--path", metavar="P", help="Only nodes about this file or folder.")
]
Session = Annotated[
    str | None,
    typer.Option("--session", metavar="ID", help="The session that it belongs to; yours without it."),
]
NewSession = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="The session that it belongs to from now on.")
]
OnlySession = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="Only nodes of this session.")
]
Meta = Annotated[
    list[str] | None,
    typer.Option("--meta", metavar="KEY=VALUE", help="Further data; VALUE is JSON or text. May be repeated."),
]
NewMeta = Annotated[
    list[str] | None,
    typer.Option(
        "--meta", metavar="KEY=VALUE", help="Change an entry of its data; null takes it out. May be repeated."
    ),
]
Archived = Annotated[
    bool, typer.Option("--include-archived", help="What is hidden, too: archived and deleted nodes.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
HalfLife = Annotated[
    str | None,
    typer.Option("--half-life", metavar="30d", help=shared.HALF_LIFE.help),
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="COMMIT|DATE", help="As the log was then, such as 2026-11-21 or 2d."),
]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; one line.")]
TrackAccess = Annotated[bool, typer.Option("--track-access", help="Record that these nodes were read.")]
MaxSize = Annotated[
    str | None,
    typer.Option("--max-size", metavar="N", help=shared.MAX_SIZE.help),
]
SearchLimit = Annotated[str | None, typer.Option("--limit", metavar="N", help=shared.SEARCH_LIMIT.help)]
ListLimit = Annotated[str | None, typer.Option("--limit", metavar="N", help=shared.LIST_LIMIT.help)]
ProfileLimit = Annotated[str | None, typer.Option("--limit", metavar="N", help=shared.PROFILE_LIMIT.help)]
NoRoster = Annotated[bool, typer.Option("--no-roster", help="Leave out who is here and how much is unread.")]
Sensitive = Annotated[bool, typer.Option("--sensitive", help="Cleanups leave it alone.")]
