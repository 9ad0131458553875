/**
 * situ.config.json: options by their names, at the top for every command that has them, or under
 * the name of a command for that one, which counts more:
 *
 *   { "path": "./data", "serve": { "port": 6380, "maxClients": 100 } }
 *
 * The whole file is checked whatever command is run, so a mistake does not wait for its day. Paths
 * are relative to the file.
 */

import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { didYouMean } from "../runtime/nearest.ts";
import type { Command } from "./command.ts";
import { COMMAND_NAMES, COMMANDS, type CommandName, SHOWN_NAMES } from "./commands.ts";
import { UsageError } from "./failures.ts";
import type { Option } from "./option-kinds.ts";

export const CONFIG_NAME = "situ.config.json";

export interface ConfigFile {
  readonly file: string;
  /** By the names of options: those of the command, then those at the top. */
  readonly values: ReadonlyMap<string, unknown>;
}

/** Undefined if there is none and none was asked for. */
export function readConfigFile(
  name: CommandName,
  asked: string | undefined,
  folder: string,
): ConfigFile | undefined {
  const file = resolve(folder, asked ?? CONFIG_NAME);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" && asked === undefined) return undefined;
    throw new UsageError(
      code === "ENOENT" ? `${file} does not exist` : `${file} cannot be read: ${message}`,
    );
  }
  return { file, values: configOf(name, parsed(file, text), file) };
}

function parsed(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${file} is not JSON: ${(error as Error).message}`);
  }
}

/** The values that count for a command, of a whole configuration that is checked. */
export function configOf(name: CommandName, given: unknown, file: string): Map<string, unknown> {
  const values = new Map<string, unknown>();
  const all = objectOf(given, file, "the configuration");
  const own: [string, unknown][] = [];
  for (const [key, value] of Object.entries(all)) {
    const section = COMMAND_NAMES.find((each) => each === key);
    if (section === undefined) {
      const checked = checkedValue(file, key, value, optionAnywhere(file, name, key));
      if (optionIn(name, key) !== undefined) values.set(key, checked);
      continue;
    }
    for (const [inner, each] of Object.entries(objectOf(value, file, `"${key}"`))) {
      const option = optionIn(section, inner) ?? unknownKey(file, inner, section);
      const checked = checkedValue(file, `${key}.${inner}`, each, option);
      if (section === name) own.push([inner, checked]);
    }
  }
  for (const [key, value] of own) values.set(key, value);
  return values;
}

function objectOf(given: unknown, file: string, what: string): object {
  if (typeof given === "object" && given !== null && !Array.isArray(given)) return given;
  throw new UsageError(`${file}: ${what} must be an object, such as { "path": "./data" }`);
}

/** Which file to read is not said in a file; but a node's file may be. */
function optionIn(name: CommandName, key: string): Option | undefined {
  const { options } = COMMANDS[name] as Command;
  if (!Object.hasOwn(options, key) || (key === "config" && name !== "node")) return undefined;
  return options[key];
}

function optionAnywhere(file: string, name: CommandName, key: string): Option {
  const names = [name, ...COMMAND_NAMES].filter((each) => key !== "config" || each !== "node");
  for (const each of names) {
    const option = optionIn(each, key);
    if (option !== undefined) return option;
  }
  return unknownKey(file, key, undefined);
}

function unknownKey(file: string, key: string, section: CommandName | undefined): never {
  const keysOf = (each: CommandName): string[] =>
    Object.keys(COMMANDS[each].options).filter((name) => optionIn(each, name) !== undefined);
  const keys = section === undefined ? SHOWN_NAMES.flatMap(keysOf) : keysOf(section);
  const names = section === undefined ? [...keys, ...SHOWN_NAMES] : keys;
  const where = section === undefined ? "" : ` in "${section}"`;
  const hint = didYouMean(
    key,
    [...new Set(names)],
    `; the options are ${[...new Set(names)].join(", ")}`,
  );
  throw new UsageError(`${file}: unknown option ${JSON.stringify(key)}${where}${hint}`);
}

function checkedValue(file: string, key: string, value: unknown, option: Option): unknown {
  const found = option.fromJson(value, dirname(file));
  if (found !== undefined) return found;
  const shown = option.isSecret ? "the given value" : JSON.stringify(value);
  throw new UsageError(`${file}: ${key} must be ${option.expected}, not ${shown}`);
}
