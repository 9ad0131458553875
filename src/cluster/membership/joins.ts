/** What it means that a node asks to become a member, to the manager. */

import type { Configuration, NodeAddress } from "../configuration.ts";
import type { Join } from "./messages.ts";

/**
 * A member already, in this life; a member that has restarted, with what it had; or none. One that has its id
 * from another store is refused.
 */
export function joinedAs(
  { nodes }: Configuration,
  { node, hasItsData }: Join,
): "member" | "restarted" | "new" | { readonly refusal: string } {
  const known = nodes.find(({ id }) => id === node.id);
  if (known === undefined) return "new";
  if (known.instance === node.instance) return "member";
  if (hasItsData) return "restarted";
  return { refusal: idIsTaken(known) };
}

export function idIsTaken({ id, host, port }: NodeAddress): string {
  return `node ${id} is one at ${host}:${port} with another store; choose another id`;
}
