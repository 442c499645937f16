#!/bin/sh
# gitmem: written by gitmem setup --git post-commit
# Note which session has made this commit, or this merge. It can't stop a commit.
# It always starts git, and gitmem only for a process with a session's variables, in the background.
nl='
'
hook=@HOOK@
@REPOSITORY@
# Print the commit that this process has made. Git runs post-merge also for fast-forwards, which make none, and for `merge --squash`, which
# is committed later: the last entry of the reflog tells them apart.
made() {
  if [ "$hook" = post-commit ]; then
    git rev-parse --verify --quiet HEAD
  elif [ "${1-}" != 1 ]; then
    entry=$(git reflog -1 --no-show-signature --format='%H %gs' HEAD) || return 1
    case ${entry#* } in
      "${GIT_REFLOG_ACTION:-merge}: Merge made by "*) printf '%s\n' "${entry%% *} hook=post-merge" ;;
      *) return 1 ;;
    esac
  fi
}
# The folder's own name: GIT_DIR may be `.`, or end with a slash.
name=$(CDPATH='' cd -P -- "$git" 2>/dev/null && printf '%s' "${PWD##*/}")
seen=$common/gitmem/commits/in-$name
who=
for each in "GITMEM_SESSION=${GITMEM_SESSION-}" "GITMEM_TASK=${GITMEM_TASK-}" \
  "CLAUDE_CODE_SESSION_ID=${CLAUDE_CODE_SESSION_ID-}" "CODEX_THREAD_ID=${CODEX_THREAD_ID-}" \
  "COPILOT_AGENT_SESSION_ID=${COPILOT_AGENT_SESSION_ID-}" "GEMINI_SESSION_ID=${GEMINI_SESSION_ID-}" \
  "OPENCODE_SESSION_ID=${OPENCODE_SESSION_ID-}" "claude-code=${CLAUDECODE-}" \
  "codex=${CODEX_CI-}${CODEX_SANDBOX-}${CODEX_SANDBOX_NETWORK_DISABLED-}" "gemini=${GEMINI_CLI-}" \
  "cursor=${CURSOR_AGENT-}" "opencode=${OPENCODE-}" "cline=${CLINE_ACTIVE-}" "copilot=${COPILOT_CLI-}"; do
  case ${each#*=} in
    '') ;;
    *[!A-Za-z0-9._:-]*) who="$who ${each%%=*}=?" ;;
    *) who="$who $each" ;;
  esac
done
# An agent may commit first in a worktree that no command of gitmem has met: then note-commits makes that file.
case $who in *_SESSION=* | *_ID=*) seen=$common/gitmem/commits ;; esac
if [ -n "$name" ] && [ -e "$seen" ] && note=$(made "$@" 2>/dev/null) && [ -n "$note" ]; then
  noted=$common/gitmem/commits/by-$name # never a pipe or a link that another user of the repository has put there
  if [ ! -L "$noted" ] && { [ -f "$noted" ] || [ ! -e "$noted" ]; }; then
    printf '%s\n' "$note$who" 2>/dev/null >>"$noted"
  fi
  case $who in
    *_SESSION=* | *_ID=*)
@IS_LISTED@
      if [ ! -d "$git/rebase-merge" ] && [ ! -d "$git/rebase-apply" ] && [ ! -d "$git/sequencer" ]; then
        if [ -r "$common/gitmem/program" ]; then IFS= read -r program <"$common/gitmem/program"; fi
        [ -x "$program" ] && is_listed "$program" 2>/dev/null || program=$(command -v gitmem)
        case $program in
          /* | [A-Za-z]:*) { PYTHONPATH='' "$program" background note-commits </dev/null >/dev/null 2>&1 & } 2>/dev/null ;;
        esac
      fi
      ;;
  esac
fi 2>/dev/null
