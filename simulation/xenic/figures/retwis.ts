/** Retwis as Xenic runs it (§5.4): a million keys a server, values of 64 bytes, zipf 0.5; the mix is TAPIR's. */

import type { RowName } from "../../../src/protocols/xenic/message.ts";
import type { Execution, RowReader } from "../../../src/protocols/xenic/procedure.ts";
import type { Stream } from "../../../workloads/random/stream.ts";
import { Scattered, Zipfian } from "../../../workloads/random/zipfian.ts";
import { RETWIS_THETA, retwisKinds } from "../../../workloads/retwis/retwis.ts";
import { type FigureWorkload, SERVERS } from "./workload.ts";

const KEYS = 1_000_000 * SERVERS;
const VALUE_WORDS = 16;
const TIMELINE = "load timeline";

const kinds = retwisKinds.flatMap((kind) => Array<typeof kind>(kind.percent).fill(kind));

/** Counts in each row that it writes how often that was done. */
function run(args: Int32Array, read: RowReader): Execution {
  const writes = [...args].map((key) => {
    const row: RowName = { table: 0, key };
    const value = new Int32Array(VALUE_WORDS);
    value.set(read(row) ?? []);
    value[0]++;
    return { ...row, value };
  });
  return { kind: "done", writes, result: new Int32Array(0) };
}

let popularity: Scattered | undefined;

function drawKeys(stream: Stream, count: number): number[] {
  popularity ??= new Scattered(new Zipfian(KEYS, RETWIS_THETA));
  const keys = new Set<number>();
  while (keys.size < count) keys.add(popularity.draw(stream));
  return [...keys];
}

export const retwis: FigureWorkload = {
  name: "Retwis",
  shapes: [{ rows: 60_000, valueWords: VALUE_WORDS }],
  threads: { nic: 16, drtm: 18 },
  procedures: () => [{ runs: "nic", isOneShot: true, run }],
  drawing: () => ({
    draw(_server, _client, stream) {
      const { name, gets, puts } = kinds[stream.below(100)];
      const reads = name === TIMELINE ? 1 + stream.below(gets) : gets;
      const rows = drawKeys(stream, Math.max(reads, puts)).map((key) => ({ table: 0, key }));
      const written = rows.slice(0, puts);
      const args = new Int32Array(written.map(({ key }) => key));
      return { procedure: 0, args, reads: rows.slice(puts), writes: written };
    },
  }),
  applyUs: () => 0,
  initial: () => new Int32Array(VALUE_WORDS),
  adds: ({ writes }) => writes.length,
  counted: (_table, [count]) => count,
};
