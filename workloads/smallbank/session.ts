/**
 * A stream of SmallBank's transactions. Each is drawn as H-Store's client does it: the kind, then
 * whether it is a hot one, then one or two customers of that part of the accounts.
 */

import { Stream } from "../random/stream.ts";
import {
  DONE,
  type Outcome,
  REFUSED,
  type Result,
  type Session,
  type SessionOptions,
  type Tally,
} from "../workload.ts";
import {
  AMALGAMATE,
  BALANCE,
  CHECK_CENTS,
  DEPOSIT_CENTS,
  DEPOSIT_CHECKING,
  HOT_TRANSACTION_PERCENT,
  hotAccounts,
  PAYMENT_CENTS,
  SAVINGS_CENTS,
  SEND_PAYMENT,
  smallBankMix,
  TRANSACT_SAVINGS,
  WRITE_CHECK,
} from "./parameters.ts";
import type { SmallBankStore } from "./store.ts";

/** For each percent, the kind of transaction that it belongs to. */
const kinds = Uint8Array.from(
  smallBankMix.flatMap(({ percent }, kind) => Array(percent).fill(kind)),
);

export class SmallBankSession implements Session {
  drawn = BALANCE;
  readonly #store: SmallBankStore;
  readonly #stream: Stream;
  readonly #hot: number;
  readonly #cold: number;
  #changedCents = 0;
  /** Bound once: a function for each transaction would be measured with it. */
  readonly #changed = (cents: number): Outcome => this.#end(cents);
  readonly #read = (): Outcome => DONE;

  constructor(store: SmallBankStore, accounts: number, { seed, lane }: SessionOptions) {
    this.#store = store;
    this.#stream = new Stream(seed, lane);
    this.#hot = hotAccounts(accounts);
    this.#cold = accounts - this.#hot;
  }

  next(): Result<Outcome> {
    const kind = kinds[this.#stream.below(100)];
    this.drawn = kind;
    if (kind === BALANCE) {
      const total = this.#run(kind);
      return typeof total === "number" ? DONE : total.then(this.#read);
    }
    const changed = this.#run(kind);
    return typeof changed === "number" ? this.#end(changed) : changed.then(this.#changed);
  }

  tally(): Tally {
    return { changedCents: this.#changedCents };
  }

  #run(kind: number): Result<number> {
    const stream = this.#stream;
    const store = this.#store;
    const isHot = stream.below(100) < HOT_TRANSACTION_PERCENT;
    const first = isHot ? 0 : this.#hot;
    const count = isHot ? this.#hot : this.#cold;
    const place = stream.below(count);
    const customer = first + place;
    switch (kind) {
      case BALANCE:
        return store.balance(customer);
      case DEPOSIT_CHECKING:
        return store.depositChecking(customer, DEPOSIT_CENTS);
      case TRANSACT_SAVINGS:
        return store.transactSavings(customer, SAVINGS_CENTS);
      case WRITE_CHECK:
        return store.writeCheck(customer, CHECK_CENTS);
      case AMALGAMATE:
        return store.amalgamate(customer, first + otherThan(place, stream.below(count - 1)));
      case SEND_PAYMENT: {
        const to = first + otherThan(place, stream.below(count - 1));
        return store.sendPayment(customer, to, PAYMENT_CENTS);
      }
      default:
        throw new RangeError(`SmallBank has no transaction ${kind}`);
    }
  }

  #end(cents: number): Outcome {
    if (Number.isNaN(cents)) return REFUSED;
    this.#changedCents += cents;
    return DONE;
  }
}

/** Uniform over all places but one, for a draw over one place less. */
function otherThan(place: number, drawn: number): number {
  return drawn < place ? drawn : drawn + 1;
}
