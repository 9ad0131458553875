/**
 * What an option can be: each kind knows how a person writes it on the command line, how it stands
 * in situ.config.json, and how to say what would have been right. A command has one table of
 * options; flags, names in the environment, keys of the configuration, checks and help follow from
 * it.
 */

import { resolve } from "node:path";
import { durationOf, sizeOf } from "./units.ts";

/** An option whose value a command gets as `Value`. */
export interface Option<Value = unknown> {
  readonly help: string;
  /** What stands for the value in help, as N or DIR; a switch has none. */
  readonly placeholder: string | undefined;
  /** What is right, as the end of "port is …". */
  readonly expected: string;
  readonly isRequired: boolean;
  /** Never on the command line, which everybody sees in `ps`, and never shown. */
  readonly isSecret: boolean;
  readonly fallback: unknown;
  /** Its name in the environment, if that does not follow from its own. */
  readonly environment: string | undefined;
  /** The value of a flag or of the environment; undefined if it is none. */
  fromText(text: string, folder: string): unknown;
  /** The value of a key in situ.config.json, relative to its folder; undefined if it is none. */
  fromJson(value: unknown, folder: string): unknown;
  /** Only for the type checker. */
  readonly value?: Value;
}

export type Options = Readonly<Record<string, Option>>;

export type ValuesOf<O extends Options> = {
  readonly [Name in keyof O]: O[Name] extends Option<infer Value> ? Value : never;
};

type Parts = Pick<Option, "help" | "placeholder" | "expected" | "fromText" | "fromJson">;

function option<Value>(parts: Parts): Option<Value | undefined> {
  return {
    ...parts,
    isRequired: false,
    isSecret: false,
    fallback: undefined,
    environment: undefined,
  };
}

export function required<Value>(given: Option<Value | undefined>): Option<Value> {
  return { ...(given as Option<Value>), isRequired: true };
}

export function defaulted<Value>(fallback: Value, given: Option<Value | undefined>): Option<Value> {
  return { ...(given as Option<Value>), fallback };
}

export function inEnvironment<Value>(environment: string, given: Option<Value>): Option<Value> {
  return { ...given, environment };
}

/** Only from the environment or situ.config.json. */
export function secret(help: string): Option<string | undefined> {
  return { ...text("TEXT", help), isSecret: true };
}

export function text(placeholder: string, help: string): Option<string | undefined> {
  return option<string>({
    help,
    placeholder,
    expected: "a string",
    fromText: (given) => (given === "" ? undefined : given),
    fromJson: (given) => (typeof given === "string" && given !== "" ? given : undefined),
  });
}

/** A file or folder: in a configuration it is relative to that file. */
export function path(placeholder: string, help: string): Option<string | undefined> {
  const resolved = (given: unknown, folder: string): string | undefined =>
    typeof given === "string" && given !== "" ? resolve(folder, given) : undefined;
  return option<string>({
    help,
    placeholder,
    expected: placeholder === "DIR" ? "the name of a folder" : "the name of a file",
    fromText: resolved,
    fromJson: resolved,
  });
}

export function whole(least: number, most: number, help: string): Option<number | undefined> {
  const checked = (given: number): number | undefined =>
    Number.isInteger(given) && given >= least && given <= most ? given : undefined;
  return option<number>({
    help,
    placeholder: "N",
    expected: `a whole number from ${least} to ${most}`,
    fromText: (given) => (/^\d{1,15}$/.test(given) ? checked(Number(given)) : undefined),
    fromJson: (given) => (typeof given === "number" ? checked(given) : undefined),
  });
}

/** Bytes: 4194304, 64MiB, 1.5GiB. */
export function size(help: string): Option<number | undefined> {
  return option<number>({
    help,
    placeholder: "SIZE",
    expected: "a size such as 64MiB, 1.5GiB or a number of bytes",
    fromText: sizeOf,
    fromJson: (given) => sizeOf(typeof given === "number" ? String(given) : given),
  });
}

/** Bytes, or "auto". */
export function sizeOrAuto(help: string): Option<number | "auto" | undefined> {
  const { fromText, fromJson } = size(help);
  return option<number | "auto">({
    help,
    placeholder: "SIZE",
    expected: "a size such as 64MiB, 1.5GiB or a number of bytes, or auto",
    fromText: (given, folder) => (given === "auto" ? given : fromText(given, folder)),
    fromJson: (given, folder) => (given === "auto" ? given : fromJson(given, folder)),
  });
}

/** Milliseconds: 500ms, 1.5s, 2min; in a configuration also a number, of milliseconds. */
export function duration(help: string): Option<number | undefined> {
  return option<number>({
    help,
    placeholder: "TIME",
    expected: "a duration such as 500ms, 1.5s or 2min",
    fromText: durationOf,
    fromJson: (given) => durationOf(typeof given === "number" ? `${given}ms` : given),
  });
}

export function choice<const Choice extends string>(
  choices: readonly Choice[],
  help: string,
): Option<Choice | undefined> {
  const find = (given: unknown): Choice | undefined => choices.find((each) => each === given);
  return option<Choice>({
    help,
    placeholder: choices.join("|"),
    expected: `one of ${choices.join(", ")}`,
    fromText: find,
    fromJson: find,
  });
}

/** A moment: a date and time that say their zone, or UTC. */
export function moment(help: string): Option<Date | undefined> {
  const dateOf = (given: unknown): Date | undefined => {
    if (typeof given !== "string" || !MOMENT.test(given)) return undefined;
    const hasZone = /(Z|[+-]\d\d:\d\d)$/.test(given);
    const date = new Date(hasZone ? given : `${given.replace(" ", "T")}Z`);
    return Number.isFinite(date.getTime()) ? date : undefined;
  };
  return option<Date>({
    help,
    placeholder: "MOMENT",
    expected: "a time such as 2026-11-15T18:30:00Z",
    fromText: dateOf,
    fromJson: dateOf,
  });
}

const MOMENT = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?$/;

/** How a switch is turned on in the environment, and off. */
export const TRUE: readonly string[] = ["1", "true", "yes", "on"];
const FALSE: readonly string[] = ["0", "false", "no", "off", ""];

/** A switch. The text is that of the environment: as a flag it has none. */
export function flag(help: string): Option<boolean> {
  return defaulted(
    false,
    option<boolean>({
      help,
      placeholder: undefined,
      expected: "true or false",
      fromText: (given) =>
        TRUE.includes(given) ? true : FALSE.includes(given) ? false : undefined,
      fromJson: (given) => (typeof given === "boolean" ? given : undefined),
    }),
  );
}

/** As a flag: maxClients is --max-clients. */
export function flagOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** In the environment: maxClients is SITU_MAX_CLIENTS. */
export function environmentOf(name: string, { environment }: Option): string {
  return environment ?? `SITU_${flagOf(name).replaceAll("-", "_").toUpperCase()}`;
}
