"""The commands as text. Written by `tools/compile_parser.py`: don't edit.

A command is its function below `commands`; its arguments: `name`; `name?` may be missing; `name*` takes all that is
left, `name+` at least one; and its options: `--flag`, `--option=` with a value, `--option=*` repeated. The parameter
of `--some-option` is `some_option`, unless another stands behind a colon.
"""

# fmt: off
from __future__ import annotations

COMMON = '-C=:directory --as=:as_ --json --commit'
COMMANDS = {
    'session start': 'session:start --agent-identity= --name= --wu= --initiative= --lane= --client= --workspace= --allow-secret',
    'session set': 'session:change --agent-identity= --name= --wu= --initiative= --lane= --client= --workspace= --allow-secret',
    'session note': 'session:note text --allow-secret',
    'session end': 'session:end',
    'session list': 'session:listing --all',
    'whoami': 'session:whoami',
    'roster': 'session:roster query? --all',
    'signal': 'signal:signal message --to=* --broadcast --wu= --initiative= --lane= --intent= --requires-ack --reply-to= --thread= --interrupt= --artifact= --idempotency-key= --allow-unseen --fuzzy --allow-secret --insist --sync -q:quiet --quiet',
    'reply': 'signal:reply id message --agree --reject --counter --to=* --requires-ack --idempotency-key= --allow-secret --insist --sync -q:quiet --quiet',
    'inbox': 'inbox:inbox --for=:for_ --wu= --lane= --thread= --intent=* --from=:from_ --since= --all --no-mark --count --limit= --max-bytes=',
    'watch': 'watch:watch --session= --sync= --exec=:exec_ --exec-limit= --write=',
    'thread': 'history:thread id',
    'show': 'history:show id',
    'converged': 'history:converged id? --thread= --wait= --strict --sync',
    'gate': 'gate:gate --wu= --initiative= --allow-unread-signals --reason= --pre-push --allow-secret',
    'mem create': 'mem.nodes:create content? --type= --lifecycle= --wu= --session= --lane= --priority= --tag=* --tags=*:tag --path=* --meta=* --sensitive --discovered-from= --jsonl --allow-secret -q:quiet --quiet',
    'mem update': 'mem.nodes:update ids+ --content= --status= --type= --lifecycle= --wu= --session= --lane= --priority= --tag=* --tags=*:tag --path=* --meta=* --sensitive --reason= --verified --clear=* --allow-secret',
    'mem relate': 'mem.nodes:relate from_id type to_id --remove',
    'mem checkpoint': 'mem.nodes:checkpoint note? --progress= --next-steps= --trigger= --wu= --session= --no-diff-stat --allow-secret -q:quiet --quiet',
    'mem show': 'mem.listing:show id --half-life=:half_life_',
    'mem list': 'mem.listing:listing --wu= --type= --lifecycle= --tag=* --tags=*:tag --path= --session= --lane= --priority= --status= --stale --since= --limit= --reverse --include-archived',
    'mem ready': 'mem.listing:ready --wu= --include-archived',
    'mem search': 'mem.listing:search query+ --wu= --type= --lifecycle= --tag=* --tags=*:tag --path= --limit= --include-archived --half-life=:half_life_ --by-decay --track-access',
    'mem context': 'mem.context:context --wu= --lane= --max-size= --by-decay --half-life=:half_life_ --no-roster --track-access --as-of=',
    'mem recover': 'mem.context:recover --session= --wu= --lane= --max-size= --no-roster',
    'mem profile': 'mem.context:profile --limit= --tag=',
    'mem promote': 'mem.knowledge:promote id? --node= --wu= --tag= --dry-run --allow-secret',
    'mem summarize': 'mem.knowledge:summarize --wu= --text= --only=* --dry-run --allow-secret',
    'mem triage': 'mem.knowledge:triage action? ids* --wu= --tag= --limit= --lane= --title= --reason=',
    'mem index': 'mem.knowledge:index --source=* --dry-run',
    'mem archive': 'mem.upkeep:archive --threshold= --half-life=:half_life_ --dry-run',
    'mem cleanup': 'mem.upkeep:cleanup --ttl= --session= --decay --decay-threshold=:threshold --half-life=:half_life_ --dry-run',
    'mem delete': 'mem.upkeep:delete ids* --tag=* --tags=*:tag --older-than= --wu= --reason= --dry-run',
    'mem export': 'mem.listing:export --format= --wu= --type= --lifecycle= --tag=* --tags=*:tag --include-archived',
    'mem access': 'mem.upkeep:access ids+ --record --half-life=:half_life_',
    'log': 'history:log -n= --wu= --thread= --from=:from_ --receipts',
    'sync': 'sync:sync remotes* --all --publish --allow-foreign --allow-large --repair --yes --timeout= --auto',
    'hooks install': 'hooks:install --client=* --scope= --wake --git=',
    'hooks uninstall': 'hooks:uninstall --client=* --scope= --git=',
    'hooks status': 'hooks:status',
    'hooks test': 'hooks:test --client=*',
    'agents-md': 'agents_md:agents_md file? --write --remove --check',
    'mcp': 'mcp:mcp',
    'import lumenflow': 'importing:lumenflow folder --dry-run --allow-secret',
    'init': 'init:init --publish= --autosync= --uninstall --no-publish --allow-foreign --timeout=',
    'doctor': 'doctor:doctor --fix',
    'name add': 'session:add_names names+ --allow-secret',
    'name remove': 'session:remove_names names+ --allow-secret',
    'name list': 'session:list_names',
    'schema': 'schema:schema kind?',
    'completion': 'completion:completion shell',
    'demo': 'demo:demo --keep',
    'upkeep': 'upkeep:upkeep',
    'commit-waiting': 'upkeep:commit_waiting',
}
