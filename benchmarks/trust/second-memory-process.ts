// One of two processes with a store's folder in common and a /dev/shm each: it writes all the time, or tries
// to open the store and, should it succeed, writes a while.
import { fileURLToPath } from "node:url";
import * as situ from "situ";
import { serve, taskOf } from "../harness/process-side.ts";

export interface ClientTask {
  readonly path: string;
  /** Rows of clients do not overlap. */
  readonly client: number;
}

export type ClientRequest = "write" | "intrude" | "end";

export interface ClientReply {
  readonly outcome: string;
  /** Commits that have returned, in all. */
  readonly acknowledged: number;
}

export const ROWS_PER_CLIENT = 2 ** 30;
const INTRUSION_MS = 50;

export function ledgerTable({ table, u32 }: typeof situ) {
  return table("ledger", { id: u32(), value: u32() }, { key: "id" });
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

class Client {
  readonly #task: ClientTask;
  readonly #ledger = ledgerTable(situ);
  #acknowledged = 0;
  #isOver = false;
  #writing: Promise<string> = Promise.resolve("");

  constructor(task: ClientTask) {
    this.#task = task;
  }

  async handle(request: ClientRequest): Promise<ClientReply> {
    let outcome = "";
    if (request === "intrude") outcome = await this.#write(INTRUSION_MS);
    if (request === "end") {
      this.#isOver = true;
      outcome = await this.#writing;
    }
    if (request === "write") {
      await new Promise<void>((resolve) => {
        this.#writing = this.#write(Number.POSITIVE_INFINITY, resolve);
      });
    }
    return { outcome, acknowledged: this.#acknowledged };
  }

  /** Opens the store and commits for so long; the code of the error that ended it, or "opened". */
  async #write(forMs: number, opened: () => void = () => {}): Promise<string> {
    try {
      const db = await situ.open({
        path: this.#task.path,
        tables: [this.#ledger],
        durability: "sync",
      });
      opened();
      try {
        for (const start = performance.now(); performance.now() - start < forMs; ) {
          if (this.#isOver) break;
          const id = this.#task.client * ROWS_PER_CLIENT + this.#acknowledged;
          db.transactSync((tx) => tx.put(this.#ledger, { id, value: id }));
          this.#acknowledged++;
          await nextTurn();
        }
      } finally {
        await db.close();
      }
      return "opened";
    } catch (error) {
      opened();
      return (error as { code?: string }).code ?? String(error);
    }
  }
}

// Also imported by the parent, for the table.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const client = new Client(taskOf<ClientTask>());
  serve<ClientRequest, ClientReply>({
    handle: async (request, answer) => answer(await client.handle(request)),
    close: async () => {},
  });
}
