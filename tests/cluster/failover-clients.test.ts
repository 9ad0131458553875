/** Clients of nodes that are killed: transactions, calls, reads and scans see a pause, and each is done once. */

import { afterEach, expect, test } from "vitest";
import type { RemoteDatabase, SituError } from "../../src/index.ts";
import { eventually } from "../helpers/cluster.ts";
import { LivingCluster } from "../helpers/living-cluster.ts";
import { Account } from "./procedures.ts";

const WORKERS = 6;
const TIMEOUT_MS = 60_000;

let cluster: LivingCluster | undefined;

afterEach(async () => {
  await cluster?.remove();
  cluster = undefined;
});

/** Adds to accounts of its own, in turn by transactions and by calls, and knows what must be there. */
class AccountHolder {
  readonly accounts: readonly number[];
  readonly wanted = new Map<number, bigint>();
  done = 0;
  /** Calls that were committed, and whose result is lost. */
  lostResults = 0;
  readonly wrong: string[] = [];
  readonly #db: RemoteDatabase;
  #isOver = false;
  readonly #running: Promise<void>;

  constructor(id: number, db: RemoteDatabase) {
    this.#db = db;
    this.accounts = Array.from({ length: 8 }, (_, i) => 100 * id + i);
    for (const account of this.accounts) this.wanted.set(account, 0n);
    this.#running = this.#work();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async #work(): Promise<void> {
    for (let i = 0; !this.#isOver; i++) {
      const one = this.accounts[i % this.accounts.length];
      const other = this.accounts[(i * 3 + 1) % this.accounts.length];
      try {
        if (i % 2 === 0) await this.#transfer(one, other);
        else await this.#deposit(one, i % 3 === 0);
        const read = (await this.#db.get(Account, one))?.balance ?? 0n;
        const wanted = this.wanted.get(one);
        if (read !== wanted) this.wrong.push(`account ${one} has ${read}, not ${wanted}`);
        this.done++;
      } catch (error) {
        const { code, message } = error as SituError;
        this.wrong.push(`${code} ${message}`);
        return;
      }
    }
  }

  async #transfer(one: number, other: number): Promise<void> {
    if (one === other) return;
    await this.#db.transact(async (tx) => {
      const [a, b] = await tx.getMany(Account, [one, other]);
      await tx.put(Account, { id: one, balance: (a?.balance ?? 0n) - 1n });
      await tx.put(Account, { id: other, balance: (b?.balance ?? 0n) + 1n });
    });
    this.#add(one, -1n);
    this.#add(other, 1n);
  }

  async #deposit(id: number, isNear: boolean): Promise<void> {
    const near = isNear ? { near: [Account, id] as const } : {};
    try {
      await this.#db.call("deposit", [id, 1n], near);
    } catch (error) {
      const { code, message } = error as SituError;
      if (code !== "SITU_UNKNOWN_OUTCOME" || !message.includes("was committed")) throw error;
      this.lostResults++;
    }
    this.#add(id, 1n);
  }

  #add(id: number, amount: bigint): void {
    this.wanted.set(id, this.wanted.get(id)! + amount);
  }
}

test.each(["rpc", "one-sided"] as const)(
  "a node is killed under load: a pause, and everything once (%s)",
  async (protocol) => {
    cluster = await LivingCluster.start({ protocol, procedures: true });
    const holders: AccountHolder[] = [];
    for (let id = 0; id < WORKERS; id++) {
      const db = await cluster.client([Account], { timeoutMs: TIMEOUT_MS });
      holders.push(new AccountHolder(id, db));
    }
    const progress = async (): Promise<void> => {
      const before = holders.map(({ done }) => done);
      await eventually("all go on", async () => {
        expect(holders.flatMap(({ wrong }) => wrong)).toEqual([]);
        return holders.every(({ done }, i) => done >= before[i] + 10);
      });
    };
    await progress();
    const { manager } = await cluster.configuration();
    const victim = manager === 0 ? 1 : 0;
    cluster.nodes[victim].signal("SIGKILL");
    await eventually("the others go on", async () => {
      return !(await cluster!.members()).includes(victim);
    });
    await progress();
    for (const holder of holders) await holder.stop();
    const found = new Map<number, bigint>();
    const db = await cluster.client([Account], { timeoutMs: TIMEOUT_MS });
    for await (const { id, balance } of db.scan(Account)) found.set(id, balance);
    for (const { wanted, wrong } of holders) {
      expect(wrong).toEqual([]);
      for (const [id, balance] of wanted) expect([id, found.get(id) ?? 0n]).toEqual([id, balance]);
    }
  },
);
