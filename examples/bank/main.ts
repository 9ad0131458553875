/**
 * The demo: several processes move money between the accounts of one store, with no server between
 * them. Half-way one of them is killed in the middle of its work. The others go on, clean up after
 * it, and the sum holds.
 *
 *   bank.ts          the tables, a transfer, an audit: all that Situ is used for
 *   teller.ts        a process that moves money
 *   head-office.ts   the process that starts the tellers, kills one, and counts
 *   options.ts, screen.ts, result.ts   what is typed and what is seen
 */

import { OPENING_BALANCE } from "./bank.ts";
import { HeadOffice } from "./head-office.ts";
import { type Options, readOptions, usage } from "./options.ts";
import { showResult } from "./result.ts";
import { bold, count, dim, failure, line } from "./screen.ts";

async function main(options: Options): Promise<number> {
  const office = new HeadOffice(options);
  process.on("SIGINT", () => office.interrupt(130, "interrupted"));
  process.on("SIGTERM", () => office.interrupt(143, "terminated"));
  try {
    line(bold(`One bank, ${options.tellers} tellers, no server`));
    await office.open();
    const total = OPENING_BALANCE * BigInt(options.accounts);
    line(`  ${count(options.accounts)} accounts with ${count(total)} coins in ${office.folder}`);
    line(dim("  Every teller is a process that maps the same memory and moves money in it."));
    line();
    let seconds = 0;
    try {
      await office.startTellers();
      seconds = await office.work();
    } finally {
      await office.stopTellers();
    }
    if (office.interruption) {
      failure(office.interruption.why);
      return office.interruption.exitCode;
    }
    const result = office.count(seconds);
    showResult(result);
    if (options.json) console.log(JSON.stringify(result));
    return result.ok ? 0 : 1;
  } catch (error) {
    failure(error instanceof Error ? error.message : String(error));
    return 1;
  } finally {
    await office.cleanUp();
  }
}

function optionsOrExit(): Options {
  try {
    const options = readOptions(process.argv.slice(2));
    if (!options.help) return options;
    console.log(usage);
    process.exit(0);
  } catch (error) {
    failure(`${(error as Error).message}\n`);
    console.error(usage);
    process.exit(2);
  }
}

process.exitCode = await main(optionsOrExit());
