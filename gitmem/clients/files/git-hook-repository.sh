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
