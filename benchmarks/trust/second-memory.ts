// Two processes share a store's folder and have a /dev/shm each, as two containers on one volume. One commits
// with durability "sync" all the time, the other tries to open the store again and again.
import { tmpdir } from "node:os";
import * as situ from "situ";
import { counted, type Figure, missingFigure } from "../harness/figures.ts";
import { ownMemory, whyNoOwnMemory } from "../harness/own-memory.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import { temporaryFolder } from "../harness/resources.ts";
import type { TrustContext, TrustMeasure, TrustResult } from "./measure.ts";
import {
  type ClientReply,
  type ClientRequest,
  type ClientTask,
  ledgerTable,
  ROWS_PER_CLIENT,
} from "./second-memory-process.ts";

const ATTEMPTS = 100;
const QUICK_ATTEMPTS = 10;
const REFUSED = "SITU_OTHER_MEMORY";

type Client = MeasuringProcess<ClientRequest, ClientReply>;

function startClient(task: ClientTask): Promise<Client> {
  const script = new URL("./second-memory-process.js", import.meta.url);
  return MeasuringProcess.start(script, task, ownMemory());
}

export const secondMemory: TrustMeasure = {
  name: "second-memory",
  async run({ options, progress }: TrustContext): Promise<TrustResult> {
    const attempts = options.quick ? QUICK_ATTEMPTS : ATTEMPTS;
    const figuresOf = (refused: number, lost: number): Figure[] => [
      counted(refusedName(attempts), { atLeast: attempts }, refused, "attempts"),
      counted(LOST, { atMost: 0 }, lost, "commits"),
    ];
    const why = whyNoOwnMemory();
    if (why !== undefined) {
      const figures = [
        missingFigure(refusedName(attempts), { atLeast: attempts }, why),
        missingFigure(LOST, { atMost: 0 }, why),
      ];
      return { figures, notes: [] };
    }
    const path = temporaryFolder(tmpdir());
    const writer = await startClient({ path, client: 0 });
    await writer.ask("write");
    const intruder = await startClient({ path, client: 1 });
    const outcomes = new Map<string, number>();
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const { outcome } = await intruder.ask("intrude");
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      progress.show(`second-memory: attempt ${attempt} of ${attempts}`);
    }
    const acknowledged = [await writer.ask("end"), await intruder.ask("end")];
    await Promise.all([writer.stop(), intruder.stop()]);
    const lost = await countLost(path, acknowledged);
    const others = [...outcomes].filter(([outcome]) => outcome !== REFUSED);
    return {
      figures: figuresOf(outcomes.get(REFUSED) ?? 0, lost),
      notes: [
        `second-memory: ${acknowledged[0].acknowledged} commits acknowledged to the writer, ` +
          `${acknowledged[1].acknowledged} to the other process, while it tried ${attempts} times; then both ` +
          `ended and the store was rebuilt from its log`,
        ...others.map(
          ([outcome, count]) => `second-memory: ${count} attempts ended with ${outcome}`,
        ),
      ],
    };
  },
};

const LOST = "acknowledged sync commits lost";
const refusedName = (attempts: number): string =>
  `a second memory refused, of ${attempts} attempts`;

/** The memory of both went with their mounts, so what is found here comes from the log. */
async function countLost(path: string, acknowledged: readonly ClientReply[]): Promise<number> {
  const ledger = ledgerTable(situ);
  const db = await situ.open({ path, tables: [ledger] });
  let lost = 0;
  try {
    for (const [client, reply] of acknowledged.entries()) {
      for (let row = 0; row < reply.acknowledged; row++) {
        if (db.get(ledger, client * ROWS_PER_CLIENT + row) === undefined) lost++;
      }
    }
  } finally {
    await db.close();
    await situ.destroy(path);
  }
  return lost;
}
