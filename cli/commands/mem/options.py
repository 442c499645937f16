"""The options that commands of the memory share, with their help."""

from __future__ import annotations

from typing import Annotated

import typer

from ... import shared_options as shared
from ..options import AllowSecret as AllowSecret
from ..options import Done as Done
from ..options import Pager as Pager
from ..options import Quiet as Quiet
from ..options import ShowProgress as ShowProgress

NodeId = Annotated[str, typer.Argument(metavar="ID", help=shared.NODE_ID.help)]
NodeIds = Annotated[list[str], typer.Argument(metavar="ID...", help=shared.NODE_IDS.help)]
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
Verified = Annotated[bool, typer.Option("--verified", help=shared.VERIFIED.help)]
TaxonomyTag = Annotated[
    str | None, typer.Option("--tag", metavar="TAG", help=f"Required: {shared.TAXONOMY.help}")
]
NewWu = Annotated[str | None, typer.Option("--wu", metavar="ID", help="New work unit.")]
OnlyWu = Annotated[str | None, typer.Option("--wu", metavar="ID", help=shared.ONLY_WU.help)]
Lane = Annotated[
    str | None,
    typer.Option("--lane", metavar="LANE", help="Lane that it applies to (default: all)."),
]
NewLane = Annotated[str | None, typer.Option("--lane", metavar="LANE", help="New lane.")]
OnlyLane = Annotated[str | None, typer.Option("--lane", metavar="LANE", help="Only nodes of this lane.")]
ReaderLane = Annotated[
    str | None,
    typer.Option(
        "--lane",
        metavar="LANE",
        help="Lane (default: your session's); omits project nodes of other lanes.",
    ),
]
Priority = Annotated[str | None, typer.Option("--priority", metavar="P", help=shared.PRIORITY.help)]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", "--tags", metavar="A,B", help="Tags. May be repeated.")
]
NewTags = Annotated[
    list[str] | None,
    typer.Option("--tag", "--tags", metavar="A,B", help="New tags, replacing the present ones."),
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
        help="New paths, replacing the present ones. May be repeated.",
    ),
]
Path = Annotated[
    str | None, typer.Option("--path", metavar="P", help="Only nodes about this file or folder.")
]
Session = Annotated[
    str | None,
    typer.Option("--session", metavar="ID", help="Session (default: yours)."),
]
NewSession = Annotated[str | None, typer.Option("--session", metavar="ID", help="New session.")]
OnlySession = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="Only nodes of this session.")
]
Meta = Annotated[
    list[str] | None,
    typer.Option(
        "--meta", metavar="KEY=VALUE", help="Metadata entry; VALUE is JSON or text. May be repeated."
    ),
]
NewMeta = Annotated[
    list[str] | None,
    typer.Option(
        "--meta", metavar="KEY=VALUE", help="Set a metadata entry; null removes it. May be repeated."
    ),
]
Archived = Annotated[bool, typer.Option("--include-archived", help="Include archived and deleted nodes.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done without doing it.")]
HalfLife = Annotated[
    str | None,
    typer.Option("--half-life", metavar="30d", help=shared.HALF_LIFE.help),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="COMMIT|DATE", help="Use the log as of this time, such as 2026-11-21 or 2d."
    ),
]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Reason, one line.")]
TrackAccess = Annotated[bool, typer.Option("--track-access", help="Record an access of each node shown.")]
MaxSize = Annotated[
    str | None,
    typer.Option("--max-size", metavar="N", help=shared.MAX_SIZE.help),
]
SearchLimit = Annotated[str | None, typer.Option("--limit", metavar="N", help=shared.SEARCH_LIMIT.help)]
ListLimit = Annotated[str | None, typer.Option("--limit", metavar="N", help=shared.LIST_LIMIT.help)]
ProfileLimit = Annotated[str | None, typer.Option("--limit", metavar="N", help=shared.PROFILE_LIMIT.help)]
NoRoster = Annotated[bool, typer.Option("--no-roster", help="Omit the roster and the unread count.")]
Private = Annotated[bool, typer.Option("--private", help=shared.PRIVATE.help)]
Sensitive = Annotated[bool, typer.Option("--sensitive", help="Exclude it from cleanup.")]
Supersedes = Annotated[
    list[str] | None,
    typer.Option("--supersedes", metavar="ID", help=f"{shared.SUPERSEDES.help} May be repeated."),
]
ReadyType = Annotated[str | None, typer.Option("--type", metavar="TYPE", help=shared.READY_TYPE.help)]
ReadyLimit = Annotated[str | None, typer.Option("--limit", metavar="N", help=shared.READY_LIMIT.help)]
Force = Annotated[
    bool, typer.Option("--force", help="Include open nodes of P0 and P1, and last checkpoints.")
]
