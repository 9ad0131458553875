/**
 * Where each phase of a transaction runs: the table that makes one protocol FaRM's or FaSST's, or a
 * mixture that neither has. Rows are found by verb, which no program of the other node serves, or by
 * message; every phase has the thread that serves its messages (phases/phases.ts). Phases that share state at
 * a node share a thread; a table that tears them apart is refused.
 *
 *                    execute   all others
 *   FaRM, one-sided  verb      host          §3.1, §3.4
 *   FaSST, rpc       host      host          §4, §5; reads and locks rows in one message
 *
 * In Node a message that the host must serve wakes another thread, so both have the NIC worker in the
 * host's place, unless told otherwise.
 */

import type { Place } from "../fabric/fabric.ts";
import { SituError } from "../runtime/errors.ts";
import { MESSAGES, PHASES, type Phase, type PhaseName } from "./phases/phases.ts";

/** A thread of a node. */
export type Thread = Exclude<Place, "verb">;

/** One of several phases, by their names. */
export type Places = Readonly<Record<PhaseName, Place>>;

export interface Protocol {
  readonly name: string;
  readonly places: Places;
  /** Whether rows are found by verb. What verbs cannot find is asked for by message. */
  readonly readsByVerb: boolean;
  /** Whether procedures lock rows in the message that reads them. */
  readonly locksOnRead: boolean;
  /** The thread that serves each kind of message. */
  readonly threads: readonly (Thread | undefined)[];
}

/** What is written down of a protocol; the rest of its phases are at one thread. */
interface ProtocolTable {
  readonly locksOnRead: boolean;
  readonly places: Partial<Places>;
}

export const PROTOCOLS = {
  "one-sided": { locksOnRead: false, places: { execute: "verb" } },
  rpc: { locksOnRead: true, places: {} },
} as const satisfies Record<string, ProtocolTable>;

export type ProtocolName = keyof typeof PROTOCOLS;

const PHASE_NAMES = Object.keys(PHASES) as PhaseName[];

/**
 * A protocol whose phases are at one thread, but for what its table and `mixture` say. One that is not known here
 * reads by message. Throws SITU_CONFIG for a mixture that cannot be.
 */
export function protocolOf(name: string, thread: Thread, mixture: Partial<Places> = {}): Protocol {
  const known: ProtocolTable = Object.hasOwn(PROTOCOLS, name)
    ? PROTOCOLS[name as ProtocolName]
    : PROTOCOLS.rpc;
  const wished = { ...known.places, ...mixture };
  const places = Object.fromEntries(
    PHASE_NAMES.map((phase) => [phase, wished[phase] ?? placeFor(phase, thread)]),
  ) as Places;
  checkPlaces(places);
  const threads: (Thread | undefined)[] = new Array(256).fill(undefined);
  for (const { kind, phase } of MESSAGES) {
    const place = places[phase];
    // What no verb finds is found where the commit is coordinated.
    threads[kind] = place === "verb" ? (places.coordinate as Thread) : place;
  }
  const { locksOnRead } = known;
  return { name, places, readsByVerb: places.execute === "verb", locksOnRead, threads };
}

/** Which thread serves a kind of message. */
export function threadOf({ threads }: Protocol, kind: number): Thread {
  return threads[kind] ?? "nic";
}

/** The phases and places of a mixture that somebody has written down. Throws SITU_CONFIG for others. */
export function placesOf(given: unknown): Partial<Places> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw refused("places is an object: a place for each phase that has one of its own");
  }
  for (const [phase, place] of Object.entries(given)) {
    if (!Object.hasOwn(PHASES, phase)) {
      throw refused(
        `there is no phase ${JSON.stringify(phase)}; there are ${PHASE_NAMES.join(", ")}`,
      );
    }
    const { at }: Phase = PHASES[phase as PhaseName];
    if (!at.includes(place as Place)) {
      throw refused(`${phase} can be at ${at.join(", ")}, not at ${JSON.stringify(place)}`);
    }
  }
  return given as Partial<Places>;
}

function placeFor(phase: PhaseName, thread: Thread): Place {
  const { at }: Phase = PHASES[phase];
  return at.includes(thread) ? thread : at[0];
}

function checkPlaces(places: Places): void {
  const keepers = new Map<string, PhaseName>();
  for (const phase of PHASE_NAMES) {
    const { at, shares }: Phase = PHASES[phase];
    if (!at.includes(places[phase])) throw refused(`${phase} cannot be at ${places[phase]}`);
    if (shares === undefined) continue;
    const keeper = keepers.get(shares);
    if (keeper === undefined) keepers.set(shares, phase);
    else if (places[keeper] !== places[phase]) {
      throw refused(
        `${keeper} is at the ${places[keeper]} and ${phase} at the ${places[phase]}, but both need ` +
          `${shares}, which one thread keeps: put them at the same place`,
      );
    }
  }
}

function refused(why: string): SituError {
  return new SituError("SITU_CONFIG", why);
}
