// PostgreSQL of our own: a cluster in a temporary folder, reached by a unix socket in that folder
// and nowhere else. A server that runs on the machine already is never used or touched.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { firstLine, missingPeer, type Peer, peersFolder } from "./peers.ts";
import { PostgresClient } from "./postgres-client.ts";
import { onRelease, temporaryFolder } from "./resources.ts";

export interface PostgresPrograms {
  readonly folder: string;
  /** Whom they run as, if not as this process: PostgreSQL refuses to run as root. */
  readonly owner: Owner | undefined;
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export interface PgbenchRun {
  readonly script: string;
  readonly clients: number;
  readonly threads: number;
  readonly seconds: number;
  readonly seed: number;
  readonly variables: Readonly<Record<string, number>>;
}

/** The version of the bar. */
const major = 15;
export const superuser = "postgres";
const port = 5432;
const startDeadlineMs = 300_000;
const settingsFolder = join(peersFolder, "postgresql");

export function findPostgres(): Peer<PostgresPrograms> {
  const folders = [`/usr/lib/postgresql/${major}/bin`, output("pg_config", ["--bindir"])];
  for (const folder of folders) {
    if (folder === undefined || !existsSync(join(folder, "pgbench"))) continue;
    const version = /(\d+)\.\d+/.exec(output(join(folder, "postgres"), ["--version"]) ?? "");
    if (Number(version?.[1]) !== major) continue;
    const owner = process.getuid?.() === 0 ? (ownerOf("postgres") ?? ownerOf("nobody")) : undefined;
    return { available: true, version: version?.[0] ?? "", value: { folder, owner } };
  }
  return missingPeer(`PostgreSQL ${major} with pgbench is not installed`);
}

/**
 * A new, empty cluster below `parent`, not started. Removed with everything else. `settings` are
 * files in benchmarks/peers/postgresql; what a later one says counts.
 */
export async function createCluster(
  programs: PostgresPrograms,
  parent: string,
  settings: readonly string[] = ["postgresql.conf"],
): Promise<PostgresCluster> {
  const folder = temporaryFolder(parent);
  const { owner } = programs;
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
  const cluster = new PostgresCluster(programs, folder);
  await cluster.initialize(settings);
  return cluster;
}

export class PostgresCluster {
  readonly #programs: PostgresPrograms;
  readonly #folder: string;
  /** What the server keeps: with it stopped, a copy of this folder is a copy of the cluster. */
  readonly dataFolder: string;
  #server: Server | undefined;

  /** Use `createCluster`. */
  constructor(programs: PostgresPrograms, folder: string) {
    this.#programs = programs;
    this.#folder = folder;
    this.dataFolder = join(folder, "data");
  }

  async initialize(settings: readonly string[]): Promise<void> {
    const args = ["-D", this.dataFolder, "-U", superuser, "--auth=trust", "--locale=C"];
    await this.#run("initdb", [...args, "--encoding=UTF8", "--no-sync", "--no-instructions"]);
    const text = settings.map((name) => readFileSync(join(settingsFolder, name), "utf8")).join("");
    writeFileSync(join(this.dataFolder, "postgresql.conf"), text);
  }

  /** Resolves as soon as a query would be answered; recovers first, if the server had crashed. */
  async start(): Promise<PostgresClient> {
    const server = new Server(
      this.#spawn("postgres", ["-D", this.dataFolder, "-k", this.#folder, "-p", String(port)]),
      // Not by a signal: in an exit handler nobody would notice the end, and its folder is next.
      () => spawnSync(this.#program("pg_ctl"), this.#stopArguments(), this.#options()),
    );
    this.#server = server;
    const deadline = performance.now() + startDeadlineMs;
    while (!this.#isReady()) {
      if (server.hasEnded || performance.now() > deadline) {
        await server.end("SIGQUIT");
        throw new Error(`postgres did not start: ${firstLine(server.log().trim())}`);
      }
      await sleep(1);
    }
    return PostgresClient.connect(join(this.#folder, `.s.PGSQL.${port}`), superuser);
  }

  /** Where the socket is; what clients take for the name of a host. */
  get socketFolder(): string {
    return this.#folder;
  }

  /** What the server said since its start. */
  log(): string {
    return this.#server?.log() ?? "";
  }

  /** In good order: the next start has nothing to recover. */
  async stop(): Promise<void> {
    await this.#server?.end("SIGINT");
  }

  /** Ends it at once, and leaves nothing. */
  async remove(): Promise<void> {
    await this.crash();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** As after a power cut, except that what the system has in its cache stays: no checkpoint. */
  async crash(): Promise<void> {
    await this.#server?.end("SIGQUIT");
  }

  /** What pgbench prints. */
  pgbench({ script, clients, threads, seconds, seed, variables }: PgbenchRun): Promise<string> {
    const defines = Object.entries(variables).flatMap(([name, value]) => [
      "-D",
      `${name}=${value}`,
    ]);
    const counts = ["-c", String(clients), "-j", String(threads), "-T", String(seconds)];
    return this.#run("pgbench", [
      ...["-h", this.#folder, "-p", String(port), "-U", superuser, "-n", "-M", "prepared"],
      ...["-f", join(settingsFolder, script), `--random-seed=${seed}`, ...counts, ...defines],
      "postgres",
    ]);
  }

  /**
   * The server writes its state where pg_ctl looks for it. Asking by connections instead would
   * start a process for each question, beside the recovery that is measured.
   */
  #isReady(): boolean {
    try {
      const lines = readFileSync(join(this.dataFolder, "postmaster.pid"), "utf8").split("\n");
      return lines[0] === String(this.#server?.pid) && lines[7]?.trim() === "ready";
    } catch {
      return false;
    }
  }

  async #run(program: string, args: readonly string[]): Promise<string> {
    const child = this.#spawn(program, args);
    const release = onRelease(() => killQuietly(child));
    let printed = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      printed += chunk.toString();
    });
    const log = collect(child);
    const code = await new Promise((resolve) => child.once("close", resolve));
    release();
    if (code !== 0) throw new Error(`${program} failed: ${firstLine(log().trim())}`);
    return printed;
  }

  #spawn(program: string, args: readonly string[]): ChildProcess {
    const stdio: ("ignore" | "pipe")[] = ["ignore", "pipe", "pipe"];
    return spawn(this.#program(program), args, { ...this.#options(), stdio });
  }

  #program(name: string): string {
    return join(this.#programs.folder, name);
  }

  #stopArguments(): string[] {
    return ["stop", "-D", this.dataFolder, "-m", "immediate", "-w"];
  }

  /** In a folder that its user may enter, and with messages that can be read here. */
  #options() {
    const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
    return { cwd: this.#folder, env, ...this.#programs.owner };
  }
}

/** The postmaster. All processes of the server have ended when its output is closed. */
class Server {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  readonly #release: () => void;
  readonly log: () => string;
  #stopped = false;

  constructor(child: ChildProcess, stopNow: () => void) {
    this.#child = child;
    this.#ended = new Promise((resolve) => child.once("close", () => resolve()));
    this.log = collect(child);
    this.#release = onRelease(() => {
      if (!this.#stopped && !this.hasEnded) stopNow();
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async end(signal: "SIGINT" | "SIGQUIT"): Promise<void> {
    if (!this.hasEnded) this.#child.kill(signal);
    await this.#ended;
    this.#stopped = true;
    this.#release();
  }
}

function collect(child: ChildProcess): () => string {
  let text = "";
  const append = (chunk: Buffer): void => {
    text = (text + chunk.toString()).slice(-20_000);
  };
  child.stderr?.on("data", append);
  child.on("error", (error) => append(Buffer.from(error.message)));
  return () => text;
}

function killQuietly(child: ChildProcess): void {
  try {
    if (child.pid !== undefined && child.exitCode === null) process.kill(child.pid, "SIGTERM");
  } catch {
    // It ended by itself between the check and the signal.
  }
}

function ownerOf(user: string): Owner | undefined {
  const uid = output("id", ["-u", user]);
  const gid = output("id", ["-g", user]);
  return uid === undefined || gid === undefined
    ? undefined
    : { uid: Number(uid), gid: Number(gid) };
}

function output(command: string, args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync(command, args, { encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}
