/**
 * How a compute server gets an execution thread of its own. The server with the vector has, beside each slot, the word by
 * which the slot's owner shows that it is alive (beats.ts); 0 says that the slot is free. To enter is to be given a
 * free one, whose word is not 0 from then on. Whoever was given one and is never heard of again is taken for dead like any
 * other, and its slot becomes free when it has been settled. To leave is to write 0, which is a verb.
 */

import type { Incoming } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import { NAM_ENTER } from "../kinds.ts";
import type { Routine } from "../message.ts";
import { beatAt } from "./beats.ts";
import { checkMembers } from "./claim.ts";
import { type ComputeThread, type NamDirectory, vectorCopies } from "./compute-thread.ts";
import { MAX_FORMATION } from "./formation.ts";
import { MAX_TIMESTAMP } from "./header.ts";
import { answer, JsonMessage, requestOf, wholeOf } from "./json-message.ts";
import type { MemoryServer } from "./memory-server.ts";
import { TIMESTAMPS, VECTOR_AT } from "./segments.ts";
import { WriteVerb } from "./verbs.ts";

/** What the word of a slot begins with. */
const FIRST_BEAT = 1;

/** At the server with the vector. Slots are given in turn: what was freed last rests longest. */
export class Entrance {
  readonly #server: MemoryServer;
  #next = 0;
  #epoch = 1;

  constructor(server: MemoryServer) {
    this.#server = server;
  }

  serve(incoming: Incoming): void {
    const { formation, epoch } = requestOf(incoming);
    checkMembers(
      this.#server,
      wholeOf(formation, "formation", 0, MAX_FORMATION),
      wholeOf(epoch, "epoch", 1, MAX_FORMATION),
    );
    answer(incoming, { pair: this.#take() });
  }

  #take(): number {
    const { options, members } = this.#server;
    const { pairs } = options;
    const { i32 } = this.#server.region(TIMESTAMPS);
    // Threads of earlier members rest first: their journals tell those who had them what became of a commit.
    if (this.#epoch !== members.epoch) {
      this.#epoch = members.epoch;
      this.#next =
        1 + i32.subarray(VECTOR_AT, VECTOR_AT + pairs).findLastIndex((each) => each !== 0);
    }
    for (let i = 0; i < pairs; i++) {
      const pair = (this.#next + i) % pairs;
      const isFree = i32[VECTOR_AT + pairs + pair] === 0;
      // One that has used all of its timestamps is of no use to anybody.
      if (!isFree || i32[VECTOR_AT + pair] >>> 0 >= MAX_TIMESTAMP) continue;
      i32[VECTOR_AT + pairs + pair] = FIRST_BEAT;
      this.#next = pair + 1;
      return pair;
    }
    throw new SituError(
      "SITU_FULL",
      `all ${pairs} execution threads of this memory are taken: close databases that are not used, or give the ` +
        "memory servers more threads",
    );
  }
}

/** The number of a thread that nobody else has. */
export function* enter(directory: NamDirectory): Routine<number> {
  const [server] = vectorCopies(directory);
  const { formation = 0, members } = directory;
  const epoch = members?.epoch ?? 1;
  const message = new JsonMessage<{ readonly pair: number }>(server, NAM_ENTER, {
    formation,
    epoch,
  });
  yield [message];
  return message.answer.pair;
}

/** Frees the slot of a thread that has nothing under way. */
export function* leave(thread: ComputeThread): Routine<void> {
  const { directory, slot } = thread;
  const [server] = vectorCopies(directory);
  const words = new Int32Array([0]);
  yield* thread.sendHarmless([
    new WriteVerb(thread, server, TIMESTAMPS, beatAt(directory, slot), words),
  ]);
}
