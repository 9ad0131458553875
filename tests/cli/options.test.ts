/** Options from flags, the environment and situ.config.json, without a process. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Command } from "../../src/cli/command.ts";
import { COMMAND_NAMES, COMMANDS } from "../../src/cli/commands.ts";
import { environmentOf } from "../../src/cli/option-kinds.ts";
import { readFlags, readOptions } from "../../src/cli/read-options.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "situ-options-test-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function config(given: unknown, name = "situ.config.json"): void {
  writeFileSync(join(folder, name), typeof given === "string" ? given : JSON.stringify(given), {
    mode: 0o600,
  });
}

function read(
  name: keyof typeof COMMANDS,
  args: readonly string[],
  environment: Record<string, string> = {},
) {
  return readOptions(name, readFlags(name, args), { environment, folder });
}

const serve = (args: readonly string[], environment: Record<string, string> = {}) =>
  read("serve", ["--path", "store", ...args], environment);

describe("where a value is from", () => {
  test("a flag before the environment before the section before the top before the default", () => {
    const environment = { SITU_PORT: "2" };
    config({ port: 4, serve: { port: 3 } });
    const port = (args: readonly string[], given = {}) => {
      const { values, origins } = serve(args, given);
      return [values.port, origins.port];
    };
    expect(port(["--port", "1"], environment)).toEqual([1, "flag"]);
    expect(port(["--port=1"], environment)).toEqual([1, "flag"]);
    expect(port([], environment)).toEqual([2, "environment"]);
    expect(port([])).toEqual([3, "configuration"]);
    config({ port: 4 });
    expect(port([])).toEqual([4, "configuration"]);
    rmSync(join(folder, "situ.config.json"));
    expect(port([])).toEqual([undefined, "default"]);
  });

  test("the last of two flags counts, and an empty variable does not", () => {
    expect(serve(["--port", "1", "--port", "2"]).values.port).toBe(2);
    expect(serve([], { SITU_PORT: "" }).origins.port).toBe("default");
  });

  test("every kind of value", () => {
    const { values } = serve(
      ["--memory", "64MiB", "--durability", "sync", "--socket", "s.sock", "--show-config"],
      { SITU_JSON: "1", SITU_MAX_OUTPUT: "1.5k" },
    );
    expect(values).toMatchObject({
      path: join(folder, "store"),
      memory: 64 * 2 ** 20,
      durability: "sync",
      socket: join(folder, "s.sock"),
      showConfig: true,
      json: true,
      maxOutput: 1536,
    });
    const at = read("restore", ["--from", "a", "--path", "b", "--at", "2026-11-15 18:30"]).values
      .at;
    expect((at as Date).toISOString()).toBe("2026-11-15T18:30:00.000Z");
    expect(read("shell", ["--path", "a", "--transaction-time", "2min"]).values).toMatchObject({
      transactionTime: 120_000,
    });
  });

  test("paths in a configuration are relative to it, those of flags to the folder", () => {
    const other = mkdtempSync(join(folder, "other-"));
    writeFileSync(
      join(other, "my.json"),
      JSON.stringify({ path: "data", serve: { memory: "1m" } }),
    );
    const { values } = read("serve", ["--config", join(other, "my.json"), "--socket", "s"]);
    expect(values).toMatchObject({
      path: join(other, "data"),
      socket: join(folder, "s"),
      memory: 2 ** 20,
    });
    expect(read("serve", [], { SITU_CONFIG: join(other, "my.json") }).values.path).toBe(
      join(other, "data"),
    );
  });

  test("the section of another command and a key that this one has not do not count", () => {
    config({ path: "data", rows: 2_000, serve: { port: 3 }, bench: { seconds: 3 } });
    expect(read("verify", []).values).toEqual({
      path: join(folder, "data"),
      json: false,
      config: undefined,
    });
    expect(read("bench", []).values).toMatchObject({ rows: 2_000, seconds: 3 });
  });

  test("a node's file is its --config, also in situ.config.json", () => {
    config({ node: { config: "node.json" } });
    expect(read("node", []).values.config).toBe(join(folder, "node.json"));
    expect(read("node", [], { SITU_NODE_CONFIG: "/x.json" }).values.config).toBe("/x.json");
    expect(read("node", ["--config", "y.json"]).values.config).toBe(join(folder, "y.json"));
  });
});

describe("what is wrong is told with what is right", () => {
  test.each([
    [["--pot", "1"], "unknown flag --pot; did you mean --port?"],
    [["--metricsPort", "1"], "did you mean --metrics-port?"],
    [["-p", "1"], "unknown flag -p"],
    [["--zzzzzz"], "see situ help serve"],
    [["--port"], "--port needs a value: a whole number from 0 to 65535"],
    [["--port", "--json"], "--port needs a value"],
    [["--port", "x"], '--port must be a whole number from 0 to 65535, not "x"'],
    [["--port", "65536"], "from 0 to 65535"],
    [["--port", "1.5"], "a whole number"],
    [["--port", ""], "--port must be a whole number"],
    [["--memory", "5 bananas"], "--memory must be a size such as 64MiB"],
    [["--durability", "never"], "one of sync, lazy, none"],
    [["--json=yes"], "--json takes no value"],
    [["port"], "did you mean --port?"],
    [["extra"], '"extra" is unexpected'],
    [["--password", "x"], "flags are visible in ps: use --password-file, SITU_PASSWORD"],
  ])("%j", (args, why) => {
    expect(() => serve(args)).toThrow(why);
    expect(() => serve(args)).toThrow(expect.objectContaining({ code: "SITU_CONFIG" }));
  });

  test.each([
    [{ prt: 1 }, 'unknown option "prt"; did you mean port?'],
    [
      { serve: { maxclients: 1 } },
      'unknown option "maxclients" in "serve"; did you mean maxClients?',
    ],
    [{ sevre: {} }, "did you mean serve?"],
    [{ serve: { rows: 1 } }, 'unknown option "rows" in "serve"'],
    [{ config: "x" }, 'unknown option "config"'],
    [{ port: "80" }, 'port must be a whole number from 0 to 65535, not "80"'],
    [{ port: 1.5 }, "port must be a whole number"],
    [{ serve: { durability: "yes" } }, "serve.durability must be one of sync, lazy, none"],
    [{ bench: { rows: 3 } }, "bench.rows must be a whole number from 1000"],
    [{ json: "true" }, "json must be true or false"],
    [{ path: "" }, "path must be the name of a folder"],
    [{ serve: 3 }, '"serve" must be an object'],
    [[], "the configuration must be an object"],
    ["{ no", "is not JSON"],
    [{ memory: "much" }, "memory must be a size"],
  ])("%j in situ.config.json", (given, why) => {
    config(given);
    expect(() => serve([])).toThrow(why);
    expect(() => serve([])).toThrow("situ.config.json");
  });

  test("the environment", () => {
    expect(() => serve([], { SITU_PORT: "x" })).toThrow("SITU_PORT must be a whole number");
    expect(() => serve([], { SITU_JSON: "perhaps" })).toThrow("SITU_JSON must be true or false");
  });

  test("a configuration that was asked for and is not there", () => {
    expect(() => serve(["--config", "none.json"])).toThrow(/none\.json does not exist/);
  });

  test("what is needed and not said", () => {
    expect(() => read("serve", [])).toThrow(/--path DIR.*SITU_PATH.*"path" in situ.config.json/);
  });

  test("a variable that is almost one is warned of, another is left alone", () => {
    const { warnings } = serve([], { SITU_PROT: "1", SITU_SOMETHING_ELSE: "1", SITU_SECRET: "s" });
    expect(warnings).toEqual([expect.stringContaining("did you mean SITU_PORT?")]);
  });
});

describe("secrets", () => {
  test("are read from the environment and the configuration, and not shown in errors", () => {
    expect(serve([], { SITU_PASSWORD: "hush" }).values.password).toBe("hush");
    config({ serve: { password: 12345 } });
    // All that is said: the value is not in it.
    expect(() => serve([])).toThrow(/: serve\.password must be a string, not the given value$/);
  });

  test("a configuration with a password that others can read is warned of", () => {
    config({ password: "hush" });
    expect(serve([]).warnings).toEqual([]);
    writeFileSync(join(folder, "open.json"), JSON.stringify({ password: "hush" }), { mode: 0o644 });
    const { warnings } = serve(["--config", "open.json"]);
    expect(warnings).toEqual([expect.stringContaining("readable by others")]);
    expect(warnings.join()).not.toContain("hush");
  });
});

test("options of one name are of one kind, and have one name in the environment", () => {
  const kinds = new Map<string, string>();
  const variables = new Map<string, string>();
  for (const name of COMMAND_NAMES.filter((each) => each !== "node")) {
    for (const [key, option] of Object.entries((COMMANDS[name] as Command).options)) {
      const kind = option.expected.replace(/\d+/g, "N");
      expect(kinds.get(key) ?? kind, `${name} ${key}`).toBe(kind);
      kinds.set(key, kind);
      const variable = environmentOf(key, option);
      expect(variables.get(variable) ?? key).toBe(key);
      variables.set(variable, key);
    }
  }
});
