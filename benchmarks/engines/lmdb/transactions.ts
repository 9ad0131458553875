// Two ways to run the body of a transaction. One after the other: `transactionSync`, in this thread.
// Several in flight: `transaction`, which commits those of a turn together ("by batching writes …
// this library is able to drive LMDB to achieve the maximum levels of throughput with fully synced
// operations", README, "Design").
//
// LMDB has one writer at a time, so no transaction is ever undone. A body that has nothing to change
// returns without writing; it needs no abort.
import type { Result } from "../../../workloads/workload.ts";
import type { Transactions } from "./module.ts";

/** Makes a transaction of a body of up to five parameters. */
export type InTransaction = <A extends unknown[], R>(
  body: (...parameters: A) => R,
) => (...parameters: A) => Result<R>;

type Five = [unknown?, unknown?, unknown?, unknown?, unknown?];

/** The parameters wait in variables, so that a call makes no function. */
export function oneAfterTheOther(env: Transactions): InTransaction {
  return <A extends unknown[], R>(body: (...parameters: A) => R) => {
    const call = body as unknown as (...parameters: Five) => R;
    let a: unknown;
    let b: unknown;
    let c: unknown;
    let d: unknown;
    let e: unknown;
    const run = (): R => call(a, b, c, d, e);
    const transaction = (...[v, w, x, y, z]: Five): R => {
      a = v;
      b = w;
      c = x;
      d = y;
      e = z;
      return env.transactionSync(run);
    };
    return transaction as unknown as (...parameters: A) => R;
  };
}

export function manyInFlight(env: Transactions): InTransaction {
  return (body) =>
    (...parameters) =>
      env.transaction(() => body(...parameters));
}
