/**
 * VALIDATE (§4.2, step 4): is each row still of the version that EXECUTE has read, and not locked by another? It is asked when
 * all locks are held and all rows are read. Then there was one moment, between the last read and the first answer here, at which
 * everything that the transaction has read was so. It changes nothing, so copies of it do no harm.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { XENIC_VALIDATE, XENIC_VALIDATED } from "../kinds.ts";
import type { Name } from "../names.ts";
import type { TwoWords } from "./caching-index.ts";
import { gather } from "./execute.ts";
import { CONFLICT, type Item, OK, ownerOf, XenicMessage } from "./message.ts";
import type { AnyNic } from "./nic.ts";
import { type NicRoutine, start } from "./routine.ts";

export function validateMessage(name: Name, self: NodeId, items: readonly Item[]): XenicMessage {
  const versions = items.map(({ table, key, version }) => ({
    table,
    key,
    isWritten: false,
    version,
  }));
  return new XenicMessage(XENIC_VALIDATE, name, { answerTo: self, items: versions });
}

export function serveValidate(nic: AnyNic, { name, items, answerTo }: XenicMessage): void {
  start(areStill(nic, items, ownerOf(name)), (isValid) => {
    const status = isValid ? OK : CONFLICT;
    nic.ports.post(answerTo, new XenicMessage(XENIC_VALIDATED, name, { status }));
  });
}

/** Whether rows are of the versions that they are said to be of. */
export function* areStill(
  nic: AnyNic,
  items: readonly Item[],
  owner: TwoWords,
): NicRoutine<boolean> {
  const found = yield* gather(nic, items, owner);
  return found?.every((row, i) => isSame(row.version, items[i].version)) ?? false;
}

export function isSame(one: TwoWords | undefined, other: TwoWords | undefined): boolean {
  return one?.high === other?.high && one?.low === other?.low;
}
