// lmdb, set up as fast as its documentation allows: memory file system, no sync, write map (twice
// the transfers of the default), native u32 keys, no compression, values as plain bytes.
import { keyMask } from "../harness/random.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import { sink } from "../harness/sink.ts";
import {
  type AccountRow,
  checkRow,
  checkTotal,
  decodeValue,
  encodeValue,
  type Keys,
  makeRow,
  type ValueView,
  valueBytes,
  viewValue,
} from "./rows.ts";

export const lmdbSettings = {
  mapSize: 2 ** 30,
  keyEncoding: "uint32",
  compression: false,
  noSync: true,
  noMemInit: true,
  useWritemap: true,
} as const;

export type LmdbOptions = typeof lmdbSettings & { readonly path: string };

export interface LmdbModule {
  open(options: LmdbOptions & { readonly encoding: "binary" }): LmdbStore;
}

interface LmdbStore {
  /** The bytes are valid until the next get. */
  getBinaryFast(key: number): Buffer | undefined;
  put(key: number, value: Buffer): unknown;
  transactionSync<T>(body: () => T): T;
  close(): Promise<void>;
}

export interface LmdbBank {
  readonly get: SyncContestant;
  readonly transfer: SyncContestant;
  check(): void;
  close(): Promise<void>;
}

export function openLmdbBank(lmdb: LmdbModule, folder: string, rows: number, keys: Keys): LmdbBank {
  const store = lmdb.open({ ...lmdbSettings, path: folder, encoding: "binary" });
  const outgoing = viewValue(new ArrayBuffer(valueBytes), 0);
  store.transactionSync(() => {
    for (let id = 0; id < rows; id++) {
      encodeValue(outgoing, makeRow(id));
      store.put(id, outgoing.bytes);
    }
  });
  const read = lmdbReader(store);
  for (const id of [0, 1, rows >> 1, rows - 1]) checkRow("lmdb", read(id), id);
  return {
    get: lmdbGet(read, keys.single),
    transfer: lmdbTransfer(store, read, outgoing, keys.pairs),
    check() {
      let total = 0n;
      for (let id = 0; id < rows; id++) total += read(id).balance;
      checkTotal("lmdb", total, rows);
    },
    close: () => store.close(),
  };
}

type Read = (id: number) => AccountRow;

/** lmdb copies every value to the same place, so one set of views serves all reads. */
function lmdbReader(store: LmdbStore): Read {
  const first = store.getBinaryFast(0);
  const second = store.getBinaryFast(1);
  if (first === undefined || first !== second || first.length !== valueBytes) {
    throw new Error("lmdb no longer reuses its buffer: decode each value where it lies");
  }
  const incoming = viewValue(first.buffer, first.byteOffset);
  const decode = decodeValue;
  return (id) => {
    if (store.getBinaryFast(id) === undefined) throw new Error(`lmdb lost row ${id}`);
    return decode(incoming, id);
  };
}

function lmdbGet(read: Read, keys: Int32Array): SyncContestant {
  const seen = sink;
  const mask = keyMask;
  let kept = 0;
  return {
    name: "lmdb get",
    run(operations) {
      let cursor = kept;
      let sum = 0;
      for (let done = 0; done < operations; done++) {
        const row = read(keys[cursor]);
        cursor = (cursor + 1) & mask;
        seen.value = row;
        sum += row.id;
      }
      kept = cursor;
      return sum;
    },
  };
}

function lmdbTransfer(
  store: LmdbStore,
  read: Read,
  outgoing: ValueView,
  keys: Int32Array,
): SyncContestant {
  const encode = encodeValue;
  const mask = keyMask;
  let kept = 0;
  let from = 0;
  let to = 0;
  const body = (): number => {
    const payer = read(from);
    const payee = read(to);
    payer.balance -= 1n;
    payee.balance += 1n;
    encode(outgoing, payer);
    store.put(from, outgoing.bytes);
    encode(outgoing, payee);
    store.put(to, outgoing.bytes);
    return payer.a;
  };
  return {
    name: "lmdb transfer",
    run(operations) {
      let cursor = kept;
      let sum = 0;
      for (let done = 0; done < operations; done++) {
        from = keys[cursor];
        to = keys[cursor + 1];
        cursor = (cursor + 2) & mask;
        sum += store.transactionSync(body);
      }
      kept = cursor;
      return sum;
    },
  };
}
