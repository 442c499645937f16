#!/bin/sh
# gitmem: written by gitmem hooks install
# Says whether somebody has signalled this agent. Nothing new: no program is started. Otherwise gitmem answers.
# Whatever happens, it prints nothing of its own and ends with 0, so that it never stands in the agent's way.
set +eu
status=0
trap 'exit "$status"' EXIT # a shell that can't fork ends with 2, which stops the agent

#@ claude-code: Copilot runs the hooks of .claude/settings.json, too. Its agent's commands, unlike its hooks, get the session id.
[ -z "${COPILOT_CLI-}" ] || [ -n "${COPILOT_AGENT_SESSION_ID-}" ] || exit 0

#@ events
event=@EVENT@
case $event in
@CASES@
  *) exit 0 ;;
esac

#@ repository
nl='
'
# The content of a small file, without its last newline, into $text.
slurp() {
  text='' line=''
  [ -r "$1" ] || return 1
  while IFS= read -r line; do text=$text$line$nl; done <"$1"
  text=$text$line
  while :; do
    case $text in *[[:cntrl:]]) text=${text%?} ;; *) return 0 ;; esac
  done
}

# The folder $1 as named from the folder $2, into $text.
from() {
  case $1 in /* | [A-Za-z]:*) text=$1 ;; *) text=$2/$1 ;; esac
}

# The folder of gitmem's own files in this repository, into $state; fails where there is none.
repository() {
  CDPATH='' cd -P -- "@FOLDER@" >/dev/null || return 1
  folder=$PWD
  git=${GIT_DIR-}
  while [ -z "$git" ]; do
    if [ -f "$folder/.git" ] || [ -d "$folder/.git/objects" ]; then # nothing else counts
      git=$folder/.git
    elif [ -z "$folder" ]; then
      return 1
    fi
    [ -n "$git" ] || folder=${folder%/*}
  done
  from "$git" "$PWD"
  git=$text
  if [ -f "$git" ]; then # a linked worktree, or a submodule
    slurp "$git"
    from "${text#gitdir: }" "${git%/*}"
    git=$text
  fi
  common=$git
  if slurp "$git/commondir"; then
    from "$text" "$git"
    common=$text
  fi
  if [ -n "${GIT_COMMON_DIR-}" ]; then
    from "$GIT_COMMON_DIR" "$PWD"
    common=$text
  fi
  state=$common/gitmem
  [ -d "$state" ]
}

#@ wanted
# Whether $1 can be the name of a session, and of its files.
is_name() {
  case $1 in '' | .* | *[!A-Za-z0-9._-]*) return 1 ;; esac
}

# Whether a session has something to read. The end of a turn waits for what may interrupt alone.
is_flagged() {
  case $kind in
    stop) [ -s "$state/flags/$1" ] ;;
    *) [ -e "$state/flags/$1" ] ;;
  esac
}

#@ asked: Without an id in the environment, a file has the sessions that hooks started in this worktree. Once a turn, any flag starts gitmem, for a session that has moved to another worktree.
# Whether somebody has written to the session $1; and note that it is at work where $2 says that it is this one.
look() {
  is_name "$1" || return 1
  if [ -n "$2" ]; then
    [ -e "$state/beats/$1" ] || new=1
    true >"$state/beats/$1"
  fi
  is_flagged "$1"
}

# Whether somebody has written to this session.
is_asked() {
  asked=1 new=''
  look "@OURS@" sure && asked=0
  if is_name "@THEIRS@"; then
    look "@THEIRS@" sure && asked=0
  else
    here=$state/here/@CLIENT@ sure=sure
    [ "$git" = "$common" ] || here=$here-${git##*/}
    slurp "$here" && [ -n "$text" ] || new=1
    case $text in *"$nl"*) sure='' ;; esac
    text=$text$nl
    while [ -n "$text" ]; do
      look "${text%%"$nl"*}" "$sure" && asked=0
      text=${text#*"$nl"}
    done
    if [ "$kind" != tool ]; then
      for file in "$state"/flags/*; do is_flagged "${file##*/}" && asked=0; done
    fi
  fi
  [ "$kind" = tool ] && [ -e "$state/hook-stuck" ] && return 1
  [ "$kind" = prompt ] && [ -n "$new" ] && return 0 # nobody has told us of its start
  return "$asked"
}

#@ waiting
# Whether an agent in a sandbox has left something that this process may commit. Once a turn where that failed.
is_waiting() {
  [ "$kind" = tool ] && [ -e "$state/hook-stuck" ] && return 1
  [ "$kind" = tool ] && [ -e "$state/hook-left" ] && return 1
  if [ -r "$state/wal-folders" ]; then
    while IFS= read -r folder; do
      for file in "$folder"/*.wal1 "$folder"/*-wait.spool; do [ -s "$file" ] && return 0; done
    done <"$state/wal-folders"
  fi
  return 1
}

#@ due: No shell can read the time without a fork, but it can write a file and compare modification times.
# Whether a sync is due, in a clone that is to sync by itself: what others wrote must come without our writing.
is_due() {
  [ -e "$state/autosync/next" ] || return 1
  true >"$state/autosync/look" || return 1
  [ "$state/autosync/look" -nt "$state/autosync/next" ]
}

#@ is_listed
# Whether the user's own list has the program $1: what a repository names counts only if the user has run it before.
is_listed() {
  list=${XDG_STATE_HOME-}
  case $list in /* | [A-Za-z]:*) ;; *) list=${HOME-}/.local/state ;; esac
  list=$list/gitmem
  [ -O "$list" ] && [ -O "$list/programs" ] && modes=$(ls -Lld "$list" "$list/programs") || return 1
  case $nl$modes in *"$nl"?????w* | *"$nl"????????w*) return 1 ;; esac # others may write to it
  while IFS= read -r line; do [ "$line" = "$1" ] && return 0; done <"$list/programs"
  return 1
}

#@ prompt none
keep_prompt() { :; }

#@ prompt by variable
# Note that the user has said something. Store what it was only where headlines may show it: the file keep-prompts
# is there while gitmem.headline is "prompt". The stored text is readable by this user alone.
keep_prompt() {
  is_name "@THEIRS@" || return 1
  [ -d "$state/prompts" ] || mkdir "$state/prompts" || return 1
  if [ ! -e "$state/keep-prompts" ]; then
    (umask 077 && true >"$state/prompts/@THEIRS@")
    return 0
  fi
  input=$state/prompts/@THEIRS@
  (umask 077 && exec cat >"$input") || input=''
}

#@ prompt by key
# Store what the user has said where headlines may show it: the file keep-prompts is there while gitmem.headline is
# "prompt". The stored text is readable by this user alone.
keep_prompt() {
  [ -e "$state/keep-prompts" ] || return 0
  [ -d "$state/prompts" ] || mkdir "$state/prompts" || return 1
  input=$state/prompts/.$$
  if (umask 077 && exec cat >"$input"); then
    name=$(dd if="$input" bs=512 count=1)
    case $name in
      *'"@KEY@":'*) name=${name#*'"@KEY@":'} name=${name#*\"} name=${name%%\"*} ;;
      *) name='' ;;
    esac
    is_name "$name" && mv -f "$input" "$state/prompts/$name" && input=$state/prompts/$name
  else
    input=''
  fi
}

#@ run
input='' go='' due=''
{
  if repository; then
    case $kind in
      start | end) go=1 ;;
      wake) [ "${CLAUDE_CODE_SESSION_ATTENDED-}" = 0 ] || go=1 ;; # `claude -p` would wait half a minute for it
      *)
        [ "$kind" = prompt ] && keep_prompt
        case $kind in @READS@) is_asked && go=1 ;; esac
        [ -n "$go" ] || { is_waiting && go=1; }
        [ -n "$go" ] || { is_due && due=1; } # gitmem sees to it itself
        ;;
    esac
  fi
} 2>/dev/null

ask() {
  if [ -n "$input" ]; then "$1" hook @CLIENT@ "$event" <"$input"; else "$1" hook @CLIENT@ "$event"; fi
}

program=''
if [ -n "$go$due" ]; then
  {
    slurp "$state/program" && [ -x "$text" ] && is_listed "$text" && program=$text
    [ -n "$program" ] || program=$(command -v gitmem)
  } 2>/dev/null
  case $program in /* | [A-Za-z]:*) ;; *) go='' due='' ;; esac # never a file of the work tree
fi
if [ -n "$due" ]; then
  { "$program" sync --auto </dev/null >/dev/null 2>&1 & } 2>/dev/null
elif [ -n "$go" ]; then
  if [ "$kind" = wake ]; then ask "$program"; else ask "$program" 2>/dev/null; fi
  case $? in
    2) [ "$kind" = wake ] && status=2 ;;
    126 | 127) # its Python is gone
      text=$(command -v gitmem 2>/dev/null)
      case $text in "$program") ;; /* | [A-Za-z]:*) ask "$text" 2>/dev/null ;; esac
      ;;
  esac
fi
case $input in */.[0-9]*) rm -f "$input" 2>/dev/null ;; esac
exit "$status"
