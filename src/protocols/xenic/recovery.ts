/**
 * Recovery after a death (§4.2.1; FaRM's, in a simple form). The cluster's membership gives survivors a new configuration; each stops
 * what was under way, and serves nothing until this is done. One of them leads:
 *
 *   SURVEY    everybody says what it has of transactions that may not be over: LOG records, COMMIT records, what it has
 *             executed for others, what it coordinates
 *   decide    each of them, by the rule below
 *   DECIDE    everybody applies its log but for what is aborted; a primary that lacks a commit is given its writes. Then
 *             no row is locked and nothing is pinned, and the node serves again
 *
 * The paper locks the rows of such transactions at the new primary and lets others go on; here all wait until they are settled,
 * which needs no locks.
 *
 * The rule. A transaction is committed if a primary has committed it, if its coordinator says that it is over or that all
 * backups have logged it, or if for each shard that it writes all surviving backups have the record, and somebody has the
 * writes. Otherwise nobody was told that it is committed: it is aborted. "Backup" is meant as of the configuration in
 * which it was logged.
 *
 * A death during recovery begins another one. Decisions that some have carried out by then are remembered (`decided`) and
 * hold; others are made anew, and nobody has heard of them.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { Reader, Writer } from "../../fabric/wire.ts";
import { MAX_NODES, MAX_PARTITIONS } from "../../runtime/limits.ts";
import { XENIC_DECIDE, XENIC_DECIDED, XENIC_SURVEY, XENIC_SURVEYED } from "../kinds.ts";
import { COMMITTED, Name } from "../names.ts";
import { FOR_EVER } from "./asking.ts";
import type { XenicCoordinator } from "./coordinator.ts";
import { decodeItem, encodeItem, type Item, rowId, XenicMessage } from "./message.ts";
import type { XenicNic } from "./nic.ts";
import type { Placement } from "./ports.ts";
import { type NicRoutine, start } from "./routine.ts";

/** What one node knows of a transaction. */
export interface Evidence {
  readonly name: Name;
  readonly configurationId: number;
  readonly shards: readonly number[];
  /** Whether it is known to be committed (true) or aborted (false). */
  readonly isCommitted: boolean | undefined;
  /** Shards of which this node has a LOG record. */
  readonly logged: readonly number[];
  /** Writes that this node knows. */
  readonly items: readonly Item[];
}

export interface Survey {
  readonly from: NodeId;
  readonly lows: ReadonlyMap<number, number>;
  readonly evidence: readonly Evidence[];
}

export interface Decision {
  readonly name: Name;
  readonly configurationId: number;
  readonly isCommitted: boolean;
  readonly items: readonly Item[];
}

/** In place of the sequence of a transaction. */
const SURVEYING = -1 - MAX_NODES;
const DECIDING = SURVEYING - 1;

const keyOf = ({ coordinator, sequence }: { coordinator: number; sequence: number }): string =>
  `${coordinator}:${sequence}`;

/** The rule. */
export function decide(
  surveys: readonly Survey[],
  placementOf: (configurationId: number) => Placement,
): Decision[] {
  const survivors = new Set(surveys.map(({ from }) => from));
  const lowOf = (coordinator: number): number =>
    Math.max(0, ...surveys.map(({ lows }) => lows.get(coordinator) ?? 0));
  const known = new Map<string, { from: NodeId; evidence: Evidence }[]>();
  for (const { from, evidence } of surveys) {
    for (const each of evidence) {
      const key = keyOf(each.name);
      const list = known.get(key);
      if (list === undefined) known.set(key, [{ from, evidence: each }]);
      else list.push({ from, evidence: each });
    }
  }
  return [...known.values()].map((all) => {
    const { name } = all[0].evidence;
    const configurationId = Math.max(...all.map(({ evidence }) => evidence.configurationId));
    const shards = [...new Set(all.flatMap(({ evidence }) => evidence.shards))];
    const items = new Map<string, Item>();
    for (const { evidence } of all) for (const item of evidence.items) items.set(rowId(item), item);
    const placement = placementOf(configurationId);
    const isLogged = (shard: number): boolean => {
      const has = (backup: NodeId): boolean =>
        all.some(({ from, evidence }) => from === backup && evidence.logged.includes(shard));
      const isKnown = [...items.values()].some(
        ({ table, key }) => placement.shardOf(table, key) === shard,
      );
      return (
        isKnown && placement.backupsOf(shard).every((each) => !survivors.has(each) || has(each))
      );
    };
    const isOver = name.sequence < lowOf(name.coordinator);
    const told = all.find(({ evidence }) => evidence.isCommitted !== undefined);
    const isCommitted =
      told?.evidence.isCommitted ?? (isOver || (shards.length > 0 && shards.every(isLogged)));
    return { name, configurationId, isCommitted, items: isCommitted ? [...items.values()] : [] };
  });
}

export class Recovery {
  readonly #nic: XenicNic;
  readonly #coordinator: XenicCoordinator;
  readonly #placementOf: (configurationId: number) => Placement;
  /** Decisions of all recoveries that this node has carried out. */
  readonly #decided = new Map<string, boolean>();

  constructor(
    nic: XenicNic,
    coordinator: XenicCoordinator,
    placementOf: (configurationId: number) => Placement,
  ) {
    this.#nic = nic;
    this.#coordinator = coordinator;
    this.#placementOf = placementOf;
  }

  /** Settles everything, with all survivors. */
  lead(survivors: readonly NodeId[], done: () => void): void {
    start(this.#lead(survivors), done);
  }

  /** Whether the message was one of recovery's. */
  receive(from: NodeId, message: XenicMessage): boolean {
    const nic = this.#nic;
    switch (message.kind) {
      case XENIC_SURVEY:
        if (nic.isRecovering) {
          const words = encodeSurvey(this.survey());
          nic.ports.post(from, new XenicMessage(XENIC_SURVEYED, message.name, { words }));
        }
        return true;
      case XENIC_DECIDE:
        if (nic.isRecovering) this.#carryOut(decodeDecisions(message.words));
        nic.ports.post(from, new XenicMessage(XENIC_DECIDED, message.name));
        return true;
      case XENIC_SURVEYED:
      case XENIC_DECIDED:
        nic.asking.answered(from, message);
        return true;
      default:
        return false;
    }
  }

  *#lead(survivors: readonly NodeId[]): NicRoutine<void> {
    const { asking } = this.#nic;
    const name = new Name();
    const ask = (kind: number, words: Int32Array) =>
      survivors.map((to) => ({ to, message: new XenicMessage(kind, name, { words }) }));
    name.sequence = SURVEYING;
    const surveyed = yield* asking.each(
      name.sequence,
      ask(XENIC_SURVEY, new Int32Array(0)),
      XENIC_SURVEYED,
      FOR_EVER,
    );
    const surveys = (surveyed ?? []).map(({ from, message }) => decodeSurvey(from, message.words));
    const words = encodeDecisions(decide(surveys, this.#placementOf));
    name.sequence = DECIDING;
    yield* asking.each(name.sequence, ask(XENIC_DECIDE, words), XENIC_DECIDED, FOR_EVER);
  }

  /** All that this node knows of transactions that may not be over. */
  survey(): Survey {
    const { host, held, self } = this.#nic;
    const evidence: Evidence[] = [];
    const note = (name: Name | { coordinator: number; sequence: number }, more: object): void => {
      const named = Object.assign(new Name(), {
        coordinator: name.coordinator,
        sequence: name.sequence,
      });
      const nothing = {
        configurationId: 0,
        shards: [],
        isCommitted: undefined,
        logged: [],
        items: [],
      };
      evidence.push({ name: named, ...nothing, ...more });
    };
    for (const { name, configurationId, shards, shard, items } of host.logged) {
      note(name, { configurationId, shards, logged: [shard], items });
    }
    for (const { name, configurationId, shards, items } of host.commits) {
      note(name, { configurationId, shards, items, isCommitted: true });
    }
    for (const name of held.ended(COMMITTED)) note(name, { isCommitted: true });
    const configurationId = this.#nic.servedConfigurationId;
    for (const { name, executed } of held.states()) {
      if (executed === undefined) continue;
      const { shards, items } = executed;
      note(name, { configurationId, shards, items });
    }
    for (const { name, shards, writes, isLogged } of this.#coordinator.open.values()) {
      if (shards.length === 0) continue;
      const known = isLogged ? true : undefined;
      note(name, { configurationId, shards, items: writes, isCommitted: known });
    }
    for (const [key, isCommitted] of this.#decided) {
      const [coordinator, sequence] = key.split(":").map(Number);
      note({ coordinator, sequence }, { isCommitted });
    }
    return { from: self, lows: host.lows, evidence };
  }

  #carryOut(decisions: readonly Decision[]): void {
    const nic = this.#nic;
    const { host, self } = nic;
    const outcomes = new Map(decisions.map((each) => [keyOf(each.name), each]));
    const has = (name: Name): boolean =>
      nic.held.isOver(name) || host.commits.some((record) => keyOf(record.name) === keyOf(name));
    const lacking = decisions.filter(
      ({ name, isCommitted }) => isCommitted && !this.#decided.has(keyOf(name)) && !has(name),
    );
    host.settle((name) => outcomes.get(keyOf(name))?.isCommitted === false);
    for (const { name, configurationId, items } of lacking) {
      const placement = this.#placementOf(configurationId);
      const own = items.filter(
        ({ table, key }) => placement.primaryOf(placement.shardOf(table, key)) === self,
      );
      host.install(name, own);
    }
    for (const { name, isCommitted } of decisions) this.#decided.set(keyOf(name), isCommitted);
    nic.restart();
    this.#coordinator.settle(({ name, result }) =>
      outcomes.get(keyOf(name))?.isCommitted === true
        ? { kind: "committed", result }
        : { kind: "aborted", reason: "conflict" },
    );
  }
}

const UNKNOWN = 0;
const IS_COMMITTED = 1;
const IS_ABORTED = 2;

function encodeSurvey({ lows, evidence }: Survey): Int32Array {
  const out = new Writer();
  out.word(lows.size);
  for (const [coordinator, low] of lows) {
    out.word(coordinator);
    out.wide(low);
  }
  out.word(evidence.length);
  for (const { name, configurationId, shards, isCommitted, logged, items } of evidence) {
    name.encode(out);
    out.word(configurationId);
    out.word(isCommitted === undefined ? UNKNOWN : isCommitted ? IS_COMMITTED : IS_ABORTED);
    encodeNumbers(out, shards);
    encodeNumbers(out, logged);
    encodeItems(out, items);
  }
  return out.views.i32.slice(0, out.at);
}

function decodeSurvey(from: NodeId, words: Int32Array): Survey {
  const body = readerOf(words);
  const lows = new Map<number, number>();
  for (let left = body.count(2 * MAX_NODES); left > 0; left--) lows.set(body.word(), body.wide());
  const evidence: Evidence[] = [];
  for (let left = body.count(body.left); left > 0; left--) {
    const name = new Name().decode(body);
    const configurationId = body.word();
    const known = body.count(IS_ABORTED);
    evidence.push({
      name,
      configurationId,
      isCommitted: known === UNKNOWN ? undefined : known === IS_COMMITTED,
      shards: decodeNumbers(body),
      logged: decodeNumbers(body),
      items: decodeItems(body),
    });
  }
  return { from, lows, evidence };
}

function encodeDecisions(decisions: readonly Decision[]): Int32Array {
  const out = new Writer();
  out.word(decisions.length);
  for (const { name, configurationId, isCommitted, items } of decisions) {
    name.encode(out);
    out.word(configurationId);
    out.word(isCommitted ? 1 : 0);
    encodeItems(out, items);
  }
  return out.views.i32.slice(0, out.at);
}

function decodeDecisions(words: Int32Array): Decision[] {
  const body = readerOf(words);
  const decisions: Decision[] = [];
  for (let left = body.count(body.left); left > 0; left--) {
    const name = new Name().decode(body);
    const configurationId = body.word();
    const isCommitted = body.count(1) === 1;
    decisions.push({ name, configurationId, isCommitted, items: decodeItems(body) });
  }
  return decisions;
}

function readerOf(words: Int32Array): Reader {
  const out = new Writer();
  out.words(words, 0, words.length);
  return new Reader(out.views).reset(out.views, 0, out.at);
}

function encodeNumbers(out: Writer, numbers: readonly number[]): void {
  out.word(numbers.length);
  for (const each of numbers) out.word(each);
}

function decodeNumbers(body: Reader): number[] {
  const numbers: number[] = [];
  for (let left = body.count(MAX_PARTITIONS); left > 0; left--) {
    numbers.push(body.count(MAX_PARTITIONS));
  }
  return numbers;
}

function encodeItems(out: Writer, items: readonly Item[]): void {
  out.word(items.length);
  for (const item of items) encodeItem(out, item);
}

function decodeItems(body: Reader): Item[] {
  const items: Item[] = [];
  for (let left = body.count(body.left); left > 0; left--) items.push(decodeItem(body));
  return items;
}
