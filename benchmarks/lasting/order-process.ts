// A process that places orders in one of the engines for a while.
import { serve, taskOf } from "../harness/process-side.ts";
import { randomStream } from "../harness/random.ts";
import { runFor, type TimedRun } from "../harness/timed-run.ts";
import { type OrderEngine, type OrderPlace, orderSource } from "./orders.ts";
import { openLmdb } from "./orders-lmdb.ts";
import { openSitu } from "./orders-situ.ts";
import { openSqlite } from "./orders-sqlite.ts";

export type EngineName = "situ" | "sqlite" | "lmdb";

export interface OrderTask extends OrderPlace {
  readonly engine: EngineName;
  readonly number: number;
  readonly seed: number;
  /** Orders that the first process places before anything is measured. */
  readonly orders: number;
}

export type OrderOrder =
  | { readonly order: "run"; readonly ms: number }
  | { readonly order: "count" };
export type OrderAnswer = TimedRun | ReturnType<OrderEngine["count"]>;

const opened = { situ: openSitu, sqlite: openSqlite, lmdb: openLmdb };

const task = taskOf<OrderTask>();
const engine = await opened[task.engine](task);
const next = orderSource(task.number, randomStream(task.seed, task.number));
if (task.isFirst) {
  engine.addCustomers();
  for (let placed = 0; placed < task.orders; placed++) engine.place(next());
}
const contestant = {
  name: task.engine,
  run(operations: number): number {
    for (let done = 0; done < operations; done++) engine.place(next());
    return operations;
  },
};

serve<OrderOrder, OrderAnswer>({
  handle: (message, answer) =>
    answer(message.order === "run" ? runFor(contestant, message.ms) : engine.count()),
  close: () => engine.close(),
});
