// etcd over loopback with etcd3, the usual client for Node: transfers as etcd's own recipe has them.
// Both rows are read in one request, then written in one transaction that compares both revisions;
// if somebody was in between, it is tried again.
import { startEtcd } from "../harness/etcd-server.ts";
import type { InFlightContestant } from "../harness/in-flight.ts";
import { loadPeer, missingPeer, type Peer } from "../harness/peers.ts";
import { keyMask } from "../harness/random.ts";
import {
  type AccountRow,
  checkRow,
  checkTotal,
  decodeValue,
  encodeValue,
  makeRow,
} from "./accounts.ts";

/** As etcd's protocol numbers them. */
const equal = 0;
const modRevision = 2;

interface KeyValue {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly mod_revision: string;
}

interface RequestOperation {
  readonly request_range?: { readonly key: Buffer; readonly range_end?: Buffer };
  readonly request_put?: { readonly key: Buffer; readonly value: Buffer };
}

interface Comparison {
  readonly key: Buffer;
  readonly result: typeof equal;
  readonly target: typeof modRevision;
  readonly mod_revision: string;
}

interface TransactionAnswer {
  readonly succeeded: boolean;
  readonly responses: readonly {
    readonly response_range?: { readonly kvs: readonly KeyValue[] };
  }[];
}

interface EtcdClient {
  readonly kv: {
    txn(request: {
      readonly compare?: readonly Comparison[];
      readonly success: readonly RequestOperation[];
    }): Promise<TransactionAnswer>;
  };
  close(): void;
}

interface EtcdModule {
  readonly Etcd3: new (options: { readonly hosts: readonly string[] }) => EtcdClient;
}

export interface EtcdBank {
  transfer(name: string, pairs: Int32Array): InFlightContestant;
  /** Checks that no transfer lost money, then ends client and servers. */
  close(): Promise<void>;
}

/** As many as etcd takes in one transaction. */
const rowsPerTransaction = 128;

export async function openEtcdBank(
  members: number,
  rows: number,
  memoryFolder: string,
): Promise<Peer<EtcdBank>> {
  const module = loadPeer<EtcdModule>("etcd3");
  if (!module.available) return module;
  const server = await startEtcd(members, memoryFolder);
  if (!server.available) return missingPeer(server.missing);
  const client = new module.value.Etcd3({ hosts: server.value.urls });
  await load(client, rows);
  const version = `${server.version} with etcd3 ${module.version}`;
  const value: EtcdBank = {
    transfer: (name, pairs) => etcdTransfer(name, client, pairs),
    close: async () => {
      await check(client, rows);
      client.close();
      await server.value.stop();
    },
  };
  return { available: true, version, value };
}

function keyOf(id: number): Buffer {
  const key = Buffer.allocUnsafe(4);
  key.writeUInt32BE(id);
  return key;
}

function idsFrom(first: number, rows: number): number[] {
  return Array.from({ length: Math.min(rowsPerTransaction, rows - first) }, (_, i) => first + i);
}

async function load({ kv }: EtcdClient, rows: number): Promise<void> {
  const loadFrom = async (first: number): Promise<void> => {
    const success = idsFrom(first, rows).map((id) => {
      return { request_put: { key: keyOf(id), value: encodeValue(makeRow(id)) } };
    });
    await kv.txn({ success });
  };
  await forAll(rows, loadFrom);
}

async function check(client: EtcdClient, rows: number): Promise<void> {
  const balances: bigint[] = [];
  await forAll(rows, async (first) => {
    const ids = idsFrom(first, rows);
    for (const { row } of await read(client, ids)) {
      checkRow("etcd", row, row.id);
      balances.push(row.balance);
    }
  });
  checkTotal("etcd", balances, rows);
}

/** A few requests at a time: one by one would take long, all at once too much memory. */
async function forAll(rows: number, run: (first: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < rows) {
      const first = next;
      next += rowsPerTransaction;
      await run(first);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
}

interface ReadRow {
  readonly row: AccountRow;
  readonly revision: string;
}

async function read({ kv }: EtcdClient, ids: readonly number[]): Promise<ReadRow[]> {
  const success = ids.map((id) => ({ request_range: { key: keyOf(id) } }));
  const { responses } = await kv.txn({ success });
  return ids.map((id, i) => {
    const found = responses[i].response_range?.kvs[0];
    return { row: decodeValue(found?.value, id), revision: found?.mod_revision ?? "" };
  });
}

function etcdTransfer(name: string, client: EtcdClient, pairs: Int32Array): InFlightContestant {
  let cursor = 0;
  const attempt = async (ids: readonly number[]): Promise<boolean> => {
    const [giver, taker] = await read(client, ids);
    giver.row.balance -= 1n;
    taker.row.balance += 1n;
    const both = [giver, taker];
    const { succeeded } = await client.kv.txn({
      compare: both.map(({ row, revision }) => {
        return { key: keyOf(row.id), result: equal, target: modRevision, mod_revision: revision };
      }),
      success: both.map(({ row }) => {
        return { request_put: { key: keyOf(row.id), value: encodeValue(row) } };
      }),
    });
    return succeeded;
  };
  return {
    name,
    async one() {
      cursor = (cursor + 2) & keyMask;
      const ids = [pairs[cursor], pairs[cursor + 1]];
      while (!(await attempt(ids)));
    },
  };
}
