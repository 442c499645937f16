#!/bin/sh
[ ! -r "$(git rev-parse --git-common-dir)/gitmem/git-hooks/pre-push" ] || exit 0 # `gitmem setup --git pre-push` has installed it, too
# gitmem: written by gitmem setup --git pre-push
# Reject a push while signals on its work unit are unread or unanswered.
nl='
'
# Return whether the user's list has the program $1: hooks start only programs that the user has run before.
is_listed() {
  list=${XDG_STATE_HOME-}
  case $list in /* | [A-Za-z]:*) ;; *) list=${HOME-}/.local/state ;; esac
  list=$list/gitmem
  [ -O "$list" ] && [ -O "$list/programs" ] && modes=$(ls -Lld "$list" "$list/programs") || return 1
  case $nl$modes in *"$nl"?????w* | *"$nl"????????w*) return 1 ;; esac # other users can write to it
  while IFS= read -r line; do [ "$line" = "$1" ] && return 0; done <"$list/programs"
  return 1
}

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
