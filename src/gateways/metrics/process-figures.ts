/** Memory, CPU time and event loop of this process. */

import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { wallClockMs } from "../../runtime/clock.ts";
import { LOOP_DELAY_MS } from "../../runtime/limits.ts";

export interface ProcessFigures {
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  readonly startSeconds: number;
  readonly heapUsedBytes: number;
  readonly heapTotalBytes: number;
  readonly externalBytes: number;
  readonly meanLagSeconds: number;
  readonly p99LagSeconds: number;
  readonly maxLagSeconds: number;
}

export class ProcessWatch {
  readonly #startSeconds = wallClockMs() / 1e3 - process.uptime();
  readonly #loopDelay: IntervalHistogram = monitorEventLoopDelay({ resolution: LOOP_DELAY_MS });

  constructor() {
    this.#loopDelay.enable();
  }

  stop(): void {
    this.#loopDelay.disable();
  }

  /** The delays of timers are those since the last call. */
  figures(): ProcessFigures {
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
    const delay = this.#loopDelay;
    const figures = {
      cpuSeconds: (user + system) / 1e6,
      residentBytes: rss,
      startSeconds: this.#startSeconds,
      heapUsedBytes: heapUsed,
      heapTotalBytes: heapTotal,
      externalBytes: external,
      meanLagSeconds: late(delay.mean),
      p99LagSeconds: late(delay.percentile(99)),
      maxLagSeconds: late(delay.max),
    };
    delay.reset();
    return figures;
  }
}

/** Node measures from one timer to the next, in nanoseconds; without any it has no figure. */
function late(nanoseconds: number): number {
  const lateMs = nanoseconds / 1e6 - LOOP_DELAY_MS;
  return lateMs > 0 ? lateMs / 1e3 : 0;
}
