/**
 * What operators want of a cluster. The manager looks whether it may be, and if so changes the configuration; the
 * rest it does by itself, in small steps (changes.ts). To ask for what is there already changes nothing, so
 * whoever wants to be sure asks again, of the next manager, too.
 *
 *   drain      the node gives all it has to others, and gets nothing more
 *   undrain    it does not any more
 *   remove     the node, which has been drained, leaves
 *   rebalance  the next step at once
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_NODES } from "../../runtime/limits.ts";
import { show } from "../../runtime/show.ts";
import type { Configuration } from "../configuration.ts";
import {
  afterFailures,
  drainRefusal,
  nextStep,
  type PlacedConfiguration,
  withDraining,
} from "../planning/planning.ts";
import { hasNothing } from "../replicas.ts";
import type { Membership } from "./membership.ts";

export const WISHES = ["drain", "undrain", "remove", "rebalance"] as const;

export interface Wish {
  readonly what: (typeof WISHES)[number];
  /** Except to rebalance. */
  readonly node?: NodeId;
}

/** The manager has accepted or refused it; or another node is the manager, if it is known who. */
export type Granted =
  | { readonly answer: "accepted" }
  | { readonly answer: "refused"; readonly why: string }
  | { readonly answer: "elsewhere"; readonly manager: NodeId | undefined };

export type Administrated = Pick<Membership, "self" | "configuration" | "isManager" | "change">;

export function grant(membership: Administrated, wish: Wish): Granted {
  const { configuration } = membership;
  if (!membership.isManager || configuration === undefined) {
    return { answer: "elsewhere", manager: configuration?.manager };
  }
  const why = refusalOf(configuration as PlacedConfiguration, wish);
  if (why !== undefined) return { answer: "refused", why };
  membership.change(`${wish.what} ${wish.node ?? ""}`, (current) => {
    const placed = current as PlacedConfiguration;
    return refusalOf(placed, wish) === undefined ? granted(placed, wish) : undefined;
  });
  return { answer: "accepted" };
}

/** Why it cannot be, with what to do instead. */
function refusalOf(current: PlacedConfiguration, { what, node }: Wish): string | undefined {
  if (what === "rebalance") return undefined;
  const found = current.nodes.find(({ id }) => id === node);
  if (found === undefined) return `the cluster has no node ${node}`;
  if (what === "drain") return found.draining ? undefined : drainRefusal(current, found.id);
  if (what === "undrain") return undefined;
  if (!hasNothing(current.placement, found.id) || found.draining !== true) {
    return `node ${node} has rows, or may get some; drain it first, and wait until it is done`;
  }
  if (current.manager !== node) return undefined;
  return `node ${node} is the manager of the cluster; it holds no data any more, so stop its process`;
}

function granted(current: PlacedConfiguration, { what, node }: Wish): Configuration | undefined {
  const found = current.nodes.find(({ id }) => id === node);
  if (what === "rebalance") return nextStep(current);
  if (what === "remove") {
    const others = current.nodes.map(({ id }) => id).filter((id) => id !== node);
    return afterFailures(current, new Set(others), current.manager!);
  }
  const isDrain = what === "drain";
  return (found?.draining === true) === isDrain ? undefined : withDraining(current, node!, isDrain);
}

/** Checks what somebody asks for. */
export function wishOf(text: string): Wish {
  const { what, node } = parsed(text);
  if (!WISHES.some((each) => each === what)) {
    throw new SituError("SITU_PROTOCOL", `an operator wants ${show(what)}, which is not known`);
  }
  if (what === "rebalance") return { what };
  if (!Number.isInteger(node) || (node as number) < 0 || (node as number) >= MAX_NODES) {
    throw new SituError("SITU_PROTOCOL", `no node has the number ${show(node)}`);
  }
  return { what: what as Wish["what"], node: node as NodeId };
}

function parsed(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text)) as Record<string, unknown>;
  } catch (cause) {
    throw new SituError("SITU_PROTOCOL", "an operator sent what is no JSON", { cause });
  }
}
