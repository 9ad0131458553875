/** What the process that answers is like: its memory, processor time and event loop. */

import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { wallClockMs } from "../../runtime/clock.ts";
import { LOOP_DELAY_MS } from "../../runtime/limits.ts";
import type { PrometheusText } from "./prometheus.ts";

export class ProcessFigures {
  readonly #startSeconds = wallClockMs() / 1e3 - process.uptime();
  readonly #loopDelay: IntervalHistogram = monitorEventLoopDelay({ resolution: LOOP_DELAY_MS });

  constructor() {
    this.#loopDelay.enable();
  }

  stop(): void {
    this.#loopDelay.disable();
  }

  write(text: PrometheusText): void {
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
    text.one(
      "process_cpu_seconds_total",
      "counter",
      "Processor time of the process that answers.",
      (user + system) / 1e6,
    );
    text.one(
      "process_resident_memory_bytes",
      "gauge",
      "Resident memory of the process that answers, with the shared memory that it has touched.",
      rss,
    );
    text.one(
      "process_start_time_seconds",
      "gauge",
      "When the process that answers began, in seconds since 1970.",
      this.#startSeconds,
    );
    text.one("nodejs_heap_size_used_bytes", "gauge", "JavaScript heap in use.", heapUsed);
    text.one("nodejs_heap_size_total_bytes", "gauge", "JavaScript heap reserved.", heapTotal);
    text.one("nodejs_external_memory_bytes", "gauge", "Memory of objects off the heap.", external);
    this.#writeLoopDelay(text);
  }

  #writeLoopDelay(text: PrometheusText): void {
    const delay = this.#loopDelay;
    text.one(
      "nodejs_eventloop_lag_seconds",
      "gauge",
      "How late timers were on the average, since the last scrape.",
      late(delay.mean),
    );
    text.one(
      "nodejs_eventloop_lag_p99_seconds",
      "gauge",
      "How late the latest hundredth of timers was at least, since the last scrape.",
      late(delay.percentile(99)),
    );
    text.one(
      "nodejs_eventloop_lag_max_seconds",
      "gauge",
      "How late the latest timer was, since the last scrape.",
      late(delay.max),
    );
    delay.reset();
  }
}

/** Node measures from one timer to the next, in nanoseconds; without any it has no figure. */
function late(nanoseconds: number): number {
  const lateMs = nanoseconds / 1e6 - LOOP_DELAY_MS;
  return lateMs > 0 ? lateMs / 1e3 : 0;
}
