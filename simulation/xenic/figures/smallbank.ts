/** SmallBank as Xenic runs it (§5.5): 2.4 M accounts a server, 8 bytes of key and 4 of value, 90 % of transactions on 4 % of them. */

import type { RowName } from "../../../src/protocols/xenic/message.ts";
import type { Execution, RowReader } from "../../../src/protocols/xenic/procedure.ts";
import {
  AMALGAMATE,
  BALANCE,
  CHECK_CENTS,
  DEPOSIT_CENTS,
  DEPOSIT_CHECKING,
  HOT_ACCOUNT_PERCENT,
  HOT_TRANSACTION_PERCENT,
  PAYMENT_CENTS,
  SAVINGS_CENTS,
  SEND_PAYMENT,
  smallBankMix,
  TRANSACT_SAVINGS,
  WRITE_CHECK,
} from "../../../workloads/smallbank/parameters.ts";
import { type FigureWorkload, keyAt, SERVERS } from "./workload.ts";

const ACCOUNTS = 2_400_000;
const HOT = (ACCOUNTS * HOT_ACCOUNT_PERCENT) / 100;
const FIRST_CENTS = 1_000_000;
const SAVINGS = 0;
const CHECKING = 1;

const kinds = smallBankMix.flatMap(({ percent }, kind) => Array<number>(percent).fill(kind));

const savings = (key: number): RowName => ({ table: SAVINGS, key });
const checking = (key: number): RowName => ({ table: CHECKING, key });

/** Rows that a kind reads only, and those that it writes. */
function rowsOf(kind: number, one: number, other: number) {
  switch (kind) {
    case AMALGAMATE:
      return { reads: [], writes: [savings(one), checking(one), checking(other)] };
    case BALANCE:
      return { reads: [savings(one), checking(one)], writes: [] };
    case DEPOSIT_CHECKING:
      return { reads: [], writes: [checking(one)] };
    case SEND_PAYMENT:
      return { reads: [], writes: [checking(one), checking(other)] };
    case TRANSACT_SAVINGS:
      return { reads: [], writes: [savings(one)] };
    case WRITE_CHECK:
      return { reads: [savings(one)], writes: [checking(one)] };
    default:
      throw new RangeError(`SmallBank has no transaction ${kind}`);
  }
}

function run(args: Int32Array, read: RowReader): Execution {
  const [kind, one, other] = args;
  const cents = (row: RowName): number => read(row)?.[0] ?? 0;
  const change = (row: RowName, by: number) => ({
    ...row,
    value: new Int32Array([cents(row) + by]),
  });
  const done = (changed: number, ...writes: ReturnType<typeof change>[]): Execution => ({
    kind: "done",
    writes,
    result: new Int32Array([changed]),
  });
  switch (kind) {
    case AMALGAMATE: {
      const all = cents(savings(one)) + cents(checking(one));
      const emptied = [
        change(savings(one), -cents(savings(one))),
        change(checking(one), -cents(checking(one))),
      ];
      return done(0, ...emptied, change(checking(other), all));
    }
    case BALANCE:
      return done(0);
    case DEPOSIT_CHECKING:
      return done(DEPOSIT_CENTS, change(checking(one), DEPOSIT_CENTS));
    case SEND_PAYMENT:
      return done(0, change(checking(one), -PAYMENT_CENTS), change(checking(other), PAYMENT_CENTS));
    case TRANSACT_SAVINGS:
      return done(SAVINGS_CENTS, change(savings(one), SAVINGS_CENTS));
    case WRITE_CHECK: {
      const isCovered = cents(savings(one)) + cents(checking(one)) >= CHECK_CENTS;
      const taken = isCovered ? CHECK_CENTS : CHECK_CENTS + 100;
      return done(-taken, change(checking(one), -taken));
    }
    default:
      return { kind: "refused" };
  }
}

export const smallbank: FigureWorkload = {
  name: "SmallBank",
  shapes: [
    { rows: 40_000, valueWords: 1 },
    { rows: 40_000, valueWords: 1 },
  ],
  threads: { nic: 16, drtm: 20 },
  procedures: () => [{ runs: "nic", isOneShot: true, run }],
  drawing: () => ({
    draw(_server, _client, stream) {
      const kind = kinds[stream.below(100)];
      const isHot = stream.below(100) < HOT_TRANSACTION_PERCENT;
      const account = (): number => {
        const index = isHot ? stream.below(HOT) : HOT + stream.below(ACCOUNTS - HOT);
        return keyAt(stream.below(SERVERS), index);
      };
      const one = account();
      let other = account();
      while (other === one) other = account();
      const args = new Int32Array([kind, one, other]);
      return { procedure: 0, args, ...rowsOf(kind, one, other) };
    },
  }),
  applyUs: () => 0,
  initial: () => new Int32Array([FIRST_CENTS]),
  adds: (_work, [changed]) => changed,
  counted: (_table, [cents]) => cents - FIRST_CENTS,
};
