/** INFO, whose text is made elsewhere, and TIME: that of the transaction inside of MULTI. */

import { wallClockMs } from "../../../../runtime/clock.ts";
import type { Call } from "../../call.ts";
import type { Command } from "../../command.ts";
import { infoText } from "../../info.ts";

function info(call: Call): void {
  const wanted: string[] = [];
  for (let i = 1; i < call.count; i++) wanted.push(call.text(i).toLowerCase());
  call.reply.verbatim("txt", infoText(call.server, wanted, call.keys.isInside));
}

function time({ reply, keys }: Call): void {
  const ms = keys.isInside ? keys.nowMs : wallClockMs();
  reply.array(2);
  reply.text(String(Math.floor(ms / 1000)));
  reply.text(String((ms % 1000) * 1000));
}

export const INFO_COMMANDS: readonly Command[] = [
  {
    name: "info",
    arity: -1,
    flags: ["loading", "stale"],
    group: "server",
    since: "1.0.0",
    summary: "Get information and statistics about the server",
    complexity: "O(1)",
    runs: "session",
    run: info,
  },
  {
    name: "time",
    arity: 1,
    flags: ["loading", "stale", "fast"],
    group: "server",
    since: "2.6.0",
    summary: "Return the current server time",
    complexity: "O(1)",
    runs: "session",
    run: time,
  },
];
