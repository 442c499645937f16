#!/bin/sh
# gitmem: written by gitmem setup --git pre-push
# Reject a push while signals on its work unit are unread or unanswered.
nl='
'
@IS_LISTED@
common=$(git rev-parse --git-common-dir 2>/dev/null)
program=''
if [ -r "$common/gitmem/program" ]; then IFS= read -r program <"$common/gitmem/program"; fi
[ -x "$program" ] && is_listed "$program" 2>/dev/null || program=$(command -v gitmem)
case $program in
  /* | [A-Za-z]:*)
    PYTHONPATH='' "$program" gate --hook pre-push </dev/null >&2
    status=$?
    case $status in
      0) ;;
      1) exit 1 ;;
      *) echo "gitmem: the gate failed with exit status $status; the push continues" >&2 ;;
    esac
    ;;
  *) echo "gitmem: no gitmem program found to check the gate; the push continues" >&2 ;;
esac
