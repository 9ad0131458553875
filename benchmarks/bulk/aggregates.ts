// Aggregates over all rows: by a program, by hand, and by the peers.
import { count, sum } from "situ";
import { counted, type Figure, missingFigure } from "../harness/figures.ts";
import type { TrustMeasure } from "../trust/measure.ts";
import {
  LATE_DAY,
  loadPostgres,
  loadSitu,
  loadSqlite,
  longestPause,
  Order,
  timed,
} from "./orders.ts";

const ROUNDS = 5;

const AGGREGATE = `SELECT count(*), sum(total) FROM "order" WHERE day < ${LATE_DAY} AND status = 'open'`;
const GROUPED = `SELECT customer, count(*), sum(total) FROM "order" GROUP BY customer`;

export const aggregates: TrustMeasure = {
  name: "aggregates",
  async run(context) {
    context.progress.show("loading orders");
    const db = await loadSitu(context);
    const filtered = () =>
      db.aggregate(Order, {
        where: (o) => o.day.lt(LATE_DAY).and(o.status.eq("open")),
        values: (o) => ({ n: count(), total: sum(o.total) }),
      });
    const grouped = () =>
      db.aggregate(Order, {
        groupBy: ["customer"],
        values: (o) => ({ n: count(), total: sum(o.total) }),
      });
    const byHand = () => {
      let n = 0;
      let total = 0n;
      for (const { day, status, total: each } of db.scan(Order)) {
        if (day >= LATE_DAY || status !== "open") continue;
        n++;
        total += each;
      }
      return { n, total };
    };
    const result = await filtered();
    const wanted = byHand();
    if (result.n !== wanted.n || result.total !== wanted.total) throw new Error("the sums differ");
    context.progress.show("aggregates");
    const program = await timed(ROUNDS, filtered);
    const hand = await timed(ROUNDS, byHand);
    const groups = await timed(ROUNDS, grouped);
    const pause = await longestPause(filtered);
    await db.close();

    const figures: Figure[] = [
      counted("filtered sum against scan by hand", { atLeast: 1 }, hand / program, "times"),
      counted("longest pause of the event loop", { atMost: 10 }, pause, "ms"),
    ];
    const notes = [
      `filtered sum ${program.toFixed(1)} ms, by hand ${hand.toFixed(1)} ms, grouped ${groups.toFixed(1)} ms`,
    ];
    const sqlite = loadSqlite(context);
    if (!sqlite.available) {
      figures.push(missingFigure("filtered sum against SQLite", { atLeast: 1 }, sqlite.missing));
    } else {
      const all = sqlite.value.prepare(AGGREGATE);
      const each = sqlite.value.prepare(GROUPED);
      const theirs = await timed(ROUNDS, () => all.all());
      const theirGroups = await timed(ROUNDS, () => each.all());
      sqlite.value.close();
      figures.push(
        counted("filtered sum against SQLite", { atLeast: 1 }, theirs / program, "times"),
        counted("grouped sum against SQLite", { atLeast: 1 }, theirGroups / groups, "times"),
      );
    }
    const postgres = await loadPostgres(context);
    if (!postgres.available) {
      figures.push(
        missingFigure("filtered sum against PostgreSQL", { atLeast: 5 }, postgres.missing),
      );
    } else {
      const { client, stop } = postgres.value;
      const theirs = await timed(ROUNDS, () => client.query(AGGREGATE));
      const theirGroups = await timed(ROUNDS, () => client.query(GROUPED));
      await stop();
      figures.push(
        counted("filtered sum against PostgreSQL", { atLeast: 5 }, theirs / program, "times"),
        counted("grouped sum against PostgreSQL", { atLeast: 5 }, theirGroups / groups, "times"),
      );
    }
    return { figures, notes };
  },
};
