/** docs/CLI.md names exactly the commands, options, statements and exit codes that there are. */

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Command } from "../../src/cli/command.ts";
import { COMMANDS, SHOWN_NAMES } from "../../src/cli/commands.ts";
import { EXIT_CODES } from "../../src/cli/failures.ts";
import { environmentOf, flagOf } from "../../src/cli/option-kinds.ts";
import { OTHER_VARIABLES } from "../../src/cli/read-options.ts";
import { STATEMENTS } from "../../src/cli/work/shell/statements.ts";

const text = readFileSync(new URL("../../docs/CLI.md", import.meta.url), "utf8");

/** From a heading to the next one. */
function section(heading: string): string {
  const start = text.indexOf(`\n## ${heading}\n`);
  expect(start, `there is no heading ${heading}`).toBeGreaterThanOrEqual(0);
  const end = text.indexOf("\n## ", start + 1);
  return text.slice(start, end < 0 ? undefined : end);
}

/** The cells of the tables whose first head is this. */
function rows(part: string, head: string): string[][] {
  const tables = part.split(/\n\n/).filter((each) => each.trim().startsWith(`| ${head} |`));
  return tables.flatMap((table) =>
    table
      .trim()
      .split("\n")
      .slice(2)
      .map((line) =>
        line
          .slice(1, -1)
          .split(/(?<!\\)\|/)
          .map((cell) => cell.trim().replaceAll("\\|", "|")),
      ),
  );
}

/** As the document has them: flag with its value, environment, key, help. */
function described(name: keyof typeof COMMANDS): string[][] {
  return Object.entries((COMMANDS[name] as Command).options)
    .filter(([key]) => key !== "json" && (key !== "config" || name === "node"))
    .map(([key, option]) => {
      const value = option.placeholder === undefined ? "" : ` ${option.placeholder}`;
      const flag = option.isSecret ? "none" : `\`--${flagOf(key)}${value}\``;
      const help = option.isRequired ? `${option.help} (required)` : option.help;
      return [flag, `\`${environmentOf(key, option)}\``, `\`${key}\``, help];
    });
}

test("every command has a section, and there is no other", () => {
  const found = [...text.matchAll(/^## situ (\S+(?: \S+)?)$/gm)].map(([, name]) => name);
  expect(found.sort()).toEqual([...SHOWN_NAMES].sort());
});

describe("options", () => {
  test.each(SHOWN_NAMES)("of %s", (name) => {
    expect(rows(section(`situ ${name}`), "flag")).toEqual(described(name));
  });

  test("that all have", () => {
    const common = rows(section("Options and configuration"), "flag").map(([flag]) => flag);
    expect(common).toEqual(["`--json`", "`--config FILE`"]);
  });

  test("and other variables", () => {
    for (const name of OTHER_VARIABLES) expect(text).toContain(`\`${name}\``);
  });
});

test("the statements of the shell", () => {
  const expected = Object.values(STATEMENTS).map(([usage, what]) => [`\`${usage}\``, what]);
  expect(rows(section("situ shell"), "statement")).toEqual(expected);
});

test("the exit codes", () => {
  const found = rows(section("Results, errors, exit codes"), "exit code").map(([code]) =>
    Number.parseInt(code, 10),
  );
  expect(found).toEqual(EXIT_CODES.map(([code]) => code));
});

test("a planted difference is found", () => {
  const without = section("situ bench").replace(/^\| `--rows.*\n/m, "");
  expect(rows(without, "flag")).not.toEqual(described("bench"));
});
