/**
 * Exactly once across a fail-over: what became of a request whose reply was lost. As long as its node lives on in
 * the configuration, that node is asked again, under the same number. When it has left, the members are asked
 * (cluster/outcome.ts). Let the request be of configuration n, and the members of m.
 *
 *   One knows            It holds: committed at a replica, or settled by a recovery.
 *
 *   None knows, and      It was not committed, and will not be. Let p be a partition that it would write, and P the
 *   P remembers          primary of p in m, in the life that it had in n, and a copy of p in n. To be committed takes a
 *                        record at all copies of p. P has none (it would say "not yet"), and has not had one that
 *                        became a commit, for it would remember that: copies note the origin of each record that
 *                        they install or apply. Other copies have none that P does not know of: P has asked them in m,
 *                        and takes over what they have. None can come any more: what the coordinator has sent belongs
 *                        to an earlier configuration than m, and is refused. So is what it sends from now on, if it
 *                        still runs: a life of a node that has left never sends anything in a configuration that it is
 *                        no member of (NodeService.adopt), be it that transaction or another attempt of its call.
 *
 *   None knows, and      Nobody can say. P may have died as well, or have forgotten (cluster/committed-origins.ts says
 *   no P remembers       for how long it has not): SITU_UNKNOWN_OUTCOME.
 *
 * For a transaction that was submitted, one such partition is enough. Of a call nobody here knows what it writes: it
 * takes all partitions, and before that the word of all members that they do not run it themselves, as a node
 * that it was passed on to may do. What a procedure returned is lost with its node, so of one that was committed its caller can
 * only be told that. One that was not is called again, at another node.
 */

import { type Called, type CallInDoubt, CallOutcomeOf, type Returned } from "../../cluster/call.ts";
import { type Asked, OutcomeOf } from "../../cluster/outcome.ts";
import { isForgotten, type TimeLeft } from "../../cluster/session.ts";
import { SubmitInDoubt } from "../../cluster/submit.ts";
import { livesOn, type View } from "../../cluster/view.ts";
import type { ConfigurationId, NodeId } from "../../fabric/fabric.ts";
import { ABORTED, COMMITTED, type Outcome, type Parts } from "../../protocols/coordinator.ts";
import { type Message, once } from "../../protocols/message.ts";
import type { Origin } from "../../protocols/origin.ts";
import { SituError } from "../../runtime/errors.ts";
import { CLOCK_SLACK, OUTCOME_GRACE_MS } from "../../runtime/limits.ts";
import { nextWrite, partitionAt } from "../../tables/served/requests.ts";
import { isPassing } from "./follower.ts";
import type { ClusterConnection } from "./remote-database.ts";

/** A request in doubt: in which configuration it was sent, and how long ago. */
export class Begun {
  readonly view: View;
  readonly time: TimeLeft;
  readonly #leftMs: number;

  constructor(view: View, time: TimeLeft) {
    this.view = view;
    this.time = time;
    this.#leftMs = time.leftMs();
  }

  get ageMs(): number {
    return this.#leftMs - this.time.leftMs();
  }
}

/** What members say of it; undefined if some of them do not answer. */
type Verdict = "committed" | "aborted" | "unknown" | undefined;

export class Doubts {
  readonly #connection: ClusterConnection;
  readonly #pause: (than: ConfigurationId, leftMs: number) => Promise<void>;

  constructor(
    connection: ClusterConnection,
    pause: (than: ConfigurationId, leftMs: number) => Promise<void>,
  ) {
    this.#connection = connection;
    this.#pause = pause;
  }

  /** What became of a transaction. `origin` is for whom it was, if that is not this client. */
  async ofSubmit(
    doubt: SubmitInDoubt,
    parts: Parts,
    begun: Begun,
    origin?: Origin,
  ): Promise<Outcome> {
    const { client, driver } = this.#connection;
    const { message } = doubt;
    const asked = { numbered: message.numbered, origin };
    const written = partitionsOf(parts);
    try {
      for (;;) {
        const leftMs = begun.time.leftMs();
        if (leftMs <= 0 || driver.isClosed || isForgotten(message.error)) return doubt;
        const now = client.view.current;
        if (livesOn(message.to, begun.view, now)) {
          const again = client.submitAgain(message);
          const outcome = await driver.start(again, leftMs + OUTCOME_GRACE_MS);
          if (!(outcome instanceof SubmitInDoubt)) return outcome;
        } else {
          // For another's call there may have been earlier attempts: that one was aborted says nothing of this one.
          const isRepeated = origin !== undefined;
          const isEnough = (has: (partition: number) => boolean): boolean => written.some(has);
          const verdict = await this.#ask(asked, begun, now, isEnough, isRepeated);
          if (verdict === "committed") return COMMITTED;
          if (verdict === "aborted") return ABORTED;
          if (verdict === "unknown") return doubt;
        }
        await this.#pause(now.configurationId, begun.time.leftMs());
      }
    } finally {
      client.settled(message);
    }
  }

  /** What became of a call; undefined if it was not done, and can be called again. */
  async ofCall(doubt: CallInDoubt, called: Called, begun: Begun): Promise<Returned | undefined> {
    const { client, driver } = this.#connection;
    const { message } = doubt;
    const asked = { numbered: message.numbered, origin: called.origin };
    try {
      for (;;) {
        const leftMs = begun.time.leftMs();
        if (leftMs <= 0 || driver.isClosed || isForgotten(message.error)) return doubt;
        const now = client.view.current;
        if (livesOn(message.to, begun.view, now)) {
          await driver.start(client.callAgain(message), leftMs + OUTCOME_GRACE_MS);
          if (message.returned !== undefined) return message.returned;
          if (!message.isInDoubt) return undefined;
        } else {
          const found = await this.#askRunning(asked, now, leftMs);
          if (found !== undefined && found !== "nobody") return found;
          const all = Array.from({ length: now.placement.partitions }, (_, each) => each);
          const verdict =
            found && (await this.#ask(asked, begun, now, (has) => all.every(has), true));
          if (verdict === "committed") return { isDone: false, error: lostResult(doubt, called) };
          if (verdict === "aborted") return undefined;
          if (verdict === "unknown") return doubt;
        }
        await this.#pause(now.configurationId, begun.time.leftMs());
      }
    } finally {
      client.settled(message);
    }
  }

  /**
   * The result at a node that it was passed on to; "nobody" if no member has run it, or has done anything. It may have
   * been passed on to several, one after the other: one that could do nothing says nothing about the next.
   */
  async #askRunning(
    asked: Asked,
    now: View,
    leftMs: number,
  ): Promise<Returned | "nobody" | undefined> {
    const messages = now.nodes.map((node) => new CallOutcomeOf(node, asked));
    await Promise.all(messages.map((message) => this.#send(message, now, leftMs)));
    const results = messages.flatMap(({ returned }) => returned ?? []);
    const done = results.find((each) => each.isDone || !isPassing(each.error));
    if (done !== undefined) return done;
    return messages.every(({ error }) => error === undefined) ? "nobody" : undefined;
  }

  /**
   * Asks all members. Returns as soon as one knows, or `isEnough` of the partitions whose primary remembers everything:
   * then it is not committed. `isRepeated` says that what was aborted may have been tried again since.
   */
  #ask(
    asked: Asked,
    begun: Begun,
    now: View,
    isEnough: (has: (partition: number) => boolean) => boolean,
    isRepeated = false,
  ): Promise<Verdict> {
    const messages = now.nodes.map((node) => new OutcomeOf(node, asked));
    /** Who does not know it, and how old the request was when that was heard. */
    const denying = new Map<NodeId, { readonly message: OutcomeOf; readonly ageMs: number }>();
    /** Whether the primary of a partition would know if something had been written there. */
    const isDenied = (partition: number): boolean => {
      const primary = now.placement.primaryOf(partition);
      const told = denying.get(primary);
      return (
        told !== undefined &&
        told.message.completeMs(partition) > told.ageMs &&
        wasCopy(primary, partition, begun.view, now)
      );
    };
    return new Promise((resolve, reject) => {
      let open = messages.length;
      const heard = (message: OutcomeOf): void => {
        open--;
        const { error, outcome, to } = message;
        if (error === undefined) {
          const isOver = outcome === "committed" || (outcome === "aborted" && !isRepeated);
          if (isOver) resolve(outcome);
          if (!isOver) denying.set(to, { message, ageMs: begun.ageMs * CLOCK_SLACK });
          if (!isOver && isEnough(isDenied)) {
            // Of a call, all have to be heard: one of them may know that it was committed.
            if (!isRepeated || open === 0) resolve("aborted");
          }
        }
        if (open > 0) return;
        const isAnswered = messages.every((each) => each.error === undefined);
        resolve(isAnswered ? "unknown" : undefined);
      };
      for (const message of messages) {
        this.#send(message, now, begun.time.leftMs()).then(() => heard(message), reject);
      }
    });
  }

  async #send(message: Message, now: View, leftMs: number): Promise<void> {
    const { driver } = this.#connection;
    await driver.start(once(message), Math.max(leftMs, 1), now.configurationId);
    const { error } = message;
    if (error === undefined || error.code === "SITU_CLOSED" || isPassing(error)) return;
    throw error;
  }
}

/** Whether a node had a copy of a partition then, in the life that it has now. */
function wasCopy(node: NodeId, partition: number, before: View, now: View): boolean {
  return livesOn(node, before, now) && before.placement.copiesOf(partition).includes(node);
}

function partitionsOf(parts: Parts): number[] {
  const partitions = new Set<number>();
  for (const { writes } of parts.values()) {
    for (let at = 0; at < writes.length; at = nextWrite(writes, at)) {
      partitions.add(partitionAt(writes, at));
    }
  }
  return [...partitions];
}

function lostResult({ message }: CallInDoubt, { procedure }: Called): SituError {
  return new SituError(
    "SITU_UNKNOWN_OUTCOME",
    `procedure ${procedure} was committed, and what it returned was lost with node ${message.to}: do not ` +
      "call it again",
  );
}
