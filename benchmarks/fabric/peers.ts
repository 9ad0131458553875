// The peers of this bench, opened and loaded, or the reason why one is missing.
import { describePeer, type Peer } from "../harness/peers.ts";
import type { Progress } from "../harness/progress.ts";
import { type EtcdBank, openEtcdBank } from "./etcd.ts";
import { openRedisRows, type RedisRows } from "./redis.ts";

export const etcdSizes = [1, 3] as const;
export type EtcdSize = (typeof etcdSizes)[number];

export interface Peers {
  readonly redis: Peer<RedisRows>;
  /** By the number of its members. */
  readonly etcd: Readonly<Record<EtcdSize, Peer<EtcdBank>>>;
}

export async function openPeers(
  rows: number,
  memoryFolder: string,
  progress: Progress,
): Promise<Peers> {
  progress.show("loading redis");
  const redis = await openRedisRows(rows);
  progress.show("loading etcd");
  const one = await openEtcdBank(1, rows, memoryFolder);
  progress.show("loading etcd of three members");
  return { redis, etcd: { 1: one, 3: await openEtcdBank(3, rows, memoryFolder) } };
}

export async function closePeers({ redis, etcd }: Peers): Promise<void> {
  if (redis.available) await redis.value.close();
  for (const size of etcdSizes) {
    const bank = etcd[size];
    if (bank.available) await bank.value.close();
  }
}

export function describePeers({ redis, etcd }: Peers): string[] {
  return [
    describePeer("redis-server", redis, "loopback, no persistence, automatic pipelining"),
    describePeer("etcd, one member", etcd[1], "loopback, data on tmpfs"),
    describePeer("etcd, three members", etcd[3], "loopback, data on tmpfs"),
  ];
}

export function transferName(size: EtcdSize): string {
  return size === 1 ? "etcd transfer, one member" : "etcd transfer, three members";
}
