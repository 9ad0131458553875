/** Tables that Situ makes for itself, beside those of its users: they are not dumped, and not migrated. */

const OWN = "situ ";

/** The log of a node that keeps copies for others: a store that has it belongs to a cluster. */
export const BACKUP_LOG = `${OWN}backup log`;
/** What a thread of a node has locked for others, and does not know the outcome of. */
export const LOCK_RECORDS = {
  nic: `${OWN}lock records of the nic`,
  host: `${OWN}lock records of the host`,
};
/** Where the slots are that short records lie in. */
export const RECORD_PIECES = `${OWN}record pieces`;
/** What coordinators of the node have decided, and no record proves. */
export const DECISIONS = `${OWN}decisions`;
/** How often the node of the store was started. */
export const LIVES = `${OWN}lives`;
/** The next numbers of autoIncrement() keys. */
export const COUNTERS = `${OWN}counters`;
/** How far loads of rows are that can be resumed. */
export const LOADS = `${OWN}loads`;

/** The graphs of the store: their kinds and types. */
export const GRAPHS = `${OWN}graphs`;
/** Objects of graphs that are being deleted in several steps. */
export const LEAVING_OBJECTS = `${OWN}leaving objects`;
const GRAPH_INDEX = `${OWN}graph `;

/** The table that leads from the ids of a graph's objects to their places. */
export function graphIndexName(graph: string): string {
  return GRAPH_INDEX + graph;
}

/** Whether a table is such a one. */
export function isGraphIndex(name: string): boolean {
  return name.startsWith(GRAPH_INDEX);
}

export function isOwnTable(name: string): boolean {
  return name.startsWith(OWN);
}
