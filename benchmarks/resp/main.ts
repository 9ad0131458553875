// `npm run bench -- resp`: Redis clients at Situ's gateway and at redis-server, in turns.

import { parseBenchArguments } from "../harness/bench-options.ts";
import { describeMachine } from "../harness/machine.ts";
import { describePeer } from "../harness/peers.ts";
import { createProgress, type Progress } from "../harness/progress.ts";
import { type RedisServer, startRedisServer } from "../harness/redis-server.ts";
import { formatRate, printReport } from "../harness/report.ts";
import { releaseAll } from "../harness/resources.ts";
import { summarize } from "../harness/statistics.ts";
import {
  allMissing,
  memoryFigure,
  type Race,
  raceFigure,
  type Setting,
  settings,
  transfersBar,
} from "./figures.ts";
import { keys as drawnKeys, generateTogether, loadKeys } from "./generator.ts";
import { type BytesPerKey, measureMemory } from "./memory.ts";
import { redisTarget, type SituServer, startSitu, type Target } from "./servers.ts";
import { checkAccounts, loadAccounts, measureTransfers } from "./transfers.ts";

const clients = 20;

interface Plan {
  readonly rounds: number;
  /** What a turn of the load takes, about. */
  readonly turnMs: number;
  readonly keys: number;
  readonly seed: number;
}

async function main(): Promise<void> {
  const { options } = parseBenchArguments(process.argv.slice(2));
  const { quick, json, rounds, seed } = options;
  const plan = { rounds, seed, turnMs: quick ? 400 : 1_500, keys: quick ? 100_000 : 1_000_000 };
  const progress = createProgress();
  const redis = await startRedisServer();
  const conditions = [
    ...describeMachine(),
    describePeer("Redis", redis, "no persistence, one thread, loopback TCP"),
    "Situ: `situ serve`, durability none, a process of its own, loopback TCP",
    `redis-benchmark, ${clients} clients in all, ${drawnKeys.toLocaleString("en")} keys, values of 32 bytes; ${rounds} rounds, interleaved, ` +
      `a ratio per round; transfers: ${clients} clients of ours`,
  ];
  if (!redis.available) {
    const figures = allMissing(redis.missing);
    printReport({ bench: "resp", conditions, timings: [], figures, notes: [] }, json);
    return;
  }
  const measured = await measureAll(redis.value, plan, progress);
  progress.clear();
  const { races, transfers, refused, memory } = measured;
  const figures = [...races, transfers].map(raceFigure);
  const notes = [
    ...[...races, transfers].map(({ name, situ, redis: peer }) => {
      const [ours, theirs] = [summarize(situ).median, summarize(peer).median];
      return `  ${name.padEnd(22)} situ ${formatRate(ours)}, redis ${formatRate(theirs)}`;
    }),
    `  memory: ${memory.situ.toFixed(1)} bytes a key, redis ${memory.redis.toFixed(1)}`,
    `  EXEC refused: situ ${percent(refused.situ)}, redis ${percent(refused.redis)}`,
  ];
  printReport(
    { bench: "resp", conditions, timings: [], figures: [...figures, memoryFigure(memory)], notes },
    json,
  );
}

interface All {
  readonly races: readonly Race[];
  readonly transfers: Race;
  readonly refused: { readonly situ: number; readonly redis: number };
  readonly memory: BytesPerKey;
}

async function measureAll(server: RedisServer, plan: Plan, progress: Progress): Promise<All> {
  const redis = redisTarget(server);
  const races: Race[] = [];
  let situ = await startSitu(1);
  for (const target of [situ, redis]) await loadKeys(target);
  for (const setting of settings.filter(({ threads }) => threads === 1)) {
    races.push(await race(situ, redis, setting, plan, progress));
  }
  const { transfers, refused } = await raceTransfers(situ, redis, plan, progress);
  await situ.stop();
  situ = await startSitu(2);
  await loadKeys(situ);
  for (const setting of settings.filter(({ threads }) => threads === 2)) {
    races.push(await race(situ, redis, setting, plan, progress));
  }
  await situ.stop();
  progress.show("memory");
  situ = await startSitu(1);
  const memory = await measureMemory(situ, redis, plan.keys);
  await situ.stop();
  return { races, transfers, refused, memory };
}

/** The requests of a turn are counted so that it takes as long as planned: first by a guess. */
async function race(
  situ: SituServer,
  redis: Target,
  setting: Setting,
  plan: Plan,
  progress: Progress,
): Promise<Race> {
  const { name, bar, command, pipeline, threads } = setting;
  const turn = (target: Target, requests: number): Promise<number> =>
    generateTogether(target, { command, clients, pipeline, requests }, threads);
  // Also warms both up: a server is measured as it is after its first seconds.
  const guess = pipeline === 1 ? 40_000 : 1_000_000;
  const rates = [await turn(situ, guess), await turn(redis, guess)];
  const requests = Math.ceil((Math.max(...rates) * plan.turnMs) / 1e3);
  const result: Race = { name, bar, situ: [], redis: [] };
  for (let round = 0; round < plan.rounds; round++) {
    progress.show(`${name}, round ${round + 1} of ${plan.rounds}`);
    for (const side of turned(["situ", "redis"] as const, round)) {
      result[side].push(await turn(side === "situ" ? situ : redis, requests));
    }
  }
  return result;
}

async function raceTransfers(
  situ: SituServer,
  redis: Target,
  plan: Plan,
  progress: Progress,
): Promise<Pick<All, "transfers" | "refused">> {
  const transfers: Race = { name: "transfers", bar: transfersBar, situ: [], redis: [] };
  const refused = { situ: 0, redis: 0 };
  for (const target of [situ, redis]) {
    await loadAccounts(target);
    await measureTransfers(target, plan.turnMs, plan.seed);
  }
  for (let round = 0; round < plan.rounds; round++) {
    progress.show(`transfers, round ${round + 1} of ${plan.rounds}`);
    for (const side of turned(["situ", "redis"] as const, round)) {
      const target = side === "situ" ? situ : redis;
      const done = await measureTransfers(target, plan.turnMs, plan.seed + round);
      transfers[side].push(done.perSecond);
      refused[side] += done.refused / plan.rounds;
    }
  }
  for (const target of [situ, redis]) await checkAccounts(target);
  return { transfers, refused };
}

/** Who is first changes from round to round. */
function turned<T>(sides: readonly T[], round: number): readonly T[] {
  return round % 2 === 0 ? sides : [...sides].reverse();
}

function percent(part: number): string {
  return `${(part * 100).toFixed(1)} %`;
}

try {
  await main();
} finally {
  releaseAll();
}
