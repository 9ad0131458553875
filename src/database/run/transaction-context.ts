/**
 * Whether a call comes from inside a transaction's callback. A callback that opens a transaction of the
 * same database, instead of using its `tx`, is refused: transactions do not nest.
 *
 * No callback pays for that. Following every callback through its awaits (AsyncLocalStorage) costs each
 * of them more than its transaction; so the question is asked where it arises, and only then. While no
 * callback of the database is under way, which is a count, nothing can be nested. Before the first `await`
 * a callback is on the stack, which is another count. After that its caller is found on the stack as V8
 * shows it to people: with those who await. The function that runs the callbacks of a database has a name
 * of its own, and nobody awaits a callback whose attempt is over. Code that a callback does not await,
 * such as that of a timer, is not found.
 *
 * A look at the stack takes a few microseconds. Programs that keep many callbacks under way at once would
 * pay that in every call, so after NESTED_LOOKS of them it is only looked while a transaction is being run
 * again: which is what a nested one leads to that gets in the way of its own.
 */

import { NESTED_LOOKS, NESTED_STACK_FRAMES } from "../../runtime/limits.ts";

let databases = 0;

/** The callbacks of one database that are under way. */
export class CallbacksUnderWay {
  /** What the function is called that runs and awaits them, and no other. */
  readonly runnerName = `transact [database ${++databases}]`;
  #count = 0;
  #runAgain = 0;
  #onStack = 0;
  #looks = 0;

  /** A callback is run; `isAgain` if not for the first time. `end` must follow. */
  begin(isAgain: boolean): void {
    this.#count++;
    if (isAgain) this.#runAgain++;
  }

  end(isAgain: boolean): void {
    this.#count--;
    if (isAgain) this.#runAgain--;
  }

  /** Calls a callback: as much of it as runs before its first `await`. */
  call<A, T>(callback: (argument: A) => T, argument: A): T {
    this.#onStack++;
    try {
      return callback(argument);
    } finally {
      this.#onStack--;
    }
  }

  /** For calls that are made often: whether this one comes from inside a callback, as far as is looked. */
  isInside(): boolean {
    if (this.#count === 0) return false;
    if (this.#onStack > 0) return true;
    if (this.#looks >= NESTED_LOOKS && this.#runAgain === 0) return false;
    this.#looks++;
    return isAwaitedBy(this.runnerName);
  }

  /** The same for calls that are made rarely. */
  isSurelyInside(): boolean {
    return this.#count > 0 && (this.#onStack > 0 || isAwaitedBy(this.runnerName));
  }
}

/** Whether a function of this name is on the stack, or awaits what is. */
function isAwaitedBy(name: string): boolean {
  const { stackTraceLimit, prepareStackTrace } = Error;
  const captured: { stack?: unknown } = {};
  try {
    // By Reflect, which does not throw where nobody may change them; then nothing is found.
    Reflect.set(Error, "stackTraceLimit", NESTED_STACK_FRAMES);
    // As a list. Without it, every line would be looked up in its source.
    Reflect.set(Error, "prepareStackTrace", asList);
    Error.captureStackTrace(captured, isAwaitedBy);
    const { stack } = captured;
    if (!Array.isArray(stack)) return false;
    return (stack as NodeJS.CallSite[]).some((frame) => frame.getFunctionName() === name);
  } finally {
    Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
    Reflect.set(Error, "prepareStackTrace", prepareStackTrace);
  }
}

function asList(_error: Error, frames: NodeJS.CallSite[]): NodeJS.CallSite[] {
  return frames;
}
