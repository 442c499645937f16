"""The rules of the record models as plain literals. Written by `tools/compile_table.py`: don't edit.

A field's form is (form, may be null, …):
("flag", null) · ("object", null) · ("choice", null, values, values when written) · ("list", null, form of an entry) ·
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
    'node': 'gitmem.records.node:Node',
    'patch': 'gitmem.records.patch:Patch',
    'relation': 'gitmem.records.relation:Relation',
    'access': 'gitmem.records.access:Access',
}
STREAMS: dict[str, str] = {
    'signal': 'signals',
    'receipt': 'receipts',
    'session': 'sessions',
    'name': 'names',
    'node': 'memory',
    'patch': 'memory',
    'relation': 'memory',
    'access': 'memory',
}
FIRST_OF: dict[str, dict[str, str]] = {
    'signal': {
        'target_agent': 'recipients',
    },
    'receipt': {},
    'session': {},
    'name': {},
    'node': {},
    'patch': {},
    'relation': {},
    'access': {},
}
REQUIRED: dict[str, tuple[str, ...]] = {
    'signal': ('signal_id', 'sender_identity', 'message'),
    'receipt': ('signal_id', 'reader_identity', 'answers_digest'),
    'session': ('session_id', 'event', 'display_name', 'clone_id'),
    'name': ('name', 'event'),
    'node': ('id', 'type', 'lifecycle', 'content', 'sender_identity'),
    'patch': ('id', 'node_ids', 'sender_identity'),
    'relation': ('id', 'from_id', 'to_id', 'type', 'sender_identity'),
    'access': ('id', 'node_ids', 'reader_identity'),
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
    'node': {
        'schema_version': 'A2A.V1',
    },
    'patch': {
        'schema_version': 'A2A.V1',
    },
    'relation': {
        'schema_version': 'A2A.V1',
    },
    'access': {
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
    'node': {
        'schema_version': ('choice', False, ('A2A.V1',), ()),
        'id': ('word', False, 8, 36, ('mem-', 4, '0123456789abcdefghijklmnopqrstuvwxyz'), ()),
        'type': ('choice', False, ('session', 'discovery', 'checkpoint', 'note', 'summary'), ()),
        'lifecycle': ('choice', False, ('ephemeral', 'session', 'wu', 'project'), ()),
        'content': ('text', False, 1, 262144, '', (65536, '', False, ())),
        'priority': ('choice', True, ('P0', 'P1', 'P2', 'P3'), ()),
        'tags': ('list', False, ('line', False, 1, 100, ',', (0, '', True, ()))),
        'wu_id': ('form', True, 0, 64, ('', (('ABCDEFGHIJKLMNOPQRSTUVWXYZ', 1, 1), ('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', 0, 262144), ('-', 1, 1), ('0123456789', 1, 262144))), ()),
        'session_id': ('line', True, 1, 256, ' ,', ()),
        'lane': ('line', True, 1, 200, '', ()),
        'paths': ('list', False, ('line', False, 1, 4096, '', ())),
        'head': ('word', True, 40, 64, ('', 0, '0123456789abcdef'), ()),
        'branch': ('line', True, 1, 1024, '', ()),
        'sensitive': ('flag', False),
        'closed': ('flag', False),
        'archived': ('flag', False),
        'deleted': ('flag', False),
        'reason': ('line', True, 1, 1024, '', ()),
        'summarized_into': ('word', True, 8, 36, ('mem-', 4, '0123456789abcdefghijklmnopqrstuvwxyz'), ()),
        'updated_at': ('form', True, 0, 262144, ('', (('0123456789', 4, 4), ('-', 1, 1), ('0123456789', 2, 2), ('-', 1, 1), ('0123456789', 2, 2), ('T', 1, 1), ('0123456789', 2, 2), (':', 1, 1), ('0123456789', 2, 2), (':', 1, 1), ('0123456789', 2, 2), ('.', 1, 1), ('0123456789', 6, 6), ('Z', 1, 1))), ()),
        'metadata': ('object', False),
        'sender_identity': ('line', False, 1, 256, ' ,', ()),
        'sender_session': ('line', True, 1, 256, ' ,', ()),
        'sender_name': ('line', True, 1, 1024, '', ()),
    },
    'patch': {
        'schema_version': ('choice', False, ('A2A.V1',), ()),
        'id': ('word', False, 10, 38, ('patch-', 6, '0123456789abcdefghijklmnopqrstuvwxyz'), ()),
        'node_ids': ('list', False, ('word', False, 8, 36, ('mem-', 4, '0123456789abcdefghijklmnopqrstuvwxyz'), ())),
        'after': ('list', False, ('word', False, 10, 38, ('patch-', 6, '0123456789abcdefghijklmnopqrstuvwxyz'), ())),
        'clear': ('list', False, ('choice', False, ('priority', 'tags', 'wu_id', 'session_id', 'lane', 'paths', 'sensitive', 'closed', 'archived', 'deleted', 'reason', 'summarized_into', 'metadata'), ())),
        'type': ('choice', True, ('session', 'discovery', 'checkpoint', 'note', 'summary'), ()),
        'lifecycle': ('choice', True, ('ephemeral', 'session', 'wu', 'project'), ()),
        'content': ('text', True, 1, 262144, '', (65536, '', False, ())),
        'priority': ('choice', True, ('P0', 'P1', 'P2', 'P3'), ()),
        'tags': ('list', False, ('line', False, 1, 100, ',', (0, '', True, ()))),
        'wu_id': ('form', True, 0, 64, ('', (('ABCDEFGHIJKLMNOPQRSTUVWXYZ', 1, 1), ('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', 0, 262144), ('-', 1, 1), ('0123456789', 1, 262144))), ()),
        'session_id': ('line', True, 1, 256, ' ,', ()),
        'lane': ('line', True, 1, 200, '', ()),
        'paths': ('list', False, ('line', False, 1, 4096, '', ())),
        'head': ('word', True, 40, 64, ('', 0, '0123456789abcdef'), ()),
        'branch': ('line', True, 1, 1024, '', ()),
        'sensitive': ('flag', False),
        'closed': ('flag', False),
        'archived': ('flag', False),
        'deleted': ('flag', False),
        'reason': ('line', True, 1, 1024, '', ()),
        'summarized_into': ('word', True, 8, 36, ('mem-', 4, '0123456789abcdefghijklmnopqrstuvwxyz'), ()),
        'metadata': ('object', False),
        'sender_identity': ('line', False, 1, 256, ' ,', ()),
        'sender_session': ('line', True, 1, 256, ' ,', ()),
        'sender_name': ('line', True, 1, 1024, '', ()),
    },
    'relation': {
        'schema_version': ('choice', False, ('A2A.V1',), ()),
        'id': ('word', False, 8, 36, ('rel-', 4, '0123456789abcdefghijklmnopqrstuvwxyz'), ()),
        'from_id': ('word', False, 8, 36, ('mem-', 4, '0123456789abcdefghijklmnopqrstuvwxyz'), ()),
        'to_id': ('word', False, 8, 36, ('mem-', 4, '0123456789abcdefghijklmnopqrstuvwxyz'), ()),
        'type': ('choice', False, ('blocks', 'parent_child', 'related', 'discovered_from'), ()),
        'removed': ('flag', False),
        'after': ('list', False, ('word', False, 8, 36, ('rel-', 4, '0123456789abcdefghijklmnopqrstuvwxyz'), ())),
        'metadata': ('object', False),
        'sender_identity': ('line', False, 1, 256, ' ,', ()),
        'sender_session': ('line', True, 1, 256, ' ,', ()),
        'sender_name': ('line', True, 1, 1024, '', ()),
    },
    'access': {
        'schema_version': ('choice', False, ('A2A.V1',), ()),
        'id': ('word', False, 11, 39, ('access-', 7, '0123456789abcdefghijklmnopqrstuvwxyz'), ()),
        'node_ids': ('list', False, ('word', False, 8, 36, ('mem-', 4, '0123456789abcdefghijklmnopqrstuvwxyz'), ())),
        'reader_identity': ('line', False, 1, 256, ' ,', ()),
        'reader_session': ('line', True, 1, 256, ' ,', ()),
    },
}
