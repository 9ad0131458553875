// What the stores run their statements on: lanes for transactions that write, and a connection for
// those that only read. The latter is read-only for the server, too: a serializable transaction
// that is known to write nothing keeps no locks while nobody else writes (manual, 13.2.3).
import type { Durability } from "../engine.ts";
import { Lanes, type Statement, type Values } from "./connection.ts";
import type { PgModule, PgResult } from "./module.ts";

/** Measured with 64 in flight: more of them only add processes that want the same two cores. */
const writersInMemory = 2;
/** The same, where a commit waits for the disk: 64 are slower again. */
const writersOnDisk = 32;

/** Connections that write. */
export function writerCount(durability: Durability, inFlight: number): number {
  return Math.min(inFlight, durability === "sync" ? writersOnDisk : writersInMemory);
}

export class Database {
  readonly #readers: Lanes;
  readonly #writers: Lanes;

  private constructor(readers: Lanes, writers: Lanes) {
    this.#readers = readers;
    this.#writers = writers;
  }

  static async open(
    module: PgModule,
    host: string,
    durability: Durability,
    inFlight: number,
    settings = "",
  ): Promise<Database> {
    const count = writerCount(durability, inFlight);
    const writers = await Lanes.open(module, host, { count, inFlight, options: settings });
    // One after the other: one connection.
    if (inFlight === 1) return new Database(writers, writers);
    const options = `${settings} -c default_transaction_read_only=on`;
    const readers = await Lanes.open(module, host, { count: 1, inFlight, options });
    return new Database(readers, writers);
  }

  /** A transaction that only reads. */
  read(statement: Statement, values: Values): Promise<PgResult> {
    return this.#readers.run(statement, values);
  }

  write(statement: Statement, values: Values): Promise<PgResult> {
    return this.#writers.run(statement, values);
  }

  get retries(): number {
    const { retries } = this.#writers;
    return this.#readers === this.#writers ? retries : retries + this.#readers.retries;
  }

  async close(): Promise<void> {
    await this.#writers.close();
    if (this.#readers !== this.#writers) await this.#readers.close();
  }
}

/** "{1,2,3}": a list of numbers for = ANY. */
export function listOf(numbers: readonly number[], count: number): string {
  let text = "{";
  for (let index = 0; index < count; index++)
    text += index === 0 ? numbers[0] : `,${numbers[index]}`;
  return `${text}}`;
}
