#!/bin/sh
# gitmem: written by gitmem setup --git pre-commit
# Reject a commit of paths that somebody else has claimed.
# With nothing claimed by others it starts no program: it tests files that gitmem keeps.
nl='
'
@REPOSITORY@
if [ -e "$common/gitmem/claims/claimed" ] && [ ! -e "$common/gitmem/claims/only-own/in-${git##*/}" ]; then
@IS_LISTED@
  if [ -r "$common/gitmem/program" ]; then IFS= read -r program <"$common/gitmem/program"; fi
  [ -x "$program" ] && is_listed "$program" 2>/dev/null || program=$(command -v gitmem)
  case $program in
    /* | [A-Za-z]:*)
      git diff --cached --name-only --no-renames -z | PYTHONPATH='' "$program" gate --hook pre-commit >&2
      status=$?
      case $status in
        0) ;;
        1) exit 1 ;;
        *) echo "gitmem: the guard failed with exit status $status; the commit continues" >&2 ;;
      esac
      ;;
    *) echo "gitmem: no gitmem program found to check claims; the commit continues" >&2 ;;
  esac
fi
