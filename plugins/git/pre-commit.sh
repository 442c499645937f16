#!/bin/sh
[ ! -r "$(git rev-parse --git-common-dir)/gitmem/git-hooks/pre-commit" ] || exit 0 # `gitmem setup --git pre-commit` has installed it, too
# gitmem: written by gitmem setup --git pre-commit
# Reject a commit of paths that somebody else has claimed.
# With nothing claimed by others it starts no program: it tests files that gitmem keeps.
nl='
'
# Find the git folder of this worktree, and that of the repository, without starting git.
git=${GIT_DIR:-.git} common='' program=''
if [ -f "$git" ]; then
  IFS= read -r git <"$git"
  git=${git#gitdir: }
fi
common=$git
if [ -r "$git/commondir" ]; then
  IFS= read -r common <"$git/commondir"
  case $common in /* | [A-Za-z]:*) ;; *) common=$git/$common ;; esac
fi
if [ -e "$common/gitmem/claims/claimed" ] && [ ! -e "$common/gitmem/claims/only-own/in-${git##*/}" ]; then
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
