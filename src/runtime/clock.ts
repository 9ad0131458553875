/**
 * Time for deadlines and back-off. Monotonic: a jump of the wall clock changes no deadline. The
 * only file that looks at a clock, so that a simulation can take its place.
 */

export function nowMs(): number {
  return performance.now();
}

/** The same clock for all processes of this machine, counted from its start. */
export function machineMs(): number {
  return PROCESS_START_MS + performance.now();
}

/** Both count the same clock, from different moments. `process.hrtime` makes an array each time. */
const PROCESS_START_MS = startMs();

function startMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6 - performance.now();
}

/** Wall-clock time, for what people read: when a store was created, when a slot was claimed. */
export function wallClockMs(): number {
  return Date.now();
}

// Made even where there is none: the package can then be loaded, and `open` says what is missing.
const pillow = new Int32Array(
  typeof SharedArrayBuffer === "undefined" ? new ArrayBuffer(4) : new SharedArrayBuffer(4),
);

/** Sleeps this thread, event loop and all; only for short waits inside synchronous calls. */
export function sleepSync(ms: number): void {
  Atomics.wait(pillow, 0, 0, ms);
}

/** On the clock of a fabric, time may be virtual. */
export function sleep(
  ms: number,
  clock: { after(ms: number, run: () => void): unknown } = realClock,
): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}

/** The same for a wait that does not keep the process alive. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}

/** Lets the event loop turn once: timers, messages and others' work get their turn. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/**
 * When this turn of the event loop is over: all that has arrived by now has been handled, and what
 * it caused in promises too. What a fabric sends in one turn leaves then.
 */
export function afterTurn(run: () => void): void {
  setImmediate(run);
}

/** Does something over and over until it is stopped; does not keep the process alive. */
export function every(ms: number, run: () => void): { cancel(): void } {
  const timer = setInterval(run, ms).unref();
  return { cancel: () => clearInterval(timer) };
}

/** Time as the contract of fabrics wants it. */
export const realClock = {
  nowMs,
  after(ms: number, run: () => void): { cancel(): void } {
    const timer = setTimeout(run, ms);
    return { cancel: () => clearTimeout(timer) };
  },
};
