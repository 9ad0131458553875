// A client beside the one that is measured. It takes a snapshot of the cluster, scans all rows, and begins again, while
// its parent wants it to. With "memory" it reads memory of its own instead, which shows what the machine itself takes.
import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import * as situ from "situ";
import { Account } from "../fabric/cluster.ts";

export type ToScanner = "snapshots" | "memory" | "rest" | "end";

const [connect, cluster] = process.argv.slice(2);
const db = await situ.open({ connect: connect.split(","), cluster, tables: [Account] });
const own = new Float64Array(1 << 16);
let wanted = "rest" as ToScanner;
let passes = 0;

process.on("message", (message: ToScanner) => {
  wanted = message;
  if (message === "rest") process.send?.({ passes });
  passes = 0;
});
process.send?.({ passes });

while (wanted !== "end") {
  if (wanted === "snapshots") {
    await using snapshot = await db.snapshot();
    let sum = 0n;
    for await (const { balance } of snapshot.scan(Account)) sum += balance;
    own[0] = Number(sum);
    passes++;
  } else if (wanted === "memory") {
    for (let i = 1; i < own.length; i++) own[i] += own[i - 1];
    passes++;
  }
  await turnOfTheLoop();
}
await db.close();
process.disconnect();
