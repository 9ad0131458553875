// Orders in lmdb, in memory and without syncs, as fast as its documentation allows (benchmarks/engines/lmdb). An
// index is a database whose keys are the indexed values and the order's id, made by hand as native bytes.
import type { LmdbModule } from "../engines/lmdb/module.ts";
import { needPeer } from "../harness/peers.ts";
import { CUSTOMERS, type OrderEngine, type OrderPlace } from "./orders.ts";

interface BinaryOptions {
  readonly name: string;
  readonly encoding: "binary";
  readonly keyEncoding: "binary" | "uint32";
}

interface BinaryDatabase<Key> {
  getBinaryFast(key: Key): Buffer | undefined;
  putSync(key: Key, value: Buffer): boolean;
  getKeysCount(): number;
}

interface BinaryEnvironment {
  openDB<Key>(options: BinaryOptions): BinaryDatabase<Key>;
  transactionSync<R>(body: () => R): R;
  close(): Promise<void>;
}

const EMPTY = Buffer.alloc(0);

export async function openLmdb({ memoryFolder }: OrderPlace): Promise<OrderEngine> {
  const lmdb = needPeer<LmdbModule>("lmdb");
  const environment = lmdb.open({
    path: memoryFolder,
    mapSize: 2 ** 32,
    maxDbs: 12,
    noMemInit: true,
    noSync: true,
    useWritemap: true,
  }) as unknown as BinaryEnvironment;
  const rows = <Key>(name: string): BinaryDatabase<Key> =>
    environment.openDB({ name, encoding: "binary", keyEncoding: "uint32" });
  const indexed = (name: string): BinaryDatabase<Buffer> =>
    environment.openDB({ name, encoding: "binary", keyEncoding: "binary" });
  const customers = rows<number>("customers");
  const orders = rows<number>("orders");
  const byCustomer = indexed("byCustomer");
  const byStatus = indexed("byStatus");
  const byTotal = indexed("byTotal");
  const row = Buffer.alloc(12);
  const two = Buffer.alloc(8);
  const three = Buffer.alloc(12);
  const orderBytes = Buffer.alloc(20 + 32);
  let next: Parameters<OrderEngine["place"]>[0];
  const body = (): void => {
    const { id, customer, status, placed, total, reference } = next;
    orderBytes.writeUInt32LE(customer, 0);
    orderBytes.writeUInt32LE(status, 4);
    orderBytes.writeUInt32LE(placed, 8);
    orderBytes.writeUInt32LE(total, 12);
    const bytes = orderBytes.write(reference, 16, "latin1");
    orders.putSync(id, orderBytes.subarray(0, 16 + bytes));
    two.writeUInt32BE(customer, 0);
    two.writeUInt32BE(id, 4);
    byCustomer.putSync(two, EMPTY);
    two.writeUInt32BE(total, 0);
    byTotal.putSync(two, EMPTY);
    three.writeUInt32BE(status, 0);
    three.writeUInt32BE(placed, 4);
    three.writeUInt32BE(id, 8);
    byStatus.putSync(three, EMPTY);
    const known = customers.getBinaryFast(customer);
    if (known === undefined) throw new Error("lmdb lost a customer");
    row.writeUInt32LE(known.readUInt32LE(0) + 1, 0);
    row.writeDoubleLE(known.readDoubleLE(4) + total, 4);
    customers.putSync(customer, row);
  };
  return {
    addCustomers() {
      row.fill(0);
      environment.transactionSync(() => {
        for (let id = 0; id < CUSTOMERS; id++) customers.putSync(id, row);
      });
    },
    place(order) {
      next = order;
      environment.transactionSync(body);
    },
    count() {
      let counted = 0;
      for (let id = 0; id < CUSTOMERS; id++)
        counted += customers.getBinaryFast(id)!.readUInt32LE(0);
      return { orders: byTotal.getKeysCount(), counted };
    },
    close: () => environment.close(),
  };
}
