// A process without a store, to tell what the machine takes for it from what a store adds: it says that it is
// there, and leaves when its input ends. With "count" it also tells how much processor time it has used.
import { setTimeout as sleep } from "node:timers/promises";

const [, , mode] = process.argv;
process.stdin.resume();
const ended = new Promise((resolve) => process.stdin.on("end", resolve));
if (mode === "count") {
  const { restMs, ms } = JSON.parse(process.argv[3]) as { restMs: number; ms: number };
  const timer = setInterval(() => {}, 1_000);
  await sleep(restMs);
  const before = process.cpuUsage();
  const startMs = performance.now();
  await sleep(ms);
  const { user, system } = process.cpuUsage(before);
  clearInterval(timer);
  process.stdout.write(`${(user + system) / (performance.now() - startMs)}\n`);
} else {
  process.stdout.write("started\n");
}
await ended;
