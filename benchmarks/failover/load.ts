// A load that goes on for as long as something is measured: a number of transfers under way at any time, each
// between two rows of a set. Rates are taken of moments in between; nothing begins or ends for them.
import { setTimeout as sleep } from "node:timers/promises";
import { randomStream } from "../harness/random.ts";
import { Account, type BenchCluster } from "./cluster.ts";

/** Transfers after which a cluster of four nodes does not become faster any more. */
export const WARM_UP = 30_000;
const POLL_MS = 50;

export class Load {
  /** Commits so far. */
  done = 0;
  #isOver = false;
  readonly #workers: Promise<void>[];
  #failure: unknown;

  constructor(cluster: BenchCluster, ids: ArrayLike<number>, inFlight: number, seed: number) {
    this.#workers = Array.from({ length: inFlight }, async (_, lane) => {
      const random = randomStream(seed, lane);
      try {
        while (!this.#isOver) {
          const from = Math.floor(random() * ids.length);
          const to = (from + 1 + Math.floor(random() * (ids.length - 1))) % ids.length;
          await transfer(cluster, ids[from], ids[to]);
          this.done++;
        }
      } catch (error) {
        this.#failure ??= error;
        this.#isOver = true;
      }
    });
  }

  /** Goes on until nodes have compiled what they run: turns.ts says why this is a number, and no time. */
  async warmUp(): Promise<void> {
    while (this.done < WARM_UP) {
      if (this.#failure !== undefined) throw this.#failure;
      await sleep(POLL_MS);
    }
  }

  /** Commits a second, from now on and for so long, or until something has happened. */
  async rate(until: number | Promise<unknown>): Promise<number> {
    const startMs = performance.now();
    const before = this.done;
    await (typeof until === "number" ? sleep(until) : until);
    if (this.#failure !== undefined) throw this.#failure;
    return ((this.done - before) / (performance.now() - startMs)) * 1_000;
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#workers);
    if (this.#failure !== undefined) throw this.#failure;
  }
}

/** One that fails in any way fails the benchmark: pauses are allowed, errors are not. */
export async function transfer(
  { db, ledger }: BenchCluster,
  from: number,
  to: number,
): Promise<void> {
  await db.transact(async (tx) => {
    const [giver, taker] = await Promise.all([tx.get(Account, from), tx.get(Account, to)]);
    if (giver === undefined || taker === undefined) throw new Error("the cluster lost a row");
    void tx.put(Account, { ...giver, balance: giver.balance - 1n });
    void tx.put(Account, { ...taker, balance: taker.balance + 1n });
  });
  ledger[from]--;
  ledger[to]++;
}
