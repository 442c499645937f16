# Run the hook that existed before. A tool that keeps our hook and was itself kept by ours would call it without end.
kept=$(CDPATH='' cd -P -- "${0%/*}" && pwd)/@HOOK@.before-gitmem
[ -x "$kept" ] && [ "${GITMEM_KEPT_HOOK-}" != "$kept" ] || exit 0
GITMEM_KEPT_HOOK=$kept
export GITMEM_KEPT_HOOK
exec "$kept" "$@"
