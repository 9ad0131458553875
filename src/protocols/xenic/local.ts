/**
 * Transactions of which all rows are at the own node (§4.2.4): the host executes them on its own memory, table and log
 * together. One that writes is handed to the NIC, which locks, compares all versions that were read with what it knows, and
 * goes on with LOG. So the second hole is closed: what the host has read may be older than what the NIC has.
 *
 * One that only reads is answered by the host alone in the paper. That is serializable and not strictly so: what another node
 * was told to be committed may be on its way here, and only a lock at the NIC tells of it. With `asksNic` the NIC
 * compares the versions, for one round trip over the bus; without it nothing crosses the bus.
 */

import type { Work, XenicCoordinator, XenicOutcome } from "./coordinator.ts";
import type { XenicHost } from "./host.ts";
import { type Item, rowId } from "./message.ts";
import type { XenicNic } from "./nic.ts";
import type { NicPorts, Placement } from "./ports.ts";
import { execute, type Wanted } from "./procedure.ts";

function isLocal({ self }: NicPorts, placement: Placement, wanted: Wanted): boolean {
  return [...wanted.reads, ...wanted.writes].every(
    ({ table, key }) => placement.primaryOf(placement.shardOf(table, key)) === self,
  );
}

/** At the host. `done` runs there, too. False if it wants rows of other nodes: then nothing has happened. */
export function runLocal(
  nic: XenicNic,
  coordinator: XenicCoordinator,
  work: Work,
  done: (outcome: XenicOutcome) => void,
): boolean {
  const { host, ports, placement, options } = nic;
  const { switches, procedures } = options;
  const procedure = procedures[work.procedure];
  const items = new Map<string, Item>();
  let wanted: Wanted = work;
  for (;;) {
    if (!isLocal(ports, placement, wanted)) return false;
    for (const row of wanted.reads) items.set(rowId(row), itemOf(host, row, false));
    for (const row of wanted.writes) items.set(rowId(row), itemOf(host, row, true));
    const execution = execute(procedure, work.args, [...items.values()]);
    if (execution.kind === "more") {
      wanted = execution;
      continue;
    }
    if (execution.kind === "refused" || execution.kind === "conflict") {
      done({ kind: "aborted", reason: execution.kind });
      return true;
    }
    const { writes, result } = execution;
    const all = [...items.values()];
    if (writes.length === 0 && !switches.asksNic) {
      done({ kind: "committed", result });
      return true;
    }
    // Locked is what is written, whatever the transaction has reserved.
    const written = new Set(writes.map(rowId));
    const asked = all.map((item) => ({ ...item, isWritten: written.has(rowId(item)) }));
    const words =
      asked.length * 4 + writes.reduce((sum, { value }) => sum + (value?.length ?? 0), 0);
    nic.bus.toNic(words, () => coordinator.beginLocal(work, asked, writes, result, done));
    return true;
  }
}

function itemOf(host: XenicHost, row: { table: number; key: number }, isWritten: boolean): Item {
  const { version, value } = host.read(row);
  return { table: row.table, key: row.key, isWritten, version, value };
}
