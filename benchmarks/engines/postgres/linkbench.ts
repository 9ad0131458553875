// LinkBench on PostgreSQL: its three tables, and each operation one statement. All parts of a statement see what was
// there before it, and a row that it inserts has no xmax.
import type { FoundLink, LinkStore } from "../../../workloads/linkbench/store.ts";
import type { Statement } from "./connection.ts";
import { type Database, listOf } from "./database.ts";

const getNode: Statement = { name: "lb_node", text: "SELECT data FROM node WHERE id = $1" };
const addNode: Statement = {
  name: "lb_add_node",
  text: "INSERT INTO node (id, version, time, data) VALUES ($1, 1, $2, $3)",
};
const updateNode: Statement = {
  name: "lb_update_node",
  text: "UPDATE node SET version = version + 1, time = $2, data = $3 WHERE id = $1",
};
const deleteNode: Statement = { name: "lb_delete_node", text: "DELETE FROM node WHERE id = $1" };

const addLink: Statement = {
  name: "lb_add_link",
  text: `WITH added AS (
      INSERT INTO link (id1, link_type, id2, time, version, data) VALUES ($1, $2, $3, $4, 1, $5)
      ON CONFLICT (id1, link_type, id2) DO UPDATE
        SET time = excluded.time, version = link.version + 1, data = excluded.data
      RETURNING xmax = 0 AS is_new
    ), counted AS (
      INSERT INTO link_count (id1, link_type, links) SELECT $1, $2, 1 FROM added WHERE is_new
      ON CONFLICT (id1, link_type) DO UPDATE SET links = link_count.links + 1
    )
    SELECT is_new FROM added`,
};

const deleteLink: Statement = {
  name: "lb_delete_link",
  text: `WITH gone AS (
      DELETE FROM link WHERE id1 = $1 AND link_type = $2 AND id2 = $3 RETURNING id2
    )
    UPDATE link_count SET links = links - 1
    WHERE id1 = $1 AND link_type = $2 AND EXISTS (SELECT FROM gone)`,
};

const changeType: Statement = {
  name: "lb_change_type",
  text: `WITH gone AS (
      DELETE FROM link WHERE id1 = $1 AND link_type = $2 AND id2 = $3 RETURNING time, version, data
    ), added AS (
      INSERT INTO link (id1, link_type, id2, time, version, data)
      SELECT $1, $4, $3, time, version, data FROM gone
      ON CONFLICT (id1, link_type, id2) DO UPDATE
        SET time = excluded.time, version = link.version + 1, data = excluded.data
      RETURNING xmax = 0 AS is_new
    ), uncounted AS (
      UPDATE link_count SET links = links - 1
      WHERE id1 = $1 AND link_type = $2 AND EXISTS (SELECT FROM gone)
    ), counted AS (
      INSERT INTO link_count (id1, link_type, links) SELECT $1, $4, 1 FROM added WHERE is_new
      ON CONFLICT (id1, link_type) DO UPDATE SET links = link_count.links + 1
    )
    SELECT is_new FROM added`,
};

const countLinks: Statement = {
  name: "lb_count",
  text: "SELECT links FROM link_count WHERE id1 = $1 AND link_type = $2",
};
const getLinks: Statement = {
  name: "lb_links",
  text: `SELECT id2, time, version, data FROM link
    WHERE id1 = $1 AND link_type = $2 AND id2 = ANY ($3::integer[])`,
};
const getList: Statement = {
  name: "lb_list",
  text: `SELECT id2, time, version, data FROM link WHERE id1 = $1 AND link_type = $2
    ORDER BY time DESC LIMIT $3`,
};
const getTimeRange: Statement = {
  name: "lb_time_range",
  text: `SELECT id2, time, version, data FROM link WHERE id1 = $1 AND link_type = $2
    AND time <= $3 AND time >= $4 ORDER BY time DESC LIMIT $5`,
};

export function postgresLinks(database: Database): LinkStore {
  const linksOf = async (
    statement: Statement,
    values: readonly (string | number)[],
  ): Promise<FoundLink[]> =>
    (await database.read(statement, values)).rows as unknown as FoundLink[];
  return {
    getNode: async (id) => (await database.read(getNode, [id])).rows.length === 1,
    async addNode(id, time, data) {
      await database.write(addNode, [id, time, data]);
    },
    updateNode: async (id, time, data) =>
      (await database.write(updateNode, [id, time, data])).rowCount === 1,
    deleteNode: async (id) => (await database.write(deleteNode, [id])).rowCount === 1,
    addLink: async (id1, type, id2, time, data) =>
      (await database.write(addLink, [id1, type, id2, time, data])).rows[0].is_new === true,
    deleteLink: async (id1, type, id2) =>
      (await database.write(deleteLink, [id1, type, id2])).rowCount === 1,
    async changeType(id1, type, id2, newType) {
      const { rows } = await database.write(changeType, [id1, type, id2, newType]);
      if (rows.length === 0) return 0;
      return rows[0].is_new === true ? 1 : -1;
    },
    async countLinks(id1, type) {
      const { rows } = await database.read(countLinks, [id1, type]);
      return rows.length === 0 ? 0 : (rows[0].links as number);
    },
    getLinks: (id1, type, ids) => linksOf(getLinks, [id1, type, listOf(ids, ids.length)]),
    getList: (id1, type, limit) => linksOf(getList, [id1, type, limit]),
    getTimeRange: (id1, type, high, low, limit) =>
      linksOf(getTimeRange, [id1, type, high, low, limit]),
  };
}
