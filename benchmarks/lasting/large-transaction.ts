// How many rows with three ordered indexes one transaction can insert, `lazy`: doubled until it is too large.
import { open, SituError } from "situ";
import { diskFolder } from "../durable/disk.ts";
import { counted } from "../harness/figures.ts";
import { randomStream } from "../harness/random.ts";
import { temporaryFolder } from "../harness/resources.ts";
import type { TrustContext, TrustMeasure } from "../trust/measure.ts";
import { Customers, Orders, orderSource } from "./orders.ts";

const BAR = 100_000;

async function inserts({ memoryFolder }: TrustContext, rows: number): Promise<number> {
  const db = await open({
    path: temporaryFolder(diskFolder()),
    memoryDir: temporaryFolder(memoryFolder),
    durability: "lazy",
    memoryBytes: 2 ** 30,
    tables: [Customers, Orders],
    timeoutMs: 60_000,
  });
  try {
    const next = orderSource(0, randomStream(1));
    const startMs = performance.now();
    db.transactSync((tx) => {
      for (let row = 0; row < rows; row++) tx.insert(Orders, next());
    });
    const ms = performance.now() - startMs;
    await db.durable();
    let found = 0;
    for (const _ of db.scan(Orders, { index: "byTotal" })) found++;
    if (found !== rows) throw new Error(`of ${rows} rows ${found} are there`);
    return ms;
  } finally {
    await db.close();
  }
}

export const largeTransaction: TrustMeasure = {
  name: "large-transaction",
  async run(context) {
    let most = 0;
    const times: string[] = [];
    for (const rows of [12_500, 25_000, 50_000, BAR]) {
      if (context.options.quick && rows < BAR) continue;
      context.progress.show(`one transaction with ${rows} rows`);
      try {
        const ms = await inserts(context, rows);
        times.push(`${rows} rows ${(ms / 1_000).toFixed(2)} s`);
      } catch (error) {
        if (!(error instanceof SituError) || error.code !== "SITU_TOO_LARGE") throw error;
        times.push(`${rows} rows: ${error.message}`);
        break;
      }
      most = rows;
    }
    return {
      figures: [
        counted(
          "rows inserted in one transaction with three ordered indexes",
          { atLeast: BAR },
          most,
          "rows",
        ),
      ],
      notes: [`large transaction: ${times.join("; ")}`],
    };
  },
};
