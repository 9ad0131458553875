/**
 * TATP's invariant: the references between its tables hold, values are within their ranges, and call
 * forwardings are as many as at the beginning, plus those inserted, less those deleted.
 */

import type { Table } from "situ";
import type { ReadRows, Tally } from "../workload.ts";
import { HEX_VALUES, HOURS, NUMBER_DIGITS, START_TIMES, TYPES } from "./parameters.ts";
import { initialForwardings, numberOf } from "./rows.ts";
import { AccessInfo, CallForwarding, SpecialFacility, Subscriber } from "./store.ts";

/** Enough to see what is wrong. */
const MOST_PROBLEMS = 20;
const digits = new RegExp(`^[0-9]{${NUMBER_DIGITS}}$`);
const bitNames = Array.from({ length: 10 }, (_, index) => `bit_${index + 1}`);
const hexNames = Array.from({ length: 10 }, (_, index) => `hex_${index + 1}`);

type Row = Readonly<Record<string, unknown>>;

export function checkTatp(subscribers: number, read: ReadRows, tally: Tally): Promise<string[]> {
  return new TatpCheck(subscribers, read, tally).run();
}

class TatpCheck {
  readonly #subscribers: number;
  readonly #read: ReadRows;
  readonly #tally: Tally;
  readonly #problems: string[] = [];
  /** For each subscriber, a bit for each facility that it has. */
  readonly #facilities: Uint8Array;

  constructor(subscribers: number, read: ReadRows, tally: Tally) {
    this.#subscribers = subscribers;
    this.#read = read;
    this.#tally = tally;
    this.#facilities = new Uint8Array(subscribers + 1);
  }

  async run(): Promise<string[]> {
    await this.#checkSubscribers();
    this.#checkCounts(AccessInfo, await this.#typesOf(AccessInfo, "ai_type"));
    const facilities = await this.#typesOf(SpecialFacility, "sf_type");
    this.#facilities.set(facilities);
    this.#checkCounts(SpecialFacility, facilities);
    await this.#checkForwardings();
    const { missing = 0 } = this.#tally;
    if (missing !== 0) this.#tell(Subscriber, `${missing} transactions did not find theirs`);
    return this.#problems;
  }

  async #checkSubscribers(): Promise<void> {
    const seen = new Uint8Array(this.#subscribers + 1);
    let rows = 0;
    for await (const row of this.#read(Subscriber)) {
      rows++;
      const s_id = row.s_id as number;
      if (!this.#exists(s_id)) this.#tell(Subscriber, `nobody is ${s_id}`);
      else if (seen[s_id]++ > 0) this.#tell(Subscriber, `${s_id} is there twice`);
      const fault = subscriberFault(row);
      if (fault !== undefined) this.#tell(Subscriber, `${s_id}: ${fault}`);
    }
    if (rows === this.#subscribers) return;
    this.#tell(Subscriber, `${rows} rows and not ${this.#subscribers}`);
    const lost = seen.indexOf(0, 1);
    if (lost > 0) this.#tell(Subscriber, `${lost} is lost`);
  }

  /** For each subscriber, a bit for each type of which the table has a row. */
  async #typesOf(table: Table, name: string): Promise<Uint8Array> {
    const types = new Uint8Array(this.#subscribers + 1);
    for await (const row of this.#read(table)) {
      const s_id = row.s_id as number;
      const type = row[name] as number;
      if (!this.#exists(s_id)) this.#tell(table, `a row of ${s_id}, who is no subscriber`);
      else if (!isWhole(type, 1, TYPES)) this.#tell(table, `${s_id} has type ${String(type)}`);
      else if ((types[s_id] & (1 << type)) !== 0) this.#tell(table, `${s_id} has ${type} twice`);
      else types[s_id] |= 1 << type;
    }
    return types;
  }

  /** 1 to 4 rows each: all types are different, so there cannot be more. */
  #checkCounts(table: Table, types: Uint8Array): void {
    for (let s_id = 1; s_id <= this.#subscribers; s_id++) {
      if (types[s_id] === 0) this.#tell(table, `no row of subscriber ${s_id}`);
    }
  }

  async #checkForwardings(): Promise<void> {
    // A bit for each start time of each facility.
    const seen = new Uint8Array((this.#subscribers + 1) * (TYPES + 1));
    let rows = 0;
    for await (const row of this.#read(CallForwarding)) {
      rows++;
      const s_id = row.s_id as number;
      const facility = row.sf_type as number;
      const place = START_TIMES.indexOf(row.start_time as number);
      const what = `${s_id}, facility ${facility}, start ${String(row.start_time)}`;
      const fault = forwardingFault(row, place);
      if (fault !== undefined) this.#tell(CallForwarding, `${what}: ${fault}`);
      if (!this.#exists(s_id) || (this.#facilities[s_id] & (1 << facility)) === 0) {
        this.#tell(CallForwarding, `${what}: there is no such facility`);
        continue;
      }
      const at = s_id * (TYPES + 1) + facility;
      if ((seen[at] & (1 << place)) !== 0) this.#tell(CallForwarding, `${what}: is there twice`);
      seen[at] |= 1 << place;
    }
    const { inserted = 0, deleted = 0 } = this.#tally;
    const expected = initialForwardings(this.#subscribers) + inserted - deleted;
    if (rows === expected) return;
    this.#tell(CallForwarding, `${rows} rows and not ${expected}`);
  }

  #exists(s_id: unknown): boolean {
    return isWhole(s_id, 1, this.#subscribers);
  }

  #tell(table: Table, problem: string): void {
    if (this.#problems.length < MOST_PROBLEMS) this.#problems.push(`${table.name}: ${problem}`);
  }
}

function subscriberFault(row: Row): string | undefined {
  if (row.sub_nbr !== numberOf(row.s_id as number)) return `has number ${String(row.sub_nbr)}`;
  if (bitNames.some((name) => typeof row[name] !== "boolean")) return "has a bit that is none";
  if (hexNames.some((name) => !isWhole(row[name], 0, HEX_VALUES - 1))) return "hex out of range";
  const isPlace = (value: unknown): boolean => isWhole(value, 1, 2 ** 32 - 1);
  return isPlace(row.msc_location) && isPlace(row.vlr_location) ? undefined : "is nowhere";
}

function forwardingFault(row: Row, place: number): string | undefined {
  if (place < 0) return "starts at no time that there is";
  if (!isWhole(row.end_time, 1, HOURS)) return `ends at ${String(row.end_time)}`;
  return digits.test(row.numberx as string) ? undefined : `leads to ${String(row.numberx)}`;
}

function isWhole(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}
