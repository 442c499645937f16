// A bus of A2A.V1 in memory, served over HTTP on 127.0.0.1: docs/spec-core.md as a program in another language.
//
// Usage: node bus.mjs [PORT]. It prints its address, also with port 0 (any free one). The sections are those of the page.

import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";

const VERSION = "A2A.V1";
const INTENTS = ["INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT"];
const CLASSES = ["priority", "advisory"];
const AS_GIVEN = ["idempotency_key", "wu_id", "initiative_id", "lane", "target_role", "delegation_id", "artifact_path"];
// Fields that do not belong to the content of a keyed signal: they differ where two places record it.
const MAY_DIFFER = ["sender_session", "after", "answers_digest", "interrupt_class", "sender_role"];
const RANKS = { AGREE: 0, PROPOSAL: 1, REJECT: 2 };
const STATES = { AGREE: "acked", REJECT: "rejected" };
const MESSAGE_BYTES_MAX = 65536;
const BODY_BYTES_MAX = 1 << 20;

/** The bus does not accept a request, and has written nothing: status 409. */
class Refused extends Error {}

/** The request is not one of the page: status 400. */
class BadRequest extends Error {}

// 1. Records

/** Return a value as JSON whose objects have sorted fields: equal values have equal texts. */
function textOf(value) {
  const sorted = (_, each) =>
    each && typeof each === "object" && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each;
  return JSON.stringify(value, sorted);
}

const hash = (text) => createHash("sha256").update(text).digest("hex");
const newId = () => randomBytes(10).toString("hex");
const keyedId = (sender, key) => hash(textOf([sender, key])).slice(0, 24);
const isEmpty = (value) => !value || (Array.isArray(value) && value.length === 0);

/** Return the digest of a signal's content. */
function digestOf(signal) {
  const key = signal.idempotency_key;
  const isKeyed = key && signal.signal_id === `sig-${keyedId(signal.sender_identity, key)}`;
  const without = ["created_at", ...(isKeyed ? MAY_DIFFER : [])];
  const fields = Object.entries(signal).filter(([name, value]) => !without.includes(name) && !isEmpty(value));
  return hash(textOf(Object.fromEntries(fields)));
}

/** Compare by keys, which are lists of texts. */
const by = (key) => (a, b) => {
  const [one, other] = [key(a), key(b)];
  const at = one.findIndex((each, number) => each !== other[number]);
  return at < 0 ? 0 : one[at] < other[at] ? -1 : 1;
};
const byAge = by((signal) => [signal.created_at, textOf(signal)]);
const byReading = by((receipt) => [receipt.read_at, textOf(receipt)]);

const threadOf = (signal) => signal.thread_id || signal.signal_id;
const namedBy = (signal) => [...(signal.after ?? []), ...(signal.reply_to ? [signal.reply_to] : [])];
const isBy = (signal, reader) => signal.sender_identity === reader || signal.sender_session === reader;
const asks = (signal) => signal.intent === "PROPOSE" || signal.intent === "COUNTER";
const isAnswer = (signal) => ["AGREE", "REJECT", "COUNTER"].includes(signal.intent);
const unique = (values) => [...new Set(values)];

/** All records of a place, by their texts. They never change. */
class Records {
  signals = new Map();
  receipts = new Map();
  sessions = new Map();
  ends = new Map();

  /** Add a record to one of the four. */
  add(kind, record) {
    this[kind].set(textOf(record), record);
  }

  /** Add all records of another place. */
  addAll(other) {
    for (const kind of Object.keys(this)) for (const [text, record] of other[kind]) this[kind].set(text, record);
  }
}

// 5. Agreement

/** Return the ids that can be reached from an id over edges; the id itself only over a cycle. */
function reach(id, edges) {
  const found = new Set();
  const todo = [id];
  while (todo.length) {
    for (const to of edges.get(todo.pop()) ?? []) {
      if (!found.has(to)) {
        found.add(to);
        todo.push(to);
      }
    }
  }
  return found;
}

/** Return those of some signals that are earlier than no other of them, through signals. */
function last(some, through) {
  const ids = new Set(through.map((each) => each.signal_id));
  const named = new Map(through.map((each) => [each.signal_id, namedBy(each).filter((id) => ids.has(id))]));
  const edges = new Map();
  for (const [id, names] of named) edges.set(id, names.filter((to) => to !== id && !reach(to, named).has(id)));
  const earlier = new Set(some.flatMap((each) => [...reach(each.signal_id, edges)]));
  return some.filter((each) => !earlier.has(each.signal_id));
}

/** Return the oldest signal that answers none of the thread. */
function rootOf(signals) {
  const every = [...signals.values()].sort(byAge);
  return every.find((each) => !signals.has(each.reply_to)) ?? every[0];
}

/** What a thread says now: its parties, its proposals, and where each party stands. */
class Agreement {
  /**
   * @param signals The signals of the thread by id; those that do not count are INFO.
   * @param namesOf Function from a list of addresses to all their names.
   * @param ambiguous The ids of the thread that have several contents.
   */
  constructor(signals, namesOf, ambiguous) {
    this.root = rootOf(signals);
    this.ambiguous = ambiguous;
    this.signals = this.withoutVoid(signals, namesOf);
    const every = [...this.signals.values()];
    const others = unique(this.root.recipients).filter((each) => !isBy(this.root, each));
    this.parties = others.length ? unique([this.root.sender_identity, ...others]) : [];
    const proposals = every.filter((each) => this.isRoot(each) || (asks(each) && this.isOfParty(each)));
    this.proposals = new Map(proposals.map((each) => [each.signal_id, each]));
    this.positions = new Map(this.parties.map((party) => [party, this.positionOf(party)]));
    this.agreedOn = this.findAgreed();
    this.inForce = this.agreedOn ? [this.agreedOn] : this.latestProposals();
  }

  isRoot(signal) {
    return signal.signal_id === this.root.signal_id;
  }

  isOfParty(signal) {
    return this.parties.some((party) => isBy(signal, party));
  }

  /** Return whether an answer to this signal, which is no proposal, may be on a proposal. */
  mayLead(signal) {
    return this.isOfParty(signal) || !this.parties.length;
  }

  ofParties(signals) {
    return signals.filter((each) => this.isOfParty(each));
  }

  /** Rule 1: nobody decides on a proposal of its own in another's name. */
  withoutVoid(signals, namesOf) {
    const asking = [...signals.values()].filter((each) => this.isRoot(each) || asks(each));
    const own = (each) => namesOf([each.sender_identity, each.sender_session]);
    const recorders = new Set(asking.flatMap((each) => namesOf([each.via])));
    const proposers = new Set([...recorders, ...asking.flatMap(own)]);
    const isVoid = (each) =>
      each.via ? namesOf([each.via]).some((name) => proposers.has(name)) : own(each).some((name) => recorders.has(name));
    const change = (each) => (!this.isRoot(each) && isVoid(each) ? { ...each, intent: "INFO" } : each);
    return new Map([...signals].map(([id, each]) => [id, change(each)]));
  }

  /** Return the first proposal from a signal on, through `reply_to`, or null. */
  reached(id) {
    const seen = new Set();
    while (!this.proposals.has(id)) {
      const at = this.signals.get(id);
      if (!at || seen.has(id) || asks(at) || this.ambiguous.includes(id) || !this.mayLead(at)) return null;
      seen.add(id);
      id = at.reply_to || this.root.signal_id;
    }
    return id;
  }

  /** Rule 4: return the proposal that a decision is on, or null. */
  proposalOf(signal) {
    if (this.proposals.has(signal.signal_id)) return signal.signal_id;
    return asks(signal) ? null : this.reached(signal.reply_to || this.root.signal_id);
  }

  rank(signal) {
    return RANKS[asks(signal) || this.proposals.has(signal.signal_id) ? "PROPOSAL" : signal.intent];
  }

  /** Return a reader's signals that decide something. */
  decisionsOf(reader) {
    return [...this.signals.values()].filter((each) => isBy(each, reader) && (isAnswer(each) || this.proposals.has(each.signal_id)));
  }

  /** Return the strongest of some decisions of a reader, of those that none of its own signals follows. */
  strongest(reader, decisions) {
    const left = last(decisions, [...this.signals.values()].filter((each) => isBy(each, reader)));
    const most = Math.max(-1, ...left.map((each) => this.rank(each)));
    return left.filter((each) => this.rank(each) === most);
  }

  /** Rule 6: return how a party stands, and the proposals that its position is on. */
  positionOf(party) {
    const found = this.strongest(party, this.decisionsOf(party).filter((each) => this.proposalOf(each)));
    const rank = found.length ? this.rank(found[0]) : null;
    const on = unique(found.map((each) => this.proposalOf(each)));
    return { rank, on, agreesTo: rank !== RANKS.REJECT && on.length === 1 ? on[0] : null };
  }

  /** Rule 7: return the proposal that all parties agree to, or null. */
  findAgreed() {
    const decides = (each) => this.proposals.has(each.signal_id) || (isAnswer(each) && this.isOfParty(each));
    if (this.ambiguous.some((id) => decides(this.signals.get(id)))) return null;
    const [first, ...others] = [...this.positions.values()].map((each) => each.agreesTo);
    return first && others.every((each) => each === first) ? first : null;
  }

  /** Rule 8: return the ids of the proposals that no other one follows, without those that were withdrawn. */
  latestProposals() {
    const isWithdrawn = (each) => {
      const writers = [each.sender_identity, each.sender_session].filter(Boolean);
      const last = writers.map((writer) => this.lastOn(writer, each.signal_id)).filter(Boolean);
      return last.some((decision) => this.rank(decision) === RANKS.REJECT);
    };
    const left = [...this.proposals.values()].filter((each) => !isWithdrawn(each));
    return last(left, this.ofParties([...this.signals.values()])).map((each) => each.signal_id);
  }

  /** Rule 9: return a reader's last decision on a signal, or undefined. */
  lastOn(reader, id) {
    const isOn = (each) =>
      each.reply_to === id || this.proposalOf(each) === id || (each.reply_to && this.reached(each.reply_to) === id);
    const found = this.strongest(reader, this.decisionsOf(reader).filter(isOn));
    return found.sort(by((each) => [each.signal_id])).pop();
  }

  /** Rule 10: return the answer about the thread, or about the proposal that is asked for. */
  answer(asked) {
    const found = {
      converged: this.agreedOn !== null && (!this.proposals.has(asked) || asked === this.agreedOn),
      agreed_on: this.agreedOn, in_force: this.inForce, ambiguous: this.ambiguous,
      agreed: [], rejected: [], countered: [], pending: [],
    };
    const { sender_identity: proposer, signal_id: root } = this.root;
    for (const [party, { rank, on, agreesTo }] of this.inForce.length ? this.positions : []) {
      const isOnlyTheRoot = agreesTo === root && this.inForce.every((id) => id === root);
      if (party === proposer && isOnlyTheRoot) continue;
      if (rank === RANKS.REJECT && on.some((id) => this.inForce.includes(id))) found.rejected.push(party);
      else if (!this.inForce.includes(agreesTo)) found.pending.push(party);
      else {
        found.agreed.push(party);
        if (rank === RANKS.PROPOSAL && agreesTo !== root && !this.agreedOn) found.countered.push(party);
      }
    }
    return found;
  }
}

/** One place of a bus. Its public methods, which `OPERATIONS` names, are the operations of the page. */
class Place {
  records = new Records();
  last = 0;

  constructor(hub) {
    this.hub = hub;
  }

  /** Return the time, later than every earlier one of this place. */
  now() {
    this.last = Math.max(Date.now() * 1000, this.last + 1);
    const micros = String(this.last % 1000).padStart(3, "0");
    return new Date(Math.floor(this.last / 1000)).toISOString().replace("Z", `${micros}Z`);
  }

  // 2. Sessions

  start({ identity, name, workspace }) {
    const id = `sess-${newId()}`;
    this.records.add("sessions", { id, identity: identity || null, name: name || id, workspace: workspace || null });
    return { session_id: id, display_name: name || id, agent_identity: identity || null };
  }

  end({ session }) {
    this.records.add("ends", { id: this.session(session).id });
    return null;
  }

  find(id) {
    return [...this.records.sessions.values()].find((each) => each.id === id);
  }

  session(id) {
    const found = this.find(id);
    if (!found) throw new Refused(`Unknown session: ${id}.`);
    return { ...found, reader: found.identity ?? id, own: unique([found.identity ?? id, id]) };
  }

  /** Return the addresses, and the identities of those that are sessions. */
  namesOf(addresses) {
    return unique(addresses.filter(Boolean).flatMap((each) => [each, this.find(each)?.identity ?? each]));
  }

  /** Return the reader that a text names. */
  resolve(text, allowUnseen) {
    const sessions = [...this.records.sessions.values()];
    const ended = new Set([...this.records.ends.values()].map((each) => each.id));
    const isSeen = sessions.some((each) => each.identity === text) || [...this.records.signals.values()].some((each) => each.sender_identity === text);
    const named = this.find(text) ?? (isSeen ? null : sessions.find((each) => each.name === text && !ended.has(each.id)));
    if (named) return named.identity ?? named.id;
    if (isSeen || (allowUnseen && text.split(":").length === 3)) return text;
    throw new Refused(`Unknown recipient: ${text}.`);
  }

  // 1. Records, as the rest of the page sees them

  /** Return the signals by id, oldest first; the oldest record of an id stands for all. */
  signals() {
    const found = new Map();
    for (const each of [...this.records.signals.values()].sort(byAge)) {
      if (each.schema_version === VERSION && !found.has(each.signal_id)) found.set(each.signal_id, each);
    }
    return found;
  }

  /** Return the digests of all contents of an id. */
  contents(id) {
    const records = [...this.records.signals.values()];
    return unique(records.filter((each) => each.signal_id === id && each.schema_version === VERSION).map(digestOf));
  }

  /** Return the receipts that count for a signal, by the time of reading. */
  receiptsOf(id) {
    const contents = this.contents(id);
    const counts = (each) => !each.answers_digest || contents.includes(each.answers_digest);
    const found = [...this.records.receipts.values()].filter((each) => each.signal_id === id && counts(each));
    return found.sort(byReading);
  }

  counts(signal) {
    if (!signal.reply_to) return true;
    return signal.answers_digest ? this.contents(signal.reply_to).includes(signal.answers_digest) : signal.origin !== "local";
  }

  /** Return the signals of a thread by id. */
  thread(thread) {
    const found = [...this.signals()].filter(([, each]) => threadOf(each) === thread);
    return new Map(found.map(([id, each]) => [id, this.counts(each) ? each : { ...each, intent: "INFO" }]));
  }

  agreement(signals) {
    const ambiguous = [...signals.keys()].filter((id) => this.contents(id).length > 1);
    return new Agreement(signals, (addresses) => this.namesOf(addresses), ambiguous);
  }

  // 3. Sending

  send({ session, message, ...options }) {
    const writer = this.session(session);
    if (message === "" || Buffer.byteLength(message) > MESSAGE_BYTES_MAX) throw new Refused("A message has 1 to 65536 bytes.");
    const intent = options.intent ?? "INFO";
    if (!INTENTS.includes(intent)) throw new Refused(`Invalid intent: ${intent}.`);
    const answered = this.answered(options);
    const thread = options.thread_id ?? (answered && threadOf(answered));
    const signals = thread ? this.thread(thread) : new Map();
    const agreement = signals.size ? this.agreement(signals) : null;
    const recipients = this.recipients(writer, { ...options, intent }, answered, agreement);
    const parent = answered ?? agreement?.root;
    const key = options.idempotency_key;
    const id = key ? keyedId(writer.reader, key) : newId();
    const usual = recipients.length ? "priority" : "advisory";
    const signal = {
      schema_version: VERSION, signal_id: `sig-${id}`, created_at: this.now(), sender_identity: writer.reader, sender_session: session,
      recipients, target_agent: recipients[0] ?? null, workspace_id: writer.workspace,
      thread_id: thread ?? (recipients.length ? `thread-${id}` : null), reply_to: parent?.signal_id ?? null,
      after: agreement ? this.after(writer, [...signals.values()], agreement, parent) : [],
      answers_digest: parent ? digestOf(this.signals().get(parent.signal_id)) : null,
      intent, interrupt_class: options.interrupt_class ?? usual, requires_ack: options.requires_ack ?? false, message, origin: "local",
    };
    for (const name of AS_GIVEN) signal[name] = options[name] ?? null;
    const before = this.signals().get(signal.signal_id);
    if (before && digestOf(before) !== digestOf(signal)) throw new Refused(`The key ${key} was used for other content.`);
    if (!before) this.records.add("signals", signal);
    return before ?? signal;
  }

  /** Check the options that have a few valid values, and return the signal that is answered, if any. */
  answered(options) {
    if (!CLASSES.includes(options.interrupt_class ?? CLASSES[0])) throw new Refused(`Invalid class: ${options.interrupt_class}.`);
    for (const name of ["reply_to", "thread_id", "idempotency_key"]) if (options[name] === "") throw new Refused(`Empty ${name}.`);
    const found = options.reply_to && this.signals().get(options.reply_to);
    if (options.reply_to && !found) throw new Refused(`Unknown signal: ${options.reply_to}.`);
    return found;
  }

  /** Return the recipients of a new signal; none for a broadcast. */
  recipients(writer, options, answered, agreement) {
    if (options.broadcast) return [];
    const named = (options.to ?? []).flatMap((each) => each.split(","));
    const found = unique(named.map((each) => this.resolve(each, options.allow_unseen ?? false)));
    const without = (readers) => unique(readers).filter((each) => !writer.own.includes(each));
    const isOfParty = agreement?.parties.some((each) => writer.own.includes(each));
    const parties = asks(options) && isOfParty ? without(agreement.parties) : [];
    if (found.length || parties.length) return unique([...found, ...parties]);
    const root = agreement?.root;
    let members = [];
    if (answered) members = writer.own.some((each) => isBy(answered, each)) ? answered.recipients : [answered.sender_identity];
    else if (root) members = [root.sender_identity, ...root.recipients];
    else if (options.thread_id) throw new Refused(`Unknown thread: ${options.thread_id}.`);
    else return [];
    const others = without(members);
    return others.length ? others : unique(members);
  }

  /** Return the latest signals of a thread that its writer knows. */
  after(writer, signals, agreement, parent) {
    const isOwn = (each) => writer.own.some((own) => isBy(each, own));
    const known = signals.filter((each) => isOwn(each) || each.signal_id === parent.signal_id || this.hasRead(writer.own, each.signal_id));
    const heads = (some) => {
      const named = new Set(some.flatMap(namedBy));
      return some.map((each) => each.signal_id).filter((id) => !named.has(id));
    };
    return unique([known, agreement.ofParties(known), known.filter(isOwn)].flatMap(heads)).sort();
  }

  // 4. Reading

  hasRead(readers, id) {
    if (this.receiptsOf(id).some((each) => readers.includes(each.reader_identity))) return true;
    const answers = [...this.signals().values()].filter((each) => each.reply_to === id && !each.via && this.counts(each));
    return answers.some((each) => readers.some((reader) => isBy(each, reader)));
  }

  /** Return the unread signals of a session, oldest first. */
  unread({ session, thread, intents = [] }) {
    const { own, workspace } = this.session(session);
    const isOwn = (each) => own.some((reader) => isBy(each, reader));
    const isFor = (each) => (each.recipients.length ? each.recipients.some((reader) => own.includes(reader)) : !isOwn(each));
    const isHere = (each) => !workspace || !each.workspace_id || each.workspace_id === workspace;
    const isAsked = (each) => (!thread || threadOf(each) === thread) && (!intents.length || intents.includes(each.intent));
    const signals = [...this.signals().values()];
    return signals.filter((each) => isFor(each) && isHere(each) && isAsked(each) && !this.hasRead(own, each.signal_id));
  }

  inbox({ session, mark, thread, intents }) {
    const shown = this.unread({ session, thread, intents });
    const { reader } = this.session(session);
    for (const { signal_id } of mark ? shown : []) {
      this.records.add("receipts", { signal_id, reader_identity: reader, read_at: this.now(), delivery_state: "delivered" });
    }
    return shown;
  }

  count({ session }) {
    return this.unread({ session }).length;
  }

  watch({ session }) {
    return this.inbox({ session, mark: true });
  }

  receipts({ signal_id: id }) {
    const signal = this.signals().get(id);
    if (!signal) throw new Refused(`Unknown signal: ${id}.`);
    const agreement = this.agreement(this.thread(threadOf(signal)));
    const found = new Map();
    for (const each of this.receiptsOf(id)) {
      const first = found.get(each.reader_identity) ?? each;
      const { read_at, answers_digest, idempotency_key } = first;
      found.set(each.reader_identity, { ...each, read_at, answers_digest, idempotency_key });
    }
    for (const reader of signal.recipients) {
      const decision = agreement.lastOn(reader, id);
      if (!decision && !this.hasRead([reader], id)) continue;
      const answers = [...this.signals().values()].filter((each) => each.reply_to === id && isBy(each, reader));
      const first = answers[0] ?? decision ?? signal;
      const own = found.get(reader) ?? { signal_id: id, reader_identity: reader, read_at: first.created_at, delivery_state: "delivered" };
      found.set(reader, decision ? { ...own, delivery_state: STATES[decision.intent] ?? "delivered" } : own);
    }
    return [...found.values()];
  }

  converged({ thread }) {
    const asked = this.signals().get(thread);
    const signals = this.thread(asked ? threadOf(asked) : thread);
    if (!signals.size) throw new Refused(`Unknown thread: ${thread}.`);
    return this.agreement(signals).answer(thread);
  }

  // 6. HTTP

  lacks() {
    const why = "This bus has the core alone.";
    return { role: why, delegate: why, handoff: why, claim: why, judge: why };
  }

  take({ record: { kind, ...record } }) {
    if (kind === "receipt") this.records.add("receipts", record);
    else if (kind === "signal") this.records.add("signals", { ...record, recipients: record.recipients ?? [record.target_agent].filter(Boolean) });
    else throw new BadRequest("The kind of a record is signal or receipt.");
    return null;
  }

  exchange() {
    this.hub.addAll(this.records);
    this.records.addAll(this.hub);
    return null;
  }

  close() {
    return null;
  }
}

const TEXT = "string";
// Operation → the types of its fields; those that begin with `?` may be missing or null.
const OPERATIONS = {
  lacks: {}, exchange: {}, close: {}, converged: { thread: TEXT }, receipts: { signal_id: TEXT }, take: { record: "object" },
  start: { identity: "?string", name: "?string", workspace: "?string" }, end: { session: TEXT }, count: { session: TEXT }, watch: { session: TEXT },
  inbox: { session: TEXT, mark: "?boolean", thread: "?string", intents: "?list" },
  send: {
    session: TEXT, message: TEXT, to: "?list", broadcast: "?boolean", allow_unseen: "?boolean", requires_ack: "?boolean", intent: "?string",
    interrupt_class: "?string", reply_to: "?string", thread_id: "?string", ...Object.fromEntries(AS_GIVEN.map((name) => [name, "?string"])),
  },
};

/** Return the fields that an operation has, without null; another type is a bad request. */
function checked(operation, body) {
  const found = {};
  if (typeof body !== "object" || body === null || Array.isArray(body)) throw new BadRequest("The body must be a JSON object.");
  const other = Object.keys(body).find((name) => !Object.hasOwn(OPERATIONS[operation], name));
  if (other) throw new Refused(`Unknown field: ${other}.`);
  for (const [name, type] of Object.entries(OPERATIONS[operation])) {
    const value = body[name] ?? undefined;
    const isTexts = Array.isArray(value) && value.every((each) => typeof each === TEXT);
    const is = value === undefined ? "" : Array.isArray(value) ? (isTexts ? "list" : "another list") : typeof value;
    if (is !== type.replace("?", "") && !(is === "" && type.startsWith("?"))) throw new BadRequest(`${name} must be a ${type.replace("?", "")}.`);
    if (value !== undefined) found[name] = value;
  }
  return found;
}

const buses = new Map(); // name → its hub and its places by number

/** Return the answer to a request. */
function answer(path, text) {
  const [, name, number, operation] = /^\/try\/([0-9a-f]{32})\/([1-9][0-9]?)\/(\w+)$/.exec(path) ?? [];
  if (!Object.hasOwn(OPERATIONS, operation ?? "")) throw new BadRequest("The path must be /try/BUS/PLACE/OPERATION of the page.");
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    throw new BadRequest("The body must be JSON.");
  }
  const fields = checked(operation, body);
  const bus = buses.get(name) ?? { hub: new Records(), places: new Map() };
  const place = bus.places.get(number) ?? new Place(bus.hub);
  buses.set(name, bus);
  bus.places.set(number, place);
  if (operation === "close") buses.delete(name);
  return place[operation](fields);
}

/** Answer a request whose body has arrived. */
function reply(response, path, body) {
  let status = 200;
  let found;
  try {
    found = answer(path, body);
  } catch (error) {
    if (!(error instanceof Refused || error instanceof BadRequest)) console.error(error);
    status = error instanceof Refused ? 409 : error instanceof BadRequest ? 400 : 500;
    found = error.message;
  }
  const text = Buffer.from(JSON.stringify(found));
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": text.length });
  response.end(text);
}

const server = createServer((request, response) => {
  const parts = [];
  let size = 0;
  request.on("data", (part) => {
    size += part.length;
    if (size > BODY_BYTES_MAX) request.destroy();
    else parts.push(part);
  });
  request.on("end", () => {
    if (request.method === "POST") return reply(response, request.url, Buffer.concat(parts).toString("utf8"));
    response.writeHead(405).end();
  });
});
server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/try`));
