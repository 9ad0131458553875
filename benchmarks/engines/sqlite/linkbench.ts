// LinkBench on SQLite: its three tables, prepared statements, and a transaction where a link and its count change.
import type { FoundLink, LinkStore } from "../../../workloads/linkbench/store.ts";
import type { Connection } from "./connection.ts";

export function sqliteLinks(connection: Connection): LinkStore {
  const { db } = connection;
  const node = db.prepare("SELECT data FROM node WHERE id = ?").pluck();
  const addNode = db.prepare("INSERT INTO node (id, version, time, data) VALUES (?, 1, ?, ?)");
  const updateNode = db.prepare(
    "UPDATE node SET version = version + 1, time = ?, data = ? WHERE id = ?",
  );
  const deleteNode = db.prepare("DELETE FROM node WHERE id = ?");
  const isThere = db
    .prepare("SELECT 1 FROM link WHERE id1 = ? AND link_type = ? AND id2 = ?")
    .pluck();
  const putLink = db.prepare(
    `INSERT INTO link (id1, link_type, id2, time, version, data) VALUES (?, ?, ?, ?, 1, ?)
     ON CONFLICT DO UPDATE SET time = excluded.time, version = version + 1, data = excluded.data`,
  );
  const count = db.prepare(
    `INSERT INTO link_count (id1, link_type, links) VALUES (?, ?, 1)
     ON CONFLICT DO UPDATE SET links = links + 1`,
  );
  const uncount = db.prepare(
    "UPDATE link_count SET links = links - 1 WHERE id1 = ? AND link_type = ?",
  );
  const removeLink = db.prepare("DELETE FROM link WHERE id1 = ? AND link_type = ? AND id2 = ?");
  const retype = db.prepare(
    "UPDATE link SET link_type = ? WHERE id1 = ? AND link_type = ? AND id2 = ?",
  );
  const links = db.prepare("SELECT links FROM link_count WHERE id1 = ? AND link_type = ?").pluck();
  const one = db.prepare(
    "SELECT id2, time, version, data FROM link WHERE id1 = ? AND link_type = ? AND id2 = ?",
  );
  const list = db.prepare(
    `SELECT id2, time, version, data FROM link WHERE id1 = ? AND link_type = ?
     ORDER BY time DESC LIMIT ?`,
  );
  const within = db.prepare(
    `SELECT id2, time, version, data FROM link WHERE id1 = ? AND link_type = ?
     AND time <= ? AND time >= ? ORDER BY time DESC LIMIT ?`,
  );
  const addLink = connection.writing(
    (id1: number, type: number, id2: number, time: number, data: string): boolean => {
      const isNew = isThere.get(id1, type, id2) === undefined;
      putLink.run(id1, type, id2, time, data);
      if (isNew) count.run(id1, type);
      return isNew;
    },
  );
  const deleteLink = connection.writing((id1: number, type: number, id2: number): boolean => {
    if (removeLink.run(id1, type, id2).changes === 0) return false;
    uncount.run(id1, type);
    return true;
  });
  const changeType = connection.writing(
    (id1: number, type: number, id2: number, newType: number): number => {
      if (isThere.get(id1, type, id2) === undefined) return 0;
      const replaced = removeLink.run(id1, newType, id2).changes > 0;
      retype.run(newType, id1, type, id2);
      uncount.run(id1, type);
      if (!replaced) count.run(id1, newType);
      return replaced ? -1 : 1;
    },
  );
  return {
    getNode: connection.retried((id: number) => node.get(id) !== undefined),
    addNode: connection.retried((id: number, time: number, data: string) => {
      addNode.run(id, time, data);
    }),
    updateNode: connection.retried(
      (id: number, time: number, data: string) => updateNode.run(time, data, id).changes > 0,
    ),
    deleteNode: connection.retried((id: number) => deleteNode.run(id).changes > 0),
    addLink,
    deleteLink,
    changeType,
    countLinks: connection.retried(
      (id1: number, type: number) => (links.get(id1, type) as number | undefined) ?? 0,
    ),
    getLinks: connection.reading((id1: number, type: number, ids: readonly number[]) => {
      const found: FoundLink[] = [];
      for (const id2 of ids) {
        const link = one.get(id1, type, id2) as FoundLink | undefined;
        if (link !== undefined) found.push(link);
      }
      return found;
    }),
    getList: connection.retried(
      (id1: number, type: number, limit: number) => list.all(id1, type, limit) as FoundLink[],
    ),
    getTimeRange: connection.retried(
      (id1: number, type: number, high: number, low: number, limit: number) =>
        within.all(id1, type, high, low, limit) as FoundLink[],
    ),
  };
}
