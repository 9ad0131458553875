/**
 * A coordinator's questions, and the answers to them, which may come from others than those who were asked. Whatever is not
 * answered is asked again after a pause that grows; some give up after so many times, and what must be (LOG and what
 * follows it) is asked until there is an answer or another configuration.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { XENIC_RESEND_MAX_US, XENIC_RESEND_MIN_US } from "../../runtime/limits.ts";
import type { XenicMessage } from "./message.ts";
import type { NicPorts } from "./ports.ts";
import type { NicRoutine } from "./routine.ts";

export interface Post {
  readonly to: NodeId;
  readonly message: XenicMessage;
}

export interface Answer {
  readonly from: NodeId;
  readonly message: XenicMessage;
}

/** Of a question that nobody must give up. */
export const FOR_EVER = Number.POSITIVE_INFINITY;

interface Waiting {
  accept(answer: Answer): void;
}

export class Asking {
  /** Posts that were repeated. */
  repeated = 0;
  readonly #ports: NicPorts;
  /** By the sequence of the transaction: a coordinator asks one thing at a time for each. */
  readonly #waiting = new Map<number, Waiting>();

  constructor(ports: NicPorts) {
    this.#ports = ports;
  }

  answered(from: NodeId, message: XenicMessage): void {
    this.#waiting.get(message.name.sequence)?.accept({ from, message });
  }

  /**
   * Posts, and posts again, until `accept` has seen enough: it is given each answer and says which posts need not be repeated
   * any more, and whether all is there. False if it was given up.
   */
  *until(
    sequence: number,
    posts: readonly Post[],
    accept: (answer: Answer, isDone: (post: Post) => void) => boolean,
    times: number,
  ): NicRoutine<boolean> {
    const open = new Set(posts);
    let isComplete = false;
    yield (resume) => {
      let attempt = 0;
      let timer = { cancel(): void {} };
      const over = (): void => {
        timer.cancel();
        this.#waiting.delete(sequence);
        resume();
      };
      const post = (): void => {
        if (attempt >= times) {
          over();
          return;
        }
        const pauseUs = Math.min(XENIC_RESEND_MIN_US * 2 ** attempt, XENIC_RESEND_MAX_US);
        if (attempt++ > 0) this.repeated += open.size;
        timer = this.#ports.after(pauseUs, post);
        for (const { to, message } of open) this.#ports.post(to, message);
      };
      this.#waiting.set(sequence, {
        accept: (answer) => {
          isComplete = accept(answer, (done) => open.delete(done));
          if (isComplete) over();
        },
      });
      post();
    };
    return isComplete;
  }

  /** Asks each for an answer of this kind and of the same number. Undefined if one is missing in the end. */
  *each(
    sequence: number,
    posts: readonly Post[],
    answerKind: number,
    times: number,
  ): NicRoutine<Answer[] | undefined> {
    if (posts.length === 0) return [];
    const answers = new Map<Post, Answer>();
    const isComplete = yield* this.until(
      sequence,
      posts,
      (answer, isDone) => {
        const { from, message } = answer;
        if (message.kind !== answerKind) return false;
        const post = posts.find(
          (each) => each.to === from && each.message.number === message.number,
        );
        if (post === undefined) return false;
        answers.set(post, answer);
        isDone(post);
        return answers.size === posts.length;
      },
      times,
    );
    return isComplete ? [...answers.values()] : undefined;
  }
}
