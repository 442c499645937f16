"""The rules of the record models as plain literals. Written by `tools/compile_table.py`: don't edit.

A field's form is (form, may be null, …):
("flag", null) · ("choice", null, values, values when written) · ("list", null, form of an entry) ·
("line", null, least, most, refused characters, also): printable text ·
("word", null, least, most, (start, its length, characters of the rest), also) ·
("form", null, least, most, (start, runs of (characters, least, most)), also) · ("text", null, least, most, "", also);
also = (most bytes, refused prefix, no white space at the ends, values when written).
"""

# One field, one line:
# fmt: off
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MODELS: dict[str, str] = {
    'signal': 'gitmem.records.signal:Signal',
    'receipt': 'gitmem.records.receipt:Receipt',
    'session': 'gitmem.records.session:Session',
    'name': 'gitmem.records.name:Name',
}
STREAMS: dict[str, str] = {
    'signal': 'signals',
    'receipt': 'receipts',
    'session': 'sessions',
    'name': 'names',
}
FIRST_OF: dict[str, dict[str, str]] = {
    'signal': {
        'target_agent': 'recipients',
    },
    'receipt': {},
    'session': {},
    'name': {},
}
REQUIRED: dict[str, tuple[str, ...]] = {
    'signal': ('signal_id', 'sender_identity', 'message'),
    'receipt': ('signal_id', 'reader_identity', 'answers_digest'),
    'session': ('session_id', 'event', 'display_name', 'clone_id'),
    'name': ('name', 'event'),
}
FILLED: dict[str, dict[str, Any]] = {
    'signal': {
        'schema_version': 'A2A.V1',
        'recipients': (),
        'intent': 'INFO',
        'interrupt_class': 'advisory',
        'origin': 'local',
    },
    'receipt': {
        'schema_version': 'A2A.V1',
        'delivery_state': 'delivered',
    },
    'session': {
        'schema_version': 'A2A.V1',
    },
    'name': {
        'schema_version': 'A2A.V1',
    },
}
FIELDS: dict[str, dict[str, tuple[Any, ...]]] = {
    'signal': {
        'schema_version': ('choice', False, ('A2A.V1',), ()),
        'signal_id': ('word', False, 8, 36, ('sig-', 4, '0123456789abcdefghijklmnopqrstuvwxyz'), ()),
        'sender_identity': ('line', False, 1, 256, ' ,', ()),
        'sender_session': ('line', True, 1, 256, ' ,', ()),
        'sender_name': ('line', True, 1, 1024, '', ()),
        'sender_headline': ('line', True, 1, 1024, '', ()),
        'recipients': ('list', False, ('line', False, 1, 256, ' ,', ())),
        'target_agent': ('line', True, 1, 256, ' ,', ()),
        'requested_to': ('list', False, ('line', False, 1, 1024, '', ())),
        'resolved_by': ('list', False, ('line', False, 1, 1024, '', (0, '', False, ('exact', 'folded', 'alias', 'prefix', 'fuzzy')))),
        'workspace_id': ('line', True, 1, 200, '', ()),
        'thread_id': ('form', True, 0, 262144, ('', (('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', 1, 1), ('-.0123456789:ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz', 0, 127))), ()),
        'reply_to': ('word', True, 8, 36, ('sig-', 4, '0123456789abcdefghijklmnopqrstuvwxyz'), ()),
        'after': ('list', False, ('word', False, 8, 36, ('sig-', 4, '0123456789abcdefghijklmnopqrstuvwxyz'), ())),
        'answers_digest': ('word', True, 64, 64, ('', 0, '0123456789abcdef'), ()),
        'intent': ('choice', False, ('INFO', 'PROPOSE', 'COUNTER', 'AGREE', 'REJECT'), ()),
        'interrupt_class': ('line', False, 1, 200, '', (0, '', False, ('priority', 'advisory'))),
        'requires_ack': ('flag', False),
        'message': ('text', False, 1, 262144, '', (65536, '', False, ())),
        'idempotency_key': ('line', True, 1, 1024, '', ()),
        'origin': ('line', False, 1, 200, '', ()),
        'wu_id': ('form', True, 0, 64, ('', (('ABCDEFGHIJKLMNOPQRSTUVWXYZ', 1, 1), ('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', 0, 262144), ('-', 1, 1), ('0123456789', 1, 262144))), ()),
        'initiative_id': ('line', True, 1, 200, '', ()),
        'lane': ('line', True, 1, 200, '', ()),
        'sender_role': ('line', True, 1, 200, '', ()),
        'target_role': ('line', True, 1, 200, '', ()),
        'delegation_id': ('line', True, 1, 200, '', ()),
        'artifact_path': ('line', True, 1, 4096, '', ()),
    },
    'receipt': {
        'schema_version': ('choice', False, ('A2A.V1',), ()),
        'signal_id': ('word', False, 8, 36, ('sig-', 4, '0123456789abcdefghijklmnopqrstuvwxyz'), ()),
        'reader_identity': ('line', False, 1, 256, ' ,', ()),
        'delivery_state': ('choice', False, ('delivered', 'acked', 'rejected'), ('delivered',)),
        'answers_digest': ('word', False, 64, 64, ('', 0, '0123456789abcdef'), ()),
        'idempotency_key': ('line', True, 1, 1024, '', ()),
    },
    'session': {
        'schema_version': ('choice', False, ('A2A.V1',), ()),
        'session_id': ('word', False, 9, 37, ('sess-', 5, '0123456789abcdefghijklmnopqrstuvwxyz'), ()),
        'event': ('choice', False, ('start', 'change', 'end'), ()),
        'agent_identity': ('form', True, 0, 256, ('', (('!"#$%&\'()*+-./0123456789;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~', 1, 262144), (':', 1, 1), ('!"#$%&\'()*+-./0123456789;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~', 1, 262144), (':', 1, 1), ('!"#$%&\'()*+-./0123456789;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~', 1, 262144))), (0, 'human:', False, ())),
        'display_name': ('line', False, 1, 64, ',', (0, '', True, ())),
        'clone_id': ('line', False, 1, 200, '', ()),
        'worktree': ('line', True, 1, 4096, '', ()),
        'wu_id': ('form', True, 0, 64, ('', (('ABCDEFGHIJKLMNOPQRSTUVWXYZ', 1, 1), ('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', 0, 262144), ('-', 1, 1), ('0123456789', 1, 262144))), ()),
        'initiative_id': ('line', True, 1, 200, '', ()),
        'lane': ('line', True, 1, 200, '', ()),
        'client': ('line', True, 1, 200, '', ()),
        'workspace_id': ('line', True, 1, 200, '', ()),
        'harness_session': ('line', True, 1, 256, ' ,', ()),
    },
    'name': {
        'schema_version': ('choice', False, ('A2A.V1',), ()),
        'name': ('line', False, 1, 64, ',', (0, '', True, ())),
        'event': ('choice', False, ('add', 'remove'), ()),
        'sender_identity': ('line', True, 1, 256, ' ,', ()),
        'sender_session': ('line', True, 1, 256, ' ,', ()),
        'sender_name': ('line', True, 1, 1024, '', ()),
    },
}
