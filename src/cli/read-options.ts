/**
 * The options of a command from where people leave them: the flag counts first, then the
 * environment, then situ.config.json, then the default. Whatever is wrong is told with what would
 * be right.
 */

import { statSync } from "node:fs";
import { parseArgs } from "node:util";
import { didYouMean } from "../runtime/nearest.ts";
import type { Command } from "./command.ts";
import { COMMANDS, type CommandName } from "./commands.ts";
import { CONFIG_NAME, readConfigFile } from "./config-file.ts";
import { UsageError } from "./failures.ts";
import { environmentOf, flagOf, type Option, type Options } from "./option-kinds.ts";

export type Origin = "flag" | "environment" | "configuration" | "default";

export interface ReadOptions {
  readonly values: Readonly<Record<string, unknown>>;
  readonly origins: Readonly<Record<string, Origin>>;
  /** Things to tell a person that stop nothing. */
  readonly warnings: readonly string[];
}

export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
}

/** What was typed behind the name of a command. */
export interface Flags {
  readonly given: ReadonlyMap<string, string | true>;
  readonly wantsHelp: boolean;
}

export function readFlags(name: CommandName, args: readonly string[]): Flags {
  const { options, argument } = COMMANDS[name] as Command;
  const names = new Map(
    Object.entries(options)
      .filter(([, option]) => !option.isSecret)
      .map(([key, option]) => [flagOf(key), { key, option }] as const),
  );
  const given = new Map<string, string | true>();
  let wantsHelp = false;
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      [...names].map(([flag, { option }]) => [
        flag,
        { type: option.placeholder === undefined ? "boolean" : "string" } as const,
      ]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === "option-terminator") continue;
    if (token.kind === "positional" && argument !== undefined && !given.has(argument)) {
      given.set(argument, token.value);
      continue;
    }
    if (token.kind === "positional") {
      throw new UsageError(
        `${JSON.stringify(token.value)} is unexpected${flagHint(token.value, names)}`,
      );
    }
    if (token.rawName === "--help" || token.rawName === "-h") {
      wantsHelp = true;
      continue;
    }
    const found = names.get(token.name);
    if (found === undefined || !token.rawName.startsWith("--")) {
      throw new UsageError(unknownFlag(token.rawName, options, [...names.keys()], name));
    }
    given.set(found.key, flagValue(token, found.option));
  }
  return { given, wantsHelp };
}

function flagHint(word: string, names: ReadonlyMap<string, unknown>): string {
  return names.has(word) ? `; did you mean --${word}?` : ": options start with --";
}

function unknownFlag(
  raw: string,
  options: Options,
  flags: readonly string[],
  name: CommandName,
): string {
  const bare = raw.replace(/^-+/, "");
  const hidden = Object.entries(options).find(
    ([key, option]) => option.isSecret && flagOf(key) === bare,
  );
  if (hidden !== undefined) {
    return (
      `there is no flag ${raw}, because flags are visible in ps: use --${bare}-file, ` +
      `${environmentOf(...hidden)} or ${CONFIG_NAME}`
    );
  }
  const all = [...flags, "help"].map((flag) => `--${flag}`);
  return `unknown flag ${raw}${didYouMean(raw, all, `; see situ help ${name}`)}`;
}

function flagValue(
  token: {
    readonly rawName: string;
    readonly value: string | undefined;
    readonly inlineValue: boolean | undefined;
  },
  { placeholder, expected }: Option,
): string | true {
  const { rawName, value, inlineValue } = token;
  if (placeholder === undefined) {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value, but got ${value}`);
    return true;
  }
  // What looks like a flag was one, unless it was tied to this one.
  if (value === undefined || (inlineValue !== true && /^--?[a-z]/i.test(value))) {
    throw new UsageError(`${rawName} needs a value: ${expected}`);
  }
  return value;
}

export function readOptions(name: CommandName, flags: Flags, around: Surroundings): ReadOptions {
  const { options } = COMMANDS[name] as Command;
  const values: Record<string, unknown> = {};
  const origins: Record<string, Origin> = {};
  const take = (key: string, origin: Origin, value: unknown): void => {
    values[key] = value;
    origins[key] = origin;
  };
  const fromFlagOrEnvironment = (key: string, option: Option): void => {
    const typed = flags.given.get(key);
    if (typed !== undefined) {
      take(
        key,
        "flag",
        typed === true ? true : textValue(`--${flagOf(key)}`, typed, option, around),
      );
      return;
    }
    const variable = environmentOf(key, option);
    const text = around.environment[variable];
    // An empty variable is the usual way to unset one.
    if (text === undefined || text === "") return;
    take(key, "environment", textValue(variable, text, option, around));
  };
  for (const [key, option] of Object.entries(options)) fromFlagOrEnvironment(key, option);
  const asked = name === "node" ? undefined : (values.config as string | undefined);
  const config = readConfigFile(name, asked, around.folder);
  const warnings: string[] = [];
  for (const [key, value] of config?.values ?? []) {
    if (options[key].isSecret) warnings.push(...readableByOthers(config!.file));
    if (!Object.hasOwn(values, key)) take(key, "configuration", value);
  }
  for (const [key, option] of Object.entries(options)) {
    if (Object.hasOwn(values, key)) continue;
    if (option.isRequired) throw missing(key, option);
    take(key, "default", option.fallback);
  }
  return { values, origins, warnings: [...warnings, ...strangers(options, around)] };
}

function textValue(where: string, text: string, option: Option, { folder }: Surroundings): unknown {
  const value = option.fromText(text, folder);
  if (value !== undefined) return value;
  const shown = option.isSecret ? "the given value" : JSON.stringify(text);
  throw new UsageError(`${where} must be ${option.expected}, not ${shown}`);
}

function missing(key: string, option: Option): UsageError {
  const flag = `--${flagOf(key)} ${key === "config" ? "node.json" : option.placeholder}`;
  return new UsageError(
    `missing ${flag}: ${option.help} (or ${environmentOf(key, option)}, or "${key}" in ${CONFIG_NAME})`,
  );
}

/** A secret in a file that everybody can read is none. */
export function readableByOthers(file: string): string[] {
  try {
    if (process.platform === "win32" || (statSync(file).mode & 0o077) === 0) return [];
  } catch {
    return [];
  }
  return [`${file} contains a password and is readable by others: chmod 600 ${file}`];
}

/** Names in the environment that are almost those of options: most likely meant. */
function strangers(options: Options, { environment }: Surroundings): string[] {
  const all = Object.values(COMMANDS).flatMap((command) =>
    Object.entries((command as Command).options).map((each) => environmentOf(...each)),
  );
  const known = new Set([...all, ...OTHER_VARIABLES]);
  const own = Object.entries(options).map((each) => environmentOf(...each));
  return Object.keys(environment)
    .filter((name) => name.startsWith("SITU_") && !known.has(name))
    .flatMap((name) => {
      const hint = didYouMean(
        name.slice("SITU_".length),
        own.map((each) => each.slice("SITU_".length)),
      );
      return hint === ""
        ? []
        : [`${name} in the environment is not an option${hint.replace("mean ", "mean SITU_")}`];
    });
}

/** What else Situ looks at in the environment. */
export const OTHER_VARIABLES = [
  "SITU_DEBUG",
  "SITU_ETCD_PASSWORD",
  "SITU_HISTORY",
  "SITU_MEMORY_DIR",
  "SITU_SECRET",
  "SITU_NODE_SECRET",
] as const;
