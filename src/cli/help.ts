/** What `situ help` says: made from the tables of commands and options, for people and as JSON. */

import type { Command } from "./command.ts";
import { COMMANDS, type CommandName, SHOWN_NAMES } from "./commands.ts";
import { CONFIG_NAME } from "./config-file.ts";
import { EXIT_CODES } from "./failures.ts";
import { environmentOf, flagOf, type Option } from "./option-kinds.ts";

/** Two columns, the first as wide as it must be. */
function columns(rows: readonly (readonly [string, string])[], indent = "  "): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows
    .map(([left, right]) => `${indent}${left.padEnd(width)}  ${right}`.trimEnd())
    .join("\n");
}

export function generalHelp(): string {
  return `Situ: shared transactional memory for Node.js.

Usage: situ <command> [options]

${columns(SHOWN_NAMES.map((name) => [`situ ${name} ${COMMANDS[name].synopsis}`, ""]))}

${columns([
  ...SHOWN_NAMES.map((name) => [name, COMMANDS[name].summary] as const),
  ["help [command]", "this text, or help for a command, with examples"],
  ["--version", "the version"],
])}

An option can be a flag, an environment variable (--port is SITU_PORT) or a key in
${CONFIG_NAME} in the working folder, in this order of precedence.

Exit codes:
${columns(EXIT_CODES.map(([code, what]) => [`${code}`.padStart(3), what]))}`;
}

function optionHelp(key: string, option: Option): readonly [string, string] {
  if (option.isSecret)
    return [environmentOf(key, option), `${option.help}; also in ${CONFIG_NAME}`];
  const value = option.placeholder === undefined ? "" : ` ${option.placeholder}`;
  return [
    `--${flagOf(key)}${value}`,
    option.isRequired ? `${option.help} (required)` : option.help,
  ];
}

export function commandHelp(name: CommandName): string {
  const { summary, synopsis, about, options, examples } = COMMANDS[name] as Command;
  return [
    `situ ${name}: ${summary}`,
    `Usage: situ ${name} ${synopsis}`,
    ...(about.length === 0 ? [] : [about.join("\n")]),
    `Options:\n${columns([
      ...Object.entries(options).map(([key, option]) => optionHelp(key, option)),
      ["--help", "this text"],
    ])}`,
    `Examples:\n${examples.map(([line, what]) => `  ${line}\n      ${what}`).join("\n")}`,
  ].join("\n\n");
}

/** The same for programs. */
export function helpAsJson(names: readonly CommandName[] = SHOWN_NAMES): object {
  return {
    commands: names.map((name) => {
      const { summary, synopsis, options, examples } = COMMANDS[name] as Command;
      return {
        name,
        summary,
        usage: `situ ${name} ${synopsis}`,
        options: Object.entries(options).map(([key, option]) => ({
          name: key,
          flag: option.isSecret ? null : `--${flagOf(key)}`,
          environment: environmentOf(key, option),
          expected: option.expected,
          default: option.fallback ?? null,
          isRequired: option.isRequired,
          help: option.help,
        })),
        examples: examples.map(([line, what]) => ({ line, what })),
      };
    }),
    exitCodes: Object.fromEntries(EXIT_CODES),
  };
}
