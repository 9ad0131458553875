/** The endpoint: what it answers to whom, and how it treats those who misbehave. */

import { closeSync, openSync, writeSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { LocalDatabase as Database } from "../../src/database/local/local-database.ts";
import { DISK_FULL, FAILED, RUNNING } from "../../src/engine/durability.ts";
import { CommandMetrics } from "../../src/gateways/metrics/command-metrics.ts";
import {
  type MetricsEndpoint,
  type MetricsOptions,
  serveMetrics,
  startMetrics,
} from "../../src/gateways/metrics/endpoint.ts";
import { LOG_BLOCKER, LOG_STATE } from "../../src/memory/control.ts";
import { METRICS_CONNECTIONS, METRICS_HEADER_BYTES } from "../../src/runtime/limits.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { eventually, failure, memoryOf, temporaryStores } from "../helpers/store.ts";
import { parse, sampleOf } from "./prometheus-parser.ts";

const stores = temporaryStores();
const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });

async function served(
  options: Partial<MetricsOptions> = {},
): Promise<{ db: Database; endpoint: MetricsEndpoint; url: string }> {
  const database = options.database ?? (await stores.open({ tables: [Cell] }));
  const endpoint = await startMetrics({ ...options, database });
  stores.later(() => endpoint.close());
  return { db: database, endpoint, url: `http://127.0.0.1:${endpoint.port}` };
}

describe("/metrics", () => {
  it("is text that Prometheus reads, with what was counted", async () => {
    const { db, url } = await served({ commandNames: ["get", "", "set"] });
    db.transactSync((tx) => tx.put(Cell, { id: 1, value: 1 }));
    await db.transact((tx) => tx.put(Cell, { id: 1, value: 2 }));
    const commands = new CommandMetrics(db.executor.metrics);
    commands.count(0, 3);
    commands.count(1, 99);
    commands.count(2, 4);
    commands.failed(2);
    commands.observe(0.05, 7);
    commands.clients(2);
    using snapshot = db.snapshot();
    expect(snapshot.get(Cell, 1)?.value).toBe(2);

    const response = await fetch(`${url}/metrics?x=1`);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const families = parse(await response.text());
    const read = (name: string, labels = {}): number => sampleOf(families, name, labels);
    expect(read("situ_commits_total", { kind: "read_write" })).toBe(db.stats().counters.commits);
    expect(read("situ_transaction_duration_seconds_count", { kind: "async" })).toBe(1);
    expect(read("situ_executors")).toBe(1);
    expect(read("situ_snapshots_open")).toBe(1);
    expect(read("situ_clients")).toBe(2);
    expect(read("situ_commands_total", { command: "get" })).toBe(3);
    expect(read("situ_commands_total", { command: "set" })).toBe(4);
    expect(families.get("situ_commands_total")?.samples).toHaveLength(2);
    expect(read("situ_command_failures_total", { command: "set" })).toBe(1);
    expect(read("situ_command_duration_seconds_bucket", { le: "0.000064" })).toBe(7);
    expect(read("situ_command_duration_seconds_bucket", { le: "0.000032" })).toBe(0);
    expect(read("situ_command_duration_seconds_sum")).toBeCloseTo(0.00035);
    expect(read("situ_memory_bytes", { use: "data" })).toBeGreaterThan(0);
    const { memory } = db.stats();
    expect(read("situ_memory_limit_bytes")).toBe(memory.limitBytes);
    expect(
      read("situ_memory_bytes", { use: "data" }) + read("situ_memory_bytes", { use: "free" }),
    ).toBe(memory.reservedBytes);
    expect(read("process_resident_memory_bytes")).toBeGreaterThan(2 ** 20);
    expect(read("process_cpu_seconds_total")).toBeGreaterThan(0);
    expect(read("nodejs_eventloop_lag_seconds")).toBeGreaterThanOrEqual(0);
    // This store has no log.
    expect([...families.keys()].filter((name) => name.includes("log"))).toEqual([]);
  });

  it("the log: what is written, how far the disk is behind, checkpoints", async () => {
    const database = await stores.open({ tables: [Cell], durability: "lazy", lagMs: 1 });
    const { db, url } = await served({ database });
    db.transactSync((tx) => tx.put(Cell, { id: 1, value: 1 }));
    await db.durable();
    await db.checkpoint();
    let families = parse(await (await fetch(`${url}/metrics`)).text());
    // A lagging tail moves after the durable epoch.
    await eventually(async () => {
      families = parse(await (await fetch(`${url}/metrics`)).text());
      return sampleOf(families, "situ_log_lag_bytes") === 0;
    });
    const read = (name: string, labels = {}): number => sampleOf(families, name, labels);
    expect(read("situ_log_state", { state: "running" })).toBe(1);
    expect(read("situ_log_state", { state: "failed" })).toBe(0);
    expect(read("situ_log_writer_up")).toBe(1);
    expect(read("situ_log_records_total")).toBeGreaterThan(0);
    expect(read("situ_log_lag_epochs")).toBe(0);
    expect(read("situ_checkpoints_total")).toBeGreaterThan(0);
    expect(read("situ_checkpoint_last_timestamp_seconds")).toBeGreaterThan(1.7e9);
  });

  it("HEAD gives the head", async () => {
    const { url } = await served();
    const response = await fetch(`${url}/metrics`, { method: "HEAD" });
    expect(response.status).toBe(200);
    expect(Number(response.headers.get("content-length"))).toBeGreaterThan(1_000);
    expect(await response.text()).toBe("");
  });

  it("of a closed store: 503 and the reason", async () => {
    const { db, url } = await served();
    await db.close();
    for (const path of ["/metrics", "/healthz", "/readyz"]) {
      const response = await fetch(url + path);
      expect(response.status).toBe(503);
      expect(await response.text()).toContain("SITU_CLOSED");
    }
  });

  it("too many names of commands are refused", async () => {
    const { url } = await served({ commandNames: Array.from({ length: 161 }, (_, i) => `c${i}`) });
    const response = await fetch(`${url}/metrics`);
    expect(response.status).toBe(503);
    expect(await response.text()).toContain("161 commands");
  });
});

describe("/healthz and /readyz", () => {
  it("a store at work is healthy and ready", async () => {
    const { url } = await served({ isReady: () => true });
    for (const path of ["/healthz", "/readyz"]) {
      const response = await fetch(url + path);
      expect([response.status, await response.text()]).toEqual([200, "ok\n"]);
    }
  });

  it("one that is shutting down is healthy and not ready", async () => {
    let reasons: string[] = ["shutting down"];
    const { url } = await served({ isReady: () => false, reasons: () => reasons });
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    const response = await fetch(`${url}/readyz`);
    expect([response.status, await response.text()]).toEqual([503, "shutting down\n"]);
    reasons = [];
    expect(await (await fetch(`${url}/readyz`)).text()).toBe("not serving clients\n");
  });

  it("a log that has failed, or does not get on, is not ready", async () => {
    const database = await stores.open({ tables: [Cell], durability: "lazy" });
    const { url } = await served({ database });
    await eventually(async () => (await fetch(`${url}/readyz`)).status === 200);
    // The log's writer may be about to say that all is well: then it is said again.
    const expectReason = (word: number, value: number, reason: string): Promise<void> =>
      eventually(async () => {
        setControlWord(database, word, value);
        const response = await fetch(`${url}/readyz`);
        return response.status === 503 && (await response.text()) === `${reason}\n`;
      });
    const blocked = "a process is committing and does not move: the log waits for it";
    await expectReason(LOG_BLOCKER, 1, blocked);
    setControlWord(database, LOG_BLOCKER, 0);
    await expectReason(LOG_STATE, DISK_FULL, "the disk of the log is full");
    await expectReason(LOG_STATE, FAILED, "the log has failed: nothing more becomes durable");
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    setControlWord(database, LOG_STATE, RUNNING);
  });
});

/** Sets a word of the store's control segment, as the log's writer would. */
function setControlWord(database: Database, word: number, value: number): void {
  const file = openSync(join(memoryOf(database.path), "control"), "r+");
  writeSync(file, new Uint8Array(Int32Array.of(value).buffer), 0, 4, word * 4);
  closeSync(file);
}

describe("requests", () => {
  it("another path, another method", async () => {
    const { url } = await served();
    expect((await fetch(`${url}/`)).status).toBe(404);
    expect((await fetch(`${url}/metrics/x`)).status).toBe(404);
    const response = await fetch(`${url}/metrics`, { method: "POST", body: "x".repeat(100_000) });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe("GET, HEAD");
    expect((await fetch(`${url}/metrics`, { method: "DELETE" })).status).toBe(405);
  });

  it("what is no HTTP, or has a head without end, is closed", async () => {
    const { endpoint, url } = await served();
    const answerTo = (text: string): Promise<string> =>
      new Promise((resolve, reject) => {
        let answer = "";
        const socket = connect(endpoint.port, "127.0.0.1", () => socket.write(text));
        socket.setEncoding("utf8").on("data", (part: string) => {
          answer += part;
        });
        socket.on("close", () => resolve(answer)).on("error", reject);
      });
    expect(await answerTo("*1\r\n$4\r\nPING\r\n")).toContain("400 Bad Request");
    const head = `GET /metrics HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(METRICS_HEADER_BYTES)}`;
    expect(await answerTo(head)).toContain("431");
    expect(await answerTo("GET /healthz HTTP/1.0\r\n\r\n")).toContain("200 OK");
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });

  it("more connections than it takes are closed, and those that are served are not", async () => {
    const { endpoint } = await served();
    const sockets = await Promise.all(
      Array.from({ length: METRICS_CONNECTIONS + 8 }, () => {
        const socket = connect(endpoint.port, "127.0.0.1");
        stores.later(() => socket.destroy());
        socket.on("error", () => {});
        return new Promise<typeof socket>((resolve) => {
          socket.on("connect", () => resolve(socket));
        });
      }),
    );
    let closed = 0;
    for (const socket of sockets) {
      socket.on("close", () => {
        closed++;
      });
      socket.resume();
    }
    await eventually(() => closed >= 8);
    expect(closed).toBe(8);
    for (const socket of sockets) socket.destroy();
    await eventually(() => closed === sockets.length);
    const { port } = endpoint;
    await eventually(
      () =>
        new Promise((resolve) => {
          httpRequest({ port, path: "/healthz", agent: false }, (response) => {
            response.resume();
            resolve(response.statusCode === 200);
          })
            .on("error", () => resolve(false))
            .end();
        }),
    );
  });

  it("close does not wait for one who has connected and says nothing", async () => {
    const { endpoint } = await served();
    const socket = connect(endpoint.port, "127.0.0.1");
    stores.later(() => socket.destroy());
    await new Promise((resolve) => socket.on("connect", resolve));
    const closed = new Promise((resolve) => socket.on("close", resolve));
    socket.resume();
    await endpoint.close();
    await closed;
  });

  it("a port that is taken is an error, and close gives it back", async () => {
    const db = await stores.open({ tables: [Cell] });
    const first = await serveMetrics(db);
    expect(first.host).toBe("127.0.0.1");
    await expect(serveMetrics(db, { port: first.port })).rejects.toMatchObject({
      code: "EADDRINUSE",
    });
    await fetch(`http://127.0.0.1:${first.port}/healthz`);
    await first.close();
    const second = await serveMetrics(db, { port: first.port });
    await second.close();
    await db.close();
    await failure("SITU_CLOSED", () => db.stats());
  });
});
