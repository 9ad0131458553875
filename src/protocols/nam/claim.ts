/**
 * Claiming a pair: the thread of that number is the claimant's from now on, at every memory server, and verbs
 * of whoever had it before are refused. Both sides of the message. The claimant takes an incarnation above the
 * largest that any server knows. If another claims at the same time, one of the two has the larger
 * number or came first, and the other one tries again.
 */

import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import { NAM_CLAIM } from "../kinds.ts";
import { Message, type Routine } from "../message.ts";
import { aliveOf, type ComputeThread, type NamDirectory } from "./compute-thread.ts";
import type { MemoryServer } from "./memory-server.ts";
import { superseded } from "./verbs.ts";

class ClaimPair extends Message {
  readonly kind = NAM_CLAIM;
  readonly #pair: number;
  readonly #incarnation: number;
  readonly #claimant: number;
  readonly #directory: NamDirectory;
  readonly #isRecovering: boolean;
  isGranted = false;
  incarnation = 0;

  constructor(
    to: NodeId,
    pair: number,
    incarnation: number,
    claimant: number,
    directory: NamDirectory,
    isRecovering: boolean,
  ) {
    super(to);
    this.#pair = pair;
    this.#incarnation = incarnation;
    this.#claimant = claimant;
    this.#directory = directory;
    this.#isRecovering = isRecovering;
  }

  encode(out: Writer): void {
    out.word(this.#pair);
    out.word(this.#incarnation);
    out.word(this.#claimant);
    const { formation = 0, members } = this.#directory;
    out.word(formation);
    out.word(members?.epoch ?? 1);
    out.word(this.#isRecovering ? 1 : 0);
  }

  protected decode(reply: Reader): void {
    this.isGranted = reply.word() === 1;
    this.incarnation = reply.word();
  }
}

export function serveClaim(server: MemoryServer, incoming: Incoming): void {
  const pair = incoming.body.word();
  const incarnation = incoming.body.word();
  const claimant = incoming.body.word();
  const formation = incoming.body.word();
  const epoch = incoming.body.word();
  checkMembers(server, formation, epoch, incoming.body.word() === 1);
  const claim = server.guard.claim(pair, incarnation, claimant);
  const out = incoming.reply();
  out.word(claim.isGranted ? 1 : 0);
  out.word(claim.incarnation);
}

/** Throws unless the server is of this memory, and knows the same members as whoever asks. */
export function checkMembers(
  server: MemoryServer,
  formation: number,
  epoch: number,
  isRecovering = false,
): void {
  checkFormation(server, formation);
  const { id, members, isReady } = server;
  if (members.epoch === epoch && isReady !== isRecovering) return;
  const why =
    members.epoch === epoch
      ? isReady
        ? "has been settled after its members had changed"
        : "is being settled, for its members have changed"
      : `has the ${members.epoch}th list of members, not the ${epoch}th`;
  throw new SituError(
    "SITU_STALE_CONFIGURATION",
    `the memory that server ${id} belongs to ${why}: begin again`,
  );
}

/** A server that was started again has nothing of what it had: nobody works with it as if it had. */
export function checkFormation({ id, formation }: MemoryServer, wanted: number): void {
  if (formation === wanted) return;
  throw new SituError(
    "SITU_MEMORY_LOST",
    `memory server ${id} was started again, and what it held is lost: restart all memory servers, and load the data again`,
  );
}

/** `claimant` differs from everybody else's who may claim the same pair. */
export function* claimPair(
  thread: ComputeThread,
  claimant: number,
  isRecovering = false,
): Routine<void> {
  const { directory } = thread;
  const timestampServers = directory.members === undefined ? directory.timestampServers : [];
  const all = [...new Set([...aliveOf(directory), ...timestampServers])];
  let incarnation = thread.incarnation + 1;
  for (;;) {
    const claims = all.map(
      (server) =>
        new ClaimPair(server, thread.pair, incarnation, claimant, directory, isRecovering),
    );
    yield claims;
    if (thread.isSuperseded) throw superseded();
    for (const { error } of claims) if (error !== undefined) throw error;
    if (claims.every(({ isGranted }) => isGranted)) break;
    incarnation = 1 + Math.max(...claims.map((claim) => claim.incarnation));
  }
  thread.claimed(incarnation);
}
