// Updates and aggregates by the device's threads, each one transaction that is on disk when it returns, against
// PostgreSQL; how long the event loop of the caller stands still meanwhile; and how soon an update is stopped.
import { count, sum, type Updated } from "situ";
import { longestPause, timed } from "../bulk/orders.ts";
import { counted, type Figure, missingFigure } from "../harness/figures.ts";
import type { TrustMeasure } from "../trust/measure.ts";
import { loadPostgres, loadSitu, rowsOf, TENTH, User } from "./rows.ts";

const ROUNDS = 3;
const place = "device" as const;
const SET = `UPDATE usertable SET field0 = field1, visits = visits + 1`;
const AGGREGATE = "SELECT count(*), sum(visits) FROM usertable";

export const operations: TrustMeasure = {
  name: "operations",
  async run(context) {
    context.progress.show("loading rows");
    const db = await loadSitu(context);
    const durable = { durability: "sync" } as const;
    const all = () =>
      db.updateWhere(
        User,
        { place, set: (u) => ({ field0: u.field1, visits: u.visits.plus(1) }) },
        durable,
      );
    const some = tenthOf(db);
    context.progress.show("aggregates and updates");
    const aggregate = () =>
      db.aggregate(User, { place, values: (u) => ({ n: count(), sum: sum(u.visits) }) });
    await aggregate();
    const aggregated = await timed(ROUNDS, aggregate);
    const aggregatePause = await longestPause(aggregate);
    const { changed } = await some();
    const tenth = await timed(ROUNDS, some);
    const everyRow = await timed(ROUNDS, all);
    const pause = await longestPause(all);
    const stopped = await stoppedLate(db, everyRow);
    await db.close();

    const rows = rowsOf(context);
    const notes = [
      `${rows} rows: aggregate ${aggregated.toFixed(0)} ms, update of all ${everyRow.toFixed(0)} ms, of ${changed} rows ${tenth.toFixed(0)} ms`,
      `longest pause of the event loop in an aggregate: ${aggregatePause.toFixed(1)} ms`,
      `an update holds no locks: what is measured is when the caller of one that is stopped after ${(stopped.share * 100).toFixed(0)} % of its time hears of it`,
    ];
    const figures: Figure[] = [
      counted("longest pause of the event loop in an update", { atMost: 10 }, pause, "ms"),
      counted("an update that is stopped, until its end", { atMost: 50 }, stopped.ms, "ms"),
    ];
    const postgres = await loadPostgres(context);
    if (!postgres.available) {
      for (const what of ["update of all rows", "update of a tenth", "aggregate"]) {
        figures.push(missingFigure(`${what} against PostgreSQL`, { atLeast: 1 }, postgres.missing));
      }
      return { figures, notes };
    }
    const { client, stop } = postgres.value;
    await client.query(AGGREGATE);
    const theirAggregate = await timed(ROUNDS, () => client.query(AGGREGATE));
    const theirTenth = await timed(ROUNDS, () =>
      client.query(`UPDATE usertable SET field0 = field2 WHERE visits < ${TENTH}`),
    );
    const theirs = await timed(ROUNDS, () => client.query(SET));
    await stop();
    notes.push(
      `PostgreSQL: aggregate ${theirAggregate.toFixed(0)} ms, update of all ${theirs.toFixed(0)} ms, of a tenth ${theirTenth.toFixed(0)} ms`,
    );
    figures.push(
      counted("update of all rows against PostgreSQL", { atLeast: 5 }, theirs / everyRow, "times"),
      counted("update of a tenth against PostgreSQL", { atLeast: 2 }, theirTenth / tenth, "times"),
      counted("aggregate against PostgreSQL", { atLeast: 5 }, theirAggregate / aggregated, "times"),
    );
    return { figures, notes };
  },
};

type Db = Awaited<ReturnType<typeof loadSitu>>;

/** Another value each time: rows that have theirs already are not written. */
function tenthOf(db: Db): () => Promise<Updated> {
  let round = 0;
  return () =>
    db.updateWhere(
      User,
      { place, where: (u) => u.visits.lt(TENTH), set: { field0: `round ${++round}` } },
      { durability: "sync" },
    );
}

/** Stops an update of all rows after 90 % of the time that one takes; earlier, if it was over by then. */
async function stoppedLate(
  db: Db,
  wholeMs: number,
): Promise<{ readonly ms: number; readonly share: number }> {
  for (let share = 0.9; share > 0; share -= 0.1) {
    const ms = await stoppedAfter(db, wholeMs * share, `stopped at ${share.toFixed(1)}`);
    if (ms !== undefined) return { ms, share };
  }
  throw new Error("every update was over before it was stopped");
}

/** Milliseconds between the signal and the end of an update that has run for so long; undefined if it was over. */
async function stoppedAfter(db: Db, ms: number, value: string): Promise<number | undefined> {
  const controller = new AbortController();
  let abortedMs = 0;
  const timer = setTimeout(() => {
    abortedMs = performance.now();
    controller.abort();
  }, ms);
  try {
    await db.updateWhere(User, { place, set: { field9: value } }, { signal: controller.signal });
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    return performance.now() - abortedMs;
  } finally {
    clearTimeout(timer);
  }
  return undefined;
}
