#!/bin/sh
# gitmem: written by gitmem hooks install --git pre-push
# A push waits while signals on its work unit are unread or unanswered. The hook that was here before runs after that.
nl='
'
@IS_LISTED@
common=$(git rev-parse --git-common-dir 2>/dev/null)
program=''
if [ -r "$common/gitmem/program" ]; then IFS= read -r program <"$common/gitmem/program"; fi
[ -x "$program" ] && is_listed "$program" 2>/dev/null || program=$(command -v gitmem)
case $program in
  /* | [A-Za-z]:*)
    "$program" gate --pre-push </dev/null >&2
    status=$?
    case $status in
      0) ;;
      1) exit 1 ;;
      *) echo "gitmem: the gate could not be asked (exit status $status), and the push goes on" >&2 ;;
    esac
    ;;
  *) echo "gitmem: there is no gitmem here to ask, and the push goes on" >&2 ;;
esac
kept=${0%/*}/pre-push.before-gitmem
[ -x "$kept" ] || exit 0
exec "$kept" "$@"
