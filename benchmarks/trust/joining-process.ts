// A process that joins a store, commits once, says so, and leaves when its input ends.
import { open, table, u32 } from "situ";

export interface JoiningTask {
  readonly path: string;
  readonly memoryDir: string;
  readonly id: number;
}

export const Counter = table("counter", { id: u32(), value: u32() }, { key: "id" });

if (process.argv[1] === import.meta.filename) {
  const { id, ...place } = JSON.parse(process.argv[2]) as JoiningTask;
  const db = await open({ ...place, tables: [Counter], timeoutMs: 60_000 });
  db.transactSync((tx) => tx.put(Counter, { id, value: id }));
  process.stdout.write("committed\n");
  process.stdin.resume();
  await new Promise((resolve) => process.stdin.on("end", resolve));
  await db.close();
}
