// Updates of all rows, and of a tenth of them, in one transaction: by a program, by hand, and by the peers.
import type { Database } from "situ";
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

const ROUNDS = 3;

async function byHand(db: Database<"order">): Promise<void> {
  await db.transact(async (tx) => {
    for await (const { id, total } of tx.scan(Order)) {
      void tx.update(Order, id, { total: total + 1n });
    }
  });
}

const UPDATE = `UPDATE "order" SET total = total + 1`;
const SOME = `${UPDATE} WHERE day < ${LATE_DAY} AND status = 'open'`;

export const updates: TrustMeasure = {
  name: "updates",
  async run(context) {
    context.progress.show("loading orders");
    const db = await loadSitu(context);
    const all = () => db.updateWhere(Order, { set: (o) => ({ total: o.total.plus(1n) }) });
    const some = () =>
      db.updateWhere(Order, {
        where: (o) => o.day.lt(LATE_DAY).and(o.status.eq("open")),
        set: (o) => ({ total: o.total.plus(1n) }),
      });
    context.progress.show("updates");
    const everyRow = await timed(ROUNDS, all);
    const tenth = await timed(ROUNDS, some);
    const hand = await timed(ROUNDS, () => byHand(db));
    const pause = await longestPause(all);
    const { matched } = await some();
    await db.close();

    const figures: Figure[] = [
      counted(
        "update of all rows against scan and update by hand",
        { atLeast: 1 },
        hand / everyRow,
        "times",
      ),
    ];
    const notes = [
      `update of all rows ${everyRow.toFixed(0)} ms, of ${matched} rows ${tenth.toFixed(0)} ms, by hand ${hand.toFixed(0)} ms`,
      `longest pause of the event loop in an update of all rows, its commit included: ${pause.toFixed(1)} ms`,
    ];
    const sqlite = loadSqlite(context);
    if (!sqlite.available) {
      figures.push(
        missingFigure("update of all rows against SQLite", { atLeast: 1 }, sqlite.missing),
      );
    } else {
      const theirs = await timed(ROUNDS, () => sqlite.value.exec(UPDATE));
      const theirTenth = await timed(ROUNDS, () => sqlite.value.exec(SOME));
      sqlite.value.close();
      figures.push(
        counted("update of all rows against SQLite", { atLeast: 1 }, theirs / everyRow, "times"),
        counted("update of a tenth against SQLite", { atLeast: 1 }, theirTenth / tenth, "times"),
      );
    }
    const postgres = await loadPostgres(context);
    if (!postgres.available) {
      figures.push(
        missingFigure("update of all rows against PostgreSQL", { atLeast: 5 }, postgres.missing),
      );
    } else {
      const { client, stop } = postgres.value;
      const theirs = await timed(ROUNDS, () => client.query(UPDATE));
      const theirTenth = await timed(ROUNDS, () => client.query(SOME));
      await stop();
      figures.push(
        counted(
          "update of all rows against PostgreSQL",
          { atLeast: 5 },
          theirs / everyRow,
          "times",
        ),
        counted(
          "update of a tenth against PostgreSQL",
          { atLeast: 2 },
          theirTenth / tenth,
          "times",
        ),
      );
    }
    return { figures, notes };
  },
};
