// Transfers as Redis clients write them: WATCH two accounts, read them, MULTI, write, EXEC, and again
// if another got in between. The sum of all balances must stay as it is.
import { Stream } from "../../workloads/random/stream.ts";
import { Connection, request } from "./connection.ts";
import type { Target } from "./servers.ts";

const accounts = 1_000;
const balance = 1_000;
const clients = 20;

export interface Transfers {
  readonly perSecond: number;
  /** EXECs that were refused, of all. */
  readonly refused: number;
}

function key(account: number): string {
  return `account:${String(account).padStart(8, "0")}`;
}

export async function loadAccounts({ port }: Target): Promise<void> {
  const connection = await Connection.open(port);
  const pairs = Array.from({ length: accounts }, (_, i) => [key(i), String(balance)]).flat();
  await connection.ask(request("MSET", ...pairs), 1);
  connection.close();
}

export async function checkAccounts({ name, port }: Target): Promise<void> {
  const connection = await Connection.open(port);
  const keys = Array.from({ length: accounts }, (_, i) => key(i));
  const [reply] = await connection.ask(request("MGET", ...keys), 1);
  connection.close();
  const values = reply.split("\r\n").filter((line) => /^-?\d+$/.test(line));
  const sum = values.reduce((total, value) => total + Number(value), 0);
  if (sum !== accounts * balance) throw new Error(`${name}: ${sum} is not what was there`);
}

export async function measureTransfers(
  { port }: Target,
  ms: number,
  seed: number,
): Promise<Transfers> {
  const connections = await Promise.all(
    Array.from({ length: clients }, () => Connection.open(port)),
  );
  const counts = { done: 0, refused: 0 };
  const start = performance.now();
  const end = start + ms;
  await Promise.all(
    connections.map((connection, i) => runClient(connection, seed * clients + i, end, counts)),
  );
  const seconds = (performance.now() - start) / 1e3;
  for (const connection of connections) connection.close();
  return {
    perSecond: counts.done / seconds,
    refused: counts.refused / (counts.done + counts.refused),
  };
}

async function runClient(
  connection: Connection,
  seed: number,
  end: number,
  counts: { done: number; refused: number },
): Promise<void> {
  const random = new Stream(seed);
  while (performance.now() < end) {
    const from = random.below(accounts);
    const to = (from + 1 + random.below(accounts - 1)) % accounts;
    const look = [request("WATCH", key(from), key(to)), request("MGET", key(from), key(to))];
    const [, balances] = await connection.ask(Buffer.concat(look), 2);
    const [, , fromText, , toText] = balances.split("\r\n");
    const commit = [
      request("MULTI"),
      request("SET", key(from), String(Number(fromText) - 1)),
      request("SET", key(to), String(Number(toText) + 1)),
      request("EXEC"),
    ];
    const [, , , outcome] = await connection.ask(Buffer.concat(commit), 4);
    if (outcome.startsWith("*-1")) counts.refused++;
    else counts.done++;
  }
}
