/**
 * Who is a member of the memory, when servers die. Compute servers decide, memory servers remember. Each change is one *epoch*,
 * and what the next one is, is agreed on as in Paxos: the configured servers are the acceptors, and more
 * than half of them must take a proposal. A server that was started again has forgotten what it had promised; it is in no formation
 * (formation.ts) and has no vote. So after half of the servers are gone nothing is decided any more: SITU_UNREACHABLE, and
 * nothing that was acknowledged is contradicted.
 *
 * What was decided takes three steps, which anybody may do, or do again:
 *
 *   enter     each member is told, with the ballot of the decision. It refuses all verbs from then on: threads of before are shut out
 *   recover   what had begun before is settled from the journals (recover.ts). Only those who recover may claim threads
 *   ready     each member is told. Old versions are forgotten, all threads are free, and may be claimed as usual
 *
 * That some member is ready says that recovery was complete. That all have entered comes before it. Nobody commits anything
 * before all are ready, for a thread is claimed at all members.
 *
 * A server cannot ask others whether something was decided. It refuses what cannot have been: members that it has not been asked
 * about in that ballot, or that are not fewer, too few, or without a copy of everything; an epoch that is not the next one;
 * and `ready` before anybody has recovered. Whoever completes a decision proposes it to those that were not asked before.
 */

import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import { NAM_MEMBERS } from "../kinds.ts";
import type { Routine } from "../message.ts";
import { checkFormation } from "./claim.ts";
import type { NamDirectory } from "./compute-thread.ts";
import { MAX_FORMATION } from "./formation.ts";
import { answer, JsonMessage, requestOf, wholeOf } from "./json-message.ts";
import { Members } from "./members.ts";
import type { MemoryServer } from "./memory-server.ts";
import { recover } from "./recover.ts";

/** What a server knows of the members. */
export interface MembersState {
  readonly epoch: number;
  readonly alive: readonly NodeId[];
  readonly isReady: boolean;
  /** The one that decided it; 0 for the members as configured. */
  readonly ballot: number;
}

/** For the epoch after the one that the server is in. */
interface Accepted {
  readonly ballot: number;
  readonly alive: readonly NodeId[];
}

interface Promised {
  readonly state: MembersState;
  readonly isPromised: boolean;
  readonly ballot: number;
  readonly accepted: Accepted | null;
}

/** Two proposals are in each other's way so often at most; then somebody else has had time to decide. */
const MOST_ROUNDS = 32;

/** The server's side. */
export class ServerMembership {
  readonly #server: MemoryServer;
  #ballot = 0;
  #accepted: Accepted | undefined;
  /** Of the epoch that the server is in. */
  #decided = 0;

  constructor(server: MemoryServer) {
    this.#server = server;
  }

  serve(incoming: Incoming): void {
    const request = requestOf(incoming);
    checkFormation(this.#server, wholeOf(request.formation, "formation", 0, MAX_FORMATION));
    const epoch = wholeOf(request.epoch, "epoch", 1, MAX_FORMATION);
    if (request.what === "prepare" || request.what === "accept") {
      answer(incoming, this.#promise(request.what, epoch, request));
      return;
    }
    if (request.what === "enter") this.#enter(epoch, request);
    else if (request.what === "ready") this.#ready(epoch, request);
    else if (request.what !== "state") {
      throw new SituError("SITU_PROTOCOL", "a memory server does not know this of its members");
    }
    answer(incoming, this.#state());
  }

  #state(): MembersState {
    const { members, isReady } = this.#server;
    return { epoch: members.epoch, alive: members.alive, isReady, ballot: this.#decided };
  }

  #promise(what: "prepare" | "accept", epoch: number, request: Record<string, unknown>): Promised {
    const ballot = wholeOf(request.ballot, "ballot", 1, MAX_FORMATION);
    const { members } = this.#server;
    const isNext = epoch === members.epoch + 1;
    const isPromised =
      isNext && (what === "prepare" ? ballot > this.#ballot : ballot >= this.#ballot);
    if (isPromised) {
      if (what === "accept") this.#accepted = { ballot, alive: this.#aliveOf(request) };
      this.#ballot = ballot;
    }
    return {
      state: this.#state(),
      isPromised,
      ballot: this.#ballot,
      accepted: this.#accepted ?? null,
    };
  }

  /** It was decided. */
  #enter(epoch: number, request: Record<string, unknown>): void {
    const { id, members } = this.#server;
    if (epoch <= members.epoch) return;
    const alive = this.#aliveOf(request);
    const ballot = wholeOf(request.ballot, "ballot", 1, MAX_FORMATION);
    const accepted = this.#accepted;
    // What was decided by a ballot is what later ballots propose.
    const isOther = accepted !== undefined && accepted.ballot >= ballot && !isSame(accepted, alive);
    const isKnown = epoch === members.epoch + 1 && ballot <= this.#ballot && !isOther;
    if (!isKnown || !alive.includes(id)) this.#refuse("to enter what was not decided");
    this.#ballot = 0;
    this.#accepted = undefined;
    this.#decided = ballot;
    this.#server.enterEpoch(epoch, alive);
  }

  #ready(epoch: number, request: Record<string, unknown>): void {
    const { members, isReady, guard } = this.#server;
    if (epoch < members.epoch || (epoch === members.epoch && isReady)) return;
    const isDecided = epoch === members.epoch && request.ballot === this.#decided;
    if (!isDecided || !guard.isClaimed)
      this.#refuse("to be ready before what had begun is settled");
    this.#server.beReady();
  }

  /** Members only become fewer. */
  #aliveOf({ alive }: Record<string, unknown>): NodeId[] {
    const { members } = this.#server;
    const given: NodeId[] = Array.isArray(alive) ? [...new Set(alive)] : [];
    wholeOf(given.length, "the number of members", 1, members.servers.length);
    const areFewer =
      given.length < members.alive.length && given.every((id) => members.alive.includes(id));
    if (areFewer && given.length >= members.majority && members.isWhole(given)) return given;
    return this.#refuse("members that cannot go on without the others");
  }

  #refuse(what: string): never {
    this.#server.guard.refused++;
    throw new SituError("SITU_PERMISSION", `memory server ${this.#server.id} refuses ${what}`);
  }
}

/** What servers know, by their numbers; those that do not answer in the coroutine's time are an error. */
export function* membersStates(
  directory: NamDirectory,
  servers: readonly NodeId[],
): Routine<MembersState[]> {
  return yield* askAll<MembersState>(directory, servers, { what: "state", epoch: 1 });
}

/**
 * Goes on without `suspects`: decides on the next members, unless others have, and sees to it that they are ready. To be called
 * again if it fails: another server may have died meanwhile. `random` gives numbers below what it is given.
 */
export function* changeMembers(
  directory: NamDirectory & { readonly members: Members },
  suspects: readonly NodeId[],
  random: (below: number) => number,
): Routine<MembersState> {
  const members = new Members(directory.servers, directory.members.copies);
  members.become(directory.members.epoch, directory.members.alive);
  const asked = members.alive.filter((server) => !suspects.includes(server));
  const states = yield* membersStates(directory, asked);
  const latest = latestOf(states);
  if (latest === undefined) throw tooFew(members, []);
  members.become(latest.epoch, latest.alive);
  // All of them are of one epoch before the next one is decided.
  const late = asked.filter((id, i) => members.has(id) && states[i].epoch < latest.epoch);
  if (late.length > 0) yield* enterAll(directory, latest, late);
  const reachable = members.alive.filter((server) => !suspects.includes(server));
  if (reachable.length < members.alive.length) {
    const decided = yield* decide(directory, members, reachable, random);
    return yield* complete(directory, decided, random);
  }
  // Somebody else has decided, and may have died since.
  const isDone = states.every(({ epoch, isReady }) => epoch === latest.epoch && isReady);
  return isDone ? latest : yield* complete(directory, latest, random);
}

function* decide(
  directory: NamDirectory,
  members: Members,
  reachable: readonly NodeId[],
  random: (below: number) => number,
): Routine<MembersState> {
  if (reachable.length < members.majority) throw tooFew(members, reachable);
  if (!members.isWhole(reachable)) throw lostCopies(members, reachable);
  const epoch = members.epoch + 1;
  let ballot = 1 + random(16);
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const prepared = yield* askAll<Promised>(directory, reachable, {
      what: "prepare",
      epoch,
      ballot,
    });
    const entered = latestOf(prepared.map(({ state }) => state));
    if (entered !== undefined && entered.epoch >= epoch) return entered;
    if (isMajority(members, prepared)) {
      const alive = acceptedOf(prepared)?.alive ?? reachable;
      const request = { what: "accept", epoch, ballot, alive };
      const taken = yield* askAll<Promised>(directory, reachable, request);
      const later = latestOf(taken.map(({ state }) => state));
      if (later !== undefined && later.epoch >= epoch) return later;
      if (isMajority(members, taken)) return { epoch, alive, isReady: false, ballot };
    }
    ballot = Math.max(...prepared.map((each) => each.ballot)) + 1 + random(16);
  }
  throw new SituError(
    "SITU_OVERLOADED",
    "others are deciding on the members of the memory at the same time: try again",
  );
}

function isSame({ alive }: Accepted, other: readonly NodeId[]): boolean {
  return alive.length === other.length && other.every((id) => alive.includes(id));
}

function isMajority({ majority }: Members, answers: readonly Promised[]): boolean {
  return answers.filter(({ isPromised }) => isPromised).length >= majority;
}

function acceptedOf(answers: readonly Promised[]): Accepted | undefined {
  let latest: Accepted | undefined;
  for (const { accepted } of answers) {
    if (accepted !== null && accepted.ballot > (latest?.ballot ?? 0)) latest = accepted;
  }
  return latest;
}

/** Servers enter what was decided. Some may not have been asked before. */
function* enterAll(
  directory: NamDirectory,
  { epoch, alive, ballot }: MembersState,
  servers: readonly NodeId[],
): Routine<MembersState[]> {
  yield* askAll(directory, servers, { what: "accept", epoch, alive, ballot });
  return yield* askAll<MembersState>(directory, servers, { what: "enter", epoch, alive, ballot });
}

/** From a decision to members that are ready. */
function* complete(
  directory: NamDirectory & { readonly members: Members },
  decided: MembersState,
  random: (below: number) => number,
): Routine<MembersState> {
  const { epoch, alive } = decided;
  const entered = yield* enterAll(directory, decided, alive);
  const latest = latestOf(entered) as MembersState;
  // Others have gone on: so will whoever calls this again.
  if (latest.epoch > epoch) return yield* complete(directory, latest, random);
  if (!entered.some(({ isReady }) => isReady)) {
    const members = new Members(directory.servers, directory.members.copies);
    members.become(epoch, alive);
    const tables = directory.tables.map((table) => table.withMembers(members));
    yield* recover({ ...directory, members, tables }, random);
  }
  const request = { what: "ready", epoch, ballot: latest.ballot };
  const ready = yield* askAll<MembersState>(directory, alive, request);
  const last = latestOf(ready) as MembersState;
  return last.epoch > epoch ? yield* complete(directory, last, random) : last;
}

function latestOf(states: readonly MembersState[]): MembersState | undefined {
  let latest: MembersState | undefined;
  for (const state of states) if (state.epoch > (latest?.epoch ?? 0)) latest = state;
  return latest;
}

function* askAll<Answer>(
  { formation = 0 }: NamDirectory,
  servers: readonly NodeId[],
  request: object,
): Routine<Answer[]> {
  const messages = servers.map(
    (server) => new JsonMessage<Answer>(server, NAM_MEMBERS, { formation, ...request }),
  );
  if (messages.length > 0) yield messages;
  return messages.map((message) => message.answer);
}

function tooFew({ servers, majority }: Members, reachable: readonly NodeId[]): SituError {
  return new SituError(
    "SITU_UNREACHABLE",
    `${reachable.length} of ${servers.length} memory servers can be reached, and ${majority} are needed to go on without the others: ` +
      "bring back those that are only stopped or cut off; if they are lost, restart all memory servers and load the data again",
  );
}

function lostCopies({ copies }: Members, reachable: readonly NodeId[]): SituError {
  return new SituError(
    "SITU_MEMORY_LOST",
    `with ${copies === 1 ? "one copy" : `${copies} copies`} of each row, servers ${reachable.join(", ")} do not have all of them: ` +
      "restart all memory servers, and load the data again",
  );
}
