/** The counts of round-trips.ts beside the papers', with the reasons for what is different. */

import { PROTOCOLS, type ProtocolName } from "../../src/protocols/places.ts";
import { TRUNCATE_BATCH } from "../../src/runtime/limits.ts";
import { type CountedTransaction, countRoundTrips, MIXES } from "./round-trips.ts";

export interface PaperCount {
  readonly roundTrips: number;
  readonly messages: Readonly<Record<string, number>>;
}

export interface Paper {
  readonly name: string;
  readonly mixes: Readonly<Record<string, PaperCount>>;
  readonly differences: readonly string[];
}

/** Three copies of all data (f = 2), all at different machines. */
export const PAPERS: Readonly<Record<ProtocolName, Paper>> = {
  "one-sided": {
    name: "FaRM §3.4, §3.6",
    mixes: {
      "O(1,0)": { roundTrips: 1, messages: { read: 1 } },
      "O(4,0)": { roundTrips: 2, messages: { read: 4, validate: 4 } },
      "O(4,2)": {
        roundTrips: 5,
        messages: {
          read: 4,
          prepare: 6,
          validate: 2,
          "commit at replicas": 4,
          "commit at primaries": 2,
        },
      },
    },
    differences: [
      "two verbs a lookup, in one round trip: a key's neighbourhood is two buckets, which lie side by " +
        "side in FaRM and are read at once; here each is an object with a version of its own",
      "prepare does not go to the replicas: FaRM's send them the writes with prepare and the outcome " +
        "with commit, here LOG brings both after validation; as many round trips, 4 messages fewer",
      "validate is a message here, one for each node and not for each object",
    ],
  },
  rpc: {
    name: "FaSST §5, Fig. 6",
    mixes: {
      "O(1,0)": { roundTrips: 1, messages: { execute: 1 } },
      "O(4,0)": { roundTrips: 2, messages: { execute: 4, validate: 4 } },
      "O(4,2)": {
        roundTrips: 5,
        messages: { execute: 4, validate: 2, log: 2, "commit backup": 4, "commit primary": 2 },
      },
    },
    differences: [
      "one round trip fewer: FaSST logs at f + 1 log replicas and then updates the backups; here the " +
        "backups' journals are the log (as in FaRM), and they apply it when they are told to truncate",
      "4 messages for the log, and none for the backups, in place of 2 + 4: FaSST's coordinator is a log " +
        "replica itself and writes one record for all rows; here each row's own backups log it",
    ],
  },
};

const DIFFERENCES_OF_BOTH: readonly string[] = [
  "waited for: the outcome is told when the last backup has logged the transaction, for then it is " +
    "committed; COMMIT at the primaries is a round trip that nobody waits for but those who want the rows, " +
    "and a coordinator that has no copy of what it writes, as in this table",
  `truncate: nobody waits for it, and one message ends up to ${TRUNCATE_BATCH} transactions; FaRM ` +
    "truncates lazily, too",
  "from a client: one round trip more, SUBMIT to the node that coordinates; and no locks with reads, " +
    "for a client that vanishes must leave none, so LOCK is a round trip there with either table. The " +
    "coordinator is a primary of the transaction: what it sends itself is no message",
  "single reads need no validation, in both papers and here",
];

export interface CountedRow {
  readonly protocol: ProtocolName;
  readonly mix: string;
  readonly paper: PaperCount;
  readonly node: CountedTransaction;
  readonly client: CountedTransaction;
}

export async function countAll(): Promise<CountedRow[]> {
  const rows: CountedRow[] = [];
  for (const protocol of Object.keys(PROTOCOLS) as ProtocolName[]) {
    const atNode = await countRoundTrips(protocol, "node");
    const atClient = await countRoundTrips(protocol, "client");
    for (const [i, { name: mix }] of MIXES.entries()) {
      const paper = PAPERS[protocol].mixes[mix];
      rows.push({ protocol, mix, paper, node: atNode[i], client: atClient[i] });
    }
  }
  return rows;
}

export function roundTripsTable(rows: readonly CountedRow[]): string[] {
  const lines = [
    "Round trips and requests of one committed transaction, counted; f = 2, all keys at other nodes; in " +
      "brackets the round trips until the outcome is known",
    "",
    "| table | transaction | round trips: paper | at a node | from a client | requests: paper | at a node | from a client |",
    "|---|---|---|---|---|---|---|---|",
  ];
  for (const { protocol, mix, paper, node, client } of rows) {
    const cells = [
      `${protocol} (${PAPERS[protocol].name})`,
      mix,
      paper.roundTrips,
      tripsOf(node),
      tripsOf(client),
      described(paper.messages),
      described(node.messages, node),
      described(client.messages, client),
    ];
    lines.push(`| ${cells.join(" | ")} |`);
  }
  lines.push("");
  for (const [protocol, { name, differences }] of Object.entries(PAPERS)) {
    for (const each of differences) lines.push(`${protocol}, against ${name}: ${each}.`);
  }
  for (const each of DIFFERENCES_OF_BOTH) lines.push(`both: ${each}.`);
  return lines;
}

function tripsOf({ roundTrips, waitedFor }: CountedTransaction): string {
  return waitedFor === roundTrips ? String(roundTrips) : `${roundTrips} (${waitedFor})`;
}

function described(messages: PaperCount["messages"], counted?: CountedTransaction): string {
  const parts = Object.entries(messages).map(([kind, count]) => `${count} ${kind}`);
  const sum = Object.values(messages).reduce((total, count) => total + count, 0);
  const later = counted?.truncations ? `; later ${counted.truncations} truncate` : "";
  return parts.length === 1 ? `${parts[0]}${later}` : `${sum}: ${parts.join(", ")}${later}`;
}
