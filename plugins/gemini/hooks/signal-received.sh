#!/bin/sh
# gitmem: written by gitmem setup
# Start gitmem if there are new signals for this agent; otherwise start no program.
# It prints nothing itself, and exits with 0 even after an error, so that it cannot block the agent.
# A remark at the end of the next lines also hides a CR, which a checkout may have put at the end of each.
trap 'exit 0' EXIT # a shell that cannot fork or read this exits with 2, which would stop the agent
cr=
[ -z "$cr" ] || exit 0 # no shell can run the rest with CRs
set +eu
unset PYTHONPATH # of the project: gitmem must not import its modules

event=${1-}
case $event in
  BeforeTool) kind=edit ;;
  AfterTool) kind=tool ;;
  BeforeAgent) kind=prompt ;;
  SessionStart) kind=start ;;
  AfterAgent) kind=stop ;;
  SessionEnd) kind=end ;;
  *) exit 0 ;;
esac

nl='
'
# Read the small file $1 into $text, without control characters at the end.
read_file() {
  text='' line=''
  [ -r "$1" ] || return 1
  while IFS= read -r line; do text=$text$line$nl; done <"$1"
  text=$text$line
  while :; do
    case $text in *[[:cntrl:]]) text=${text%?} ;; *) return 0 ;; esac
  done
}

# Return whether the file $1 may be written: another user of the repository may have put a link or a pipe there.
is_file() {
  [ ! -L "$1" ] && { [ -f "$1" ] || [ ! -e "$1" ]; }
}

# Resolve the path $1 against the folder $2 into $text.
resolve() {
  case $1 in /* | [A-Za-z]:*) text=$1 ;; *) text=$2/$1 ;; esac
}

# Find the git folder of the folder $1, and the one that its worktrees share; fail if there is none.
locate() {
  CDPATH='' cd -P -- "$1" >/dev/null || return 1
  folder=$PWD
  git=${GIT_DIR-}
  while [ -z "$git" ]; do
    if [ -f "$folder/.git" ] || [ -d "$folder/.git/objects" ]; then # only these are repositories
      git=$folder/.git
    elif [ -z "$folder" ]; then
      return 1
    fi
    [ -n "$git" ] || folder=${folder%/*}
  done
  resolve "$git" "$PWD"
  git=$text
  if [ -f "$git" ]; then # a linked worktree, or a submodule
    read_file "$git"
    resolve "${text#gitdir: }" "${git%/*}"
    git=$text
  fi
  common=$git
  if read_file "$git/commondir"; then
    resolve "$text" "$git"
    common=$text
  fi
  if [ -n "${GIT_COMMON_DIR-}" ]; then
    resolve "$GIT_COMMON_DIR" "$PWD"
    common=$text
  fi
}

# Find the folder of gitmem's files in this repository and set $state; fail if there is none. A client that works in another worktree of
# the repository than that of its project runs this there.
repository() {
  begun=${PWD:-.}
  locate "${GEMINI_PROJECT_DIR:-${PWD:-.}}" || return 1
  if [ "$begun" != "$PWD" ]; then
    project=$PWD projects=$git shared=$common
    locate "$begun" && [ "$git" != "$projects" ] && [ "$common" -ef "$shared" ] || {
      CDPATH='' cd -P -- "$project" >/dev/null || return 1
      git=$projects common=$shared
    }
  fi
  state=$common/gitmem
  [ -d "$state" ]
}

# Return whether `gitmem setup` has installed this script, too, so that the client runs both.
is_set_up() {
  for each in "${GEMINI_PROJECT_DIR:-${PWD:-.}}" "$folder" "${common%/*}"; do
    has_script "$each/.gemini" && return 0
  done
  has_script "${HOME-}/.gemini"
}

# Return whether the client's folder $1 has this script, and its settings run it: a file alone may be anybody's.
has_script() {
  for name in signal-received.sh gitmem-signal-received.sh; do
    for file in settings.json; do
      [ -r "$1/hooks/$name" ] && [ -f "$1/$file" ] && [ -r "$1/$file" ] || continue
      while IFS= read -r line || [ -n "$line" ]; do
        case $line in *"exec sh -c '"*"hooks/$name"*' gitmem"'*) return 0 ;; esac
      done <"$1/$file"
    done
  done
  return 1
}

# Return whether $1 is a valid name of a session and of its files.
is_name() {
  case $1 in '' | .* | *[!A-Za-z0-9._-]*) return 1 ;; esac
}

# Return whether the session $1 has unread signals; at the end of a turn, only those that may interrupt.
is_flagged() {
  case $kind in
    stop) [ -s "$state/flags/$1" ] ;;
    *) [ -e "$state/flags/$1" ] ;;
  esac
}

# Note whether a turn of the client's agent is over, and when it got a prompt. A tool call of a session that is known writes its heartbeat alone.
note_turn() {
  turn=$state/turns/$PPID
  [ "$kind" = tool ] && [ -e "$turn" ] && [ ! -s "$turn" ] && is_name "${GEMINI_SESSION_ID-}" && return
  [ -d "$state/turns" ] && is_file "$turn" && is_file "$turn.word" || return 0
  [ "$kind" = prompt ] && true >"$turn.word"
  case $kind in stop) echo over >"$turn" ;; *) true >"$turn" ;; esac
}

# Return whether the session $1 has unread signals. If $2 is set, it is this session: update its heartbeat, and return
# whether it has a claim to renew, too.
check_session() {
  is_name "$1" || return 1
  if [ -n "$2" ]; then
    [ -e "$state/beats/$1" ] || new=1
    is_file "$state/beats/$1" && true >"$state/beats/$1"
    [ -e "$state/claims/due/$1" ] && [ "$state/beats/$1" -nt "$state/claims/due/$1" ] && return 0
  fi
  is_flagged "$1"
}

# Return whether this session has unread signals.
has_signals() {
  found=1 new='' came=''
  check_session "${GITMEM_SESSION-}" sure && found=0
  if is_name "${GEMINI_SESSION_ID-}"; then
    check_session "${GEMINI_SESSION_ID-}" sure && found=0
    if [ ! -e "$state/beats/${GEMINI_SESSION_ID-}+${git##*/}" ]; then
      for file in "$state/beats/${GEMINI_SESSION_ID-}+"*; do [ -e "$file" ] && came=1; done # it worked in another worktree
    fi
  else
    here=$state/here/gemini sure=sure
    [ "$git" = "$common" ] || here=$here-${git##*/}
    read_file "$here" && [ -n "$text" ] || new=1
    case $text in *"$nl"*) sure='' ;; esac
    text=$text$nl
    while [ -n "$text" ]; do
      check_session "${text%%"$nl"*}" "$sure" && found=0
      text=${text#*"$nl"}
    done
    if [ "$kind" != tool ]; then
      for file in "$state"/flags/*; do is_flagged "${file##*/}" && found=0; done
    fi
  fi
  [ "$kind" = tool ] && [ -e "$state/hook-stuck" ] && return 1
  [ "$kind" = prompt ] && [ -n "$new" ] && return 0 # its start was not reported
  [ -n "$came" ] && return 0
  return "$found"
}

# Count a tool call, while the file checkpoint-every exists. Return whether there are as many as it says; begin anew.
is_counted() {
  [ "$kind" = tool ] && [ -e "$state/checkpoint-every" ] && [ ! -e "$state/hook-stuck" ] || return 1
  read_file "$state/checkpoint-every"
  every=$text
  case $every in '' | *[!0-9]* | ????*) return 1 ;; esac
  calls=$state/tool-calls/${here##*/}
  is_name "${GEMINI_SESSION_ID-}" && calls=$state/tool-calls/${GEMINI_SESSION_ID-}
  is_file "$calls" || return 1
  printf . >>"$calls" || return 1
  IFS= read -r text <"$calls" || [ "${#text}" -ge "$every" ] || return 1 # a line end is not ours: begin anew
  true >"$calls"
}

# Return whether somebody else has perhaps claimed paths in this worktree. No program is started to find out.
is_guarded() {
  [ -e "$state/claims/claimed" ] && [ ! -e "$state/claims/only-own/in-${git##*/}" ] && [ ! -e "$state/hook-stuck" ]
}

# Keep the beginning of this hook's input, which names the edited paths, until the end of a turn. Only this user can
# read it. Return 1 if too many are kept, or the file exists: another user of the repository may have put a link there.
keep_edit() {
  set -- "$edited"/*
  name=${GITMEM_SESSION-}
  is_name "$name" || name=''
  kept=$edited/gemini+$name+$$
  [ "$#" -lt 200 ] && [ ! -e "$kept" ] && [ ! -L "$kept" ] || return 1
  (umask 077 && exec head -c 16384 >"$kept")
  return 0
}

# Return whether to notice what was edited.
notices_edits() {
  [ "$kind" = "stop" ] && [ -e "$state/edits/wanted" ] && [ ! -e "$state/hook-stuck" ]
}

# Return whether this worktree has commits that gitmem has not seen.
has_commits() {
  seen=$state/commits/in-${git##*/}
  [ -e "$seen" ] && [ ! -e "$state/hook-stuck" ] || return 1
  [ "$git/logs/HEAD" -nt "$seen" ] || [ "$state/commits/by-${git##*/}" -nt "$seen" ]
}

# Return whether an agent in a sandbox has left records that this process can commit. After a failure, once a turn.
has_records() {
  [ "$kind" = tool ] && [ -e "$state/hook-stuck" ] && return 1
  [ "$kind" = tool ] && [ -e "$state/hook-left" ] && return 1
  if [ -r "$state/wal-folders" ]; then
    while IFS= read -r folder; do
      for file in "$folder"/*.wal1; do [ -s "$file" ] && return 0; done
    done <"$state/wal-folders"
  fi
  return 1
}

# Return whether an automatic sync is due: signals of others must arrive even if this agent writes nothing.
is_due() {
  [ -e "$state/autosync/next" ] && is_file "$state/autosync/look" || return 1
  true >"$state/autosync/look" || return 1
  [ "$state/autosync/look" -nt "$state/autosync/next" ]
}

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

# Record that there was a prompt. Store its text only if headlines may show it: the file keep-prompts
# exists while gitmem.headline is "prompt". Only this user can read the stored text.
keep_prompt() {
  is_name "${GEMINI_SESSION_ID-}" && is_file "$state/prompts/${GEMINI_SESSION_ID-}" || return 1
  [ -d "$state/prompts" ] || mkdir "$state/prompts" || return 1
  if [ ! -e "$state/keep-prompts" ]; then
    (umask 077 && true >"$state/prompts/${GEMINI_SESSION_ID-}")
    return 0
  fi
  input=$state/prompts/${GEMINI_SESSION_ID-}
  (umask 077 && exec cat >"$input") || input=''
}

input='' go='' due='' also='' here='' edits=''
{
  if repository && ! is_set_up; then
    case $kind in
      start | end | checkpoint) go=1 ;;
      edit)
        edited=$state/edits/inputs/in-${git##*/}
        if is_guarded; then
          go=1
        elif [ -d "$edited" ] && [ ! -L "$edited" ] && [ ! -e "$state/hook-stuck" ]; then
          keep_edit || go=1
        fi
        ;;
      *)
        note_turn
        [ "$kind" = prompt ] && keep_prompt
        case $kind in tool | prompt | stop) has_signals && go=1 ;; esac
        [ "$kind" = "" ] && is_guarded && go=1 # a client without an event before an edit
        is_counted && go=1 also=checkpoint
        notices_edits && edits=1
        [ -n "$go" ] || { has_commits && go=1; }
        [ -n "$go" ] || { has_records && go=1; }
        [ -n "$go" ] || { is_due && due=1; } # otherwise gitmem checks this itself
        ;;
    esac
  fi
} 2>/dev/null

run_gitmem() {
  set -- "$1" hook gemini "$event" ${also:+"$also"}
  if [ -n "$input" ]; then GITMEM_CLIENT_PROCESS=$PPID "$@" <"$input"; else GITMEM_CLIENT_PROCESS=$PPID "$@"; fi
}

program=''
if [ -n "$go$due$edits" ]; then
  {
    read_file "$state/program" && [ -x "$text" ] && is_listed "$text" && program=$text
    [ -n "$program" ] || program=$(command -v gitmem)
  } 2>/dev/null
  case $program in /* | [A-Za-z]:*) ;; *) go='' due='' edits='' ;; esac # never run a file of the work tree
fi
if [ -n "$edits" ]; then
  { "$program" hook gemini "$event" edits </dev/null >/dev/null 2>&1 & } 2>/dev/null
fi
if [ -n "$due" ]; then
  { "$program" background autosync </dev/null >/dev/null 2>&1 & } 2>/dev/null
elif [ -n "$go" ]; then
  run_gitmem "$program" 2>/dev/null
  case $? in
    126 | 127) # its Python was removed
      text=$(command -v gitmem 2>/dev/null)
      case $text in "$program") ;; /* | [A-Za-z]:*) run_gitmem "$text" 2>/dev/null ;; esac
      ;;
  esac
fi
case $input in */.[0-9]*) rm -f "$input" 2>/dev/null ;; esac
exit 0
