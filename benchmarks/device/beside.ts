// YCSB-A, half reads and half updates of single rows, beside an update of a tenth of the rows, against the same
// without it, for Situ and for PostgreSQL. The update is repeated for as long as is measured.
import { counted, type Figure, missingFigure } from "../harness/figures.ts";
import type { TrustMeasure } from "../trust/measure.ts";
import { loadPostgres, loadSitu, rowsOf, TENTH, User } from "./rows.ts";

const SECONDS = 5;
const CLIENTS = 4;
const NAME = "YCSB-A beside an update of a tenth of the rows, against without";

/** Operations per second of some clients, while `beside` is done over and over. */
async function throughput(
  clients: readonly (() => Promise<unknown>)[],
  beside: ((round: number) => Promise<unknown>) | undefined,
): Promise<{ readonly perSecond: number; readonly rounds: number }> {
  const endMs = performance.now() + SECONDS * 1_000;
  const isOver = (): boolean => performance.now() >= endMs;
  let done = 0;
  let rounds = 0;
  const loops = clients.map(async (client) => {
    while (!isOver()) {
      await client();
      done++;
    }
  });
  const other = (async () => {
    while (beside !== undefined && !isOver()) await beside(++rounds);
  })();
  await Promise.all(loops);
  const counted = done;
  await other;
  return { perSecond: counted / SECONDS, rounds };
}

export const beside: TrustMeasure = {
  name: "beside",
  async run(context) {
    context.progress.show("loading rows");
    const db = await loadSitu(context);
    const rows = rowsOf(context);
    let state = 1;
    const random = (most: number): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state % most;
    };
    const operation = async (): Promise<unknown> => {
      const id = random(rows);
      if (random(2) === 0) return db.transact((tx) => tx.get(User, id));
      return db.transact((tx) => tx.update(User, id, { field4: `changed ${state}` }));
    };
    const clients = Array.from({ length: CLIENTS }, () => operation);
    context.progress.show("YCSB-A");
    await throughput(clients, undefined);
    const alone = await throughput(clients, undefined);
    const update = (round: number): Promise<unknown> =>
      db.updateWhere(User, {
        place: "device",
        where: (u) => u.visits.lt(TENTH),
        set: { field0: `round ${round}` },
      });
    const mixed = await throughput(clients, update);
    await db.close();
    const ratio = mixed.perSecond / alone.perSecond;
    const figures: Figure[] = [counted(NAME, { atLeast: 0.75 }, ratio, "times")];
    const notes = [
      `alone ${alone.perSecond.toFixed(0)} per second, beside ${mixed.rounds} updates ${mixed.perSecond.toFixed(0)}`,
    ];
    const postgres = await loadPostgres(context);
    const theirName = "what is left to PostgreSQL of YCSB-A, against that";
    if (!postgres.available) {
      figures.push(missingFigure(theirName, { atMost: 1 }, postgres.missing));
      return { figures, notes };
    }
    const { client, connect, stop } = postgres.value;
    const connections = await Promise.all(Array.from({ length: CLIENTS }, connect));
    const theirClients = connections.map((connection) => () => {
      const id = random(rows);
      return connection.query(
        random(2) === 0
          ? `SELECT * FROM usertable WHERE id = ${id}`
          : `UPDATE usertable SET field4 = 'changed ${state}' WHERE id = ${id}`,
      );
    });
    for (const connection of connections) await connection.query("SET synchronous_commit = off");
    await throughput(theirClients, undefined);
    const theirAlone = await throughput(theirClients, undefined);
    const theirMixed = await throughput(theirClients, (round) =>
      client.query(`UPDATE usertable SET field0 = 'round ${round}' WHERE visits < ${TENTH}`),
    );
    for (const connection of connections) await connection.close();
    await stop();
    const theirs = theirMixed.perSecond / theirAlone.perSecond;
    notes.push(
      `PostgreSQL: alone ${theirAlone.perSecond.toFixed(0)} per second, beside ${theirMixed.rounds} updates ${theirMixed.perSecond.toFixed(0)}`,
    );
    figures.push(counted(theirName, { atMost: 1 }, theirs / ratio, "times"));
    return { figures, notes };
  },
};
