/** The result of a day at the bank, for people; as JSON it is the same object. */

import type { Stats } from "situ";
import { bold, count, line, showTable, verdict } from "./screen.ts";

export interface Killed {
  readonly id: number;
  readonly atSeconds: number;
  /** Undefined if nobody took over in time. */
  readonly recoveredAfterMs: number | undefined;
}

export interface Result {
  readonly demo: "bank";
  readonly ok: boolean;
  readonly seconds: number;
  readonly accounts: number;
  readonly sum: { readonly before: number; readonly after: number };
  readonly transfers: number;
  /** Left on the accounts: two for each transfer, if every transfer is whole. */
  readonly marks: number;
  readonly tellers: readonly {
    readonly id: number;
    readonly name: string;
    readonly pid: number;
    readonly transfers: number;
  }[];
  readonly killed: Killed | undefined;
  readonly audits: { readonly families: number; readonly outOfBalance: number };
  readonly counters: Stats["counters"];
}

export function showResult(result: Result): void {
  const { tellers, killed, sum, transfers, marks, audits, counters, seconds } = result;
  const note = (id: number): string =>
    id === killed?.id ? `killed after ${killed.atSeconds.toFixed(1)} s` : "";
  line();
  showTable(
    ["teller", " pid", " transfers", ""],
    [
      ...tellers.map(({ id, name, pid, transfers }) => [
        name,
        `${pid}`,
        count(transfers),
        note(id),
      ]),
      ["together", "", count(transfers), `${count(Math.round(transfers / seconds))} per second`],
    ],
  );
  line();
  verdict(
    sum.before === sum.after,
    "the sum",
    `${count(sum.before)} coins before, ${count(sum.after)} after`,
  );
  verdict(
    marks === 2 * transfers,
    "no transfer is half there",
    `${count(marks)} marks on accounts, 2 × ${count(transfers)} transfers`,
  );
  verdict(
    audits.outOfBalance === 0,
    "audits during the work",
    `${count(audits.families)} families, each added up in one transaction`,
  );
  if (killed !== undefined) {
    const name = tellers.find(({ id }) => id === killed.id)?.name;
    verdict(
      killed.recoveredAfterMs !== undefined,
      "the killed process",
      `${name}'s last transfer is there whole or not at all; recoveries: ${counters.recoveries}`,
    );
  }
  line();
  line(`  ${bold(result.ok ? "The sum holds." : "Something is wrong: see above.")}`);
}
