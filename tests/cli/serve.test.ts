/**
 * `situ serve`: listens, keeps its password to itself, refuses what is not safe, and stops when
 * told.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { afterEach, beforeEach, expect, test } from "vitest";
import { jsonLines, Place, type Started } from "./run.ts";

interface Listening {
  readonly event: string;
  readonly host: string;
  readonly port: number;
  readonly socket: string | null;
  readonly metricsPort: number | null;
  readonly threads: number;
}

const MEMORY = ["--memory", "32MiB", "--durability", "none"];

let place: Place;

beforeEach(() => {
  place = new Place();
  place.store();
});

afterEach(async () => {
  await place.end();
});

async function listening(started: Started): Promise<Listening> {
  const [line] = await started.says(/^\{"event":"listening".*\}$/m);
  return JSON.parse(line) as Listening;
}

/** Sends a request and takes what comes until so many lines are there. */
async function ask(where: number | string, request: string, lines = 1): Promise<string> {
  const socket = typeof where === "number" ? connect(where, "127.0.0.1") : connect(where);
  let reply = "";
  try {
    socket.setEncoding("utf8").write(request);
    for await (const text of socket) {
      reply += text as string;
      if (reply.split("\r\n").length > lines) break;
    }
  } finally {
    socket.destroy();
  }
  return reply;
}

test("serves until a signal comes, and keeps what was written", async () => {
  const rounds = [
    ["SIGTERM", "$-1\r\n", 1],
    ["SIGINT", "$5\r\nhello\r\n", 2],
  ] as const;
  for (const [signal, value, lines] of rounds) {
    const args = ["serve", "--path", "store", "--port", "0", "--json", "--socket", "s", ...MEMORY];
    const started = place.start(args);
    const { host, port, socket, threads } = await listening(started);
    const expected = { host: "127.0.0.1", threads: 1, socket: place.file("s") };
    expect({ host, threads, socket }).toEqual(expected);
    expect(await ask(port, "GET greeting\r\n", lines)).toBe(value);
    expect(await ask(socket!, "SET greeting hello\r\n")).toBe("+OK\r\n");
    started.child.kill(signal);
    const { code, stdout, stderr } = await started.ended();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const events = jsonLines(stdout).map((line) => (line as Listening).event);
    expect(events).toEqual(["listening", "closed"]);
  }
});

test("says to people where it listens, and serves metrics and several threads", async () => {
  const args = [
    "serve",
    "--path",
    "store",
    "--port",
    "0",
    "--threads",
    "2",
    "--metrics-port",
    "0",
    ...MEMORY,
  ];
  const started = place.start(args);
  const [, metrics] = await started.says(/metrics on (http:\S+)/);
  expect(started.stdout).toContain("2 threads, no password");
  const reply = await fetch(metrics);
  expect(reply.status).toBe(200);
  expect(await reply.text()).toContain("situ_");
  started.child.kill("SIGINT");
  expect((await started.ended()).code).toBe(0);
});

test("the password is in nothing that others see", async () => {
  const password = "open-sesame-4711";
  writeFileSync(place.file("secret"), `${password}\nnot this\n`, { mode: 0o600 });
  writeFileSync(place.file("situ.config.json"), JSON.stringify({ serve: { password } }), {
    mode: 0o600,
  });
  const common = ["serve", "--path", "store", "--port", "0", "--json", ...MEMORY];
  const ways: [string[], Record<string, string>][] = [
    [["--password-file", "secret"], {}],
    [[], { SITU_PASSWORD: password }],
    [[], {}],
  ];
  for (const [args, env] of ways) {
    const started = place.start([...common, ...args], env);
    const { port } = await listening(started);
    expect(await ask(port, "PING\r\n")).toContain("NOAUTH");
    expect(await ask(port, `AUTH ${password}\r\nPING\r\n`, 2)).toBe("+OK\r\n+PONG\r\n");
    const commandLine = readFileSync(`/proc/${started.child.pid}/cmdline`, "utf8");
    expect(commandLine).not.toContain(password);
    const shown = await place.situ([...common, ...args, "--show-config"], env);
    started.child.kill("SIGTERM");
    const { stdout, stderr } = await started.ended();
    expect(stdout + stderr + shown.stdout + shown.stderr).not.toContain(password);
    expect(jsonLines(stdout)[0]).toMatchObject({ hasPassword: true });
    expect(shown.code).toBe(0);
  }
});

test("--show-config says where each setting is from", async () => {
  writeFileSync(
    place.file("situ.config.json"),
    JSON.stringify({ port: 1, serve: { host: "::1" } }),
  );
  const args = ["serve", "--path", "store", "--threads", "3", "--show-config"];
  const { stdout } = await place.situ([...args, "--json"], { SITU_MEMORY: "1g" });
  expect(jsonLines(stdout)).toMatchObject([
    {
      threads: { value: 3, from: "flag" },
      memory: { value: 2 ** 30, from: "environment" },
      host: { value: "::1", from: "configuration" },
      port: { value: 1, from: "configuration" },
      socket: { value: null, from: "default" },
    },
  ]);
  expect((await place.situ(args)).stdout).toMatch(/--threads +3 +flag +SITU_THREADS/);
});

test("a public address without a password is refused, with 2", async () => {
  const args = ["serve", "--path", "store", "--port", "0", ...MEMORY];
  for (const host of ["0.0.0.0", "::"]) {
    const { code, stderr } = await place.situ([...args, "--host", host]);
    expect(code, stderr).toBe(2);
    expect(stderr).toMatch(/password.*\(SITU_CONFIG\)/);
  }
  const own = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.internal === false && each.family === "IPv4");
  if (own !== undefined) {
    expect((await place.situ([...args, "--host", own.address])).code).toBe(2);
  }
});

test("a port in use, an empty password file, and one that others can read", async () => {
  const first = place.start(["serve", "--path", "store", "--port", "0", "--json", ...MEMORY]);
  const { port } = await listening(first);
  const second = await place.situ(["serve", "--path", "store", "--port", `${port}`]);
  expect(second.code).toBe(1);
  expect(second.stderr).toMatch(new RegExp(`${port}.*\\(SITU_[A-Z_]+\\)\n$`));
  first.child.kill("SIGTERM");
  expect((await first.ended()).code).toBe(0);

  writeFileSync(place.file("empty"), "\n", { mode: 0o600 });
  const empty = await place.situ(["serve", "--path", "store", "--password-file", "empty"]);
  expect(empty.code).toBe(2);
  expect(empty.stderr).toContain("the first line of");
  const none = await place.situ(["serve", "--path", "store", "--password-file", "none"]);
  expect(none.code).toBe(2);
  writeFileSync(place.file("open"), "secret\n", { mode: 0o644 });
  const open = await place.situ([
    "serve",
    "--path",
    "store",
    "--password-file",
    "open",
    "--show-config",
  ]);
  expect(open.stderr).toContain("is readable by others: chmod 600");
});
