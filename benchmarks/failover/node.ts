// One node of a benchmark's cluster: its file, its folders, and its process, which may be killed and started
// again with what it had.
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "../harness/resources.ts";
import { accepts, ServerProcess } from "../harness/server-process.ts";

/** A tick of /proc, on every Linux that Node.js runs on. */
const TICK_MS = 10;

/** The command line of this checkout; another one's is in its dist/, too. */
const OWN_DIST = dirname(fileURLToPath(import.meta.resolve("situ")));

export interface NodeOptions {
  readonly id: number;
  readonly port: number;
  /** What is in its file beside its id and its path. */
  readonly file: object;
  readonly memoryFolder: string;
  /** Where `situ-cli.js` is: another version's may be measured. */
  readonly dist?: string;
}

export class BenchNode {
  readonly id: number;
  readonly port: number;
  readonly #args: readonly string[];
  readonly #env: NodeJS.ProcessEnv;
  #process: ServerProcess | undefined;

  constructor({ id, port, file, memoryFolder, dist = OWN_DIST }: NodeOptions) {
    const folder = temporaryFolder(tmpdir());
    const path = join(folder, "node.json");
    writeFileSync(path, JSON.stringify({ id, path: join(folder, "store"), ...file }));
    this.id = id;
    this.port = port;
    this.#args = [join(dist, "situ-cli.js"), "node", "--config", path];
    this.#env = { ...process.env, SITU_MEMORY_DIR: temporaryFolder(memoryFolder) };
  }

  get isRunning(): boolean {
    return this.#process?.hasEnded === false;
  }

  /** Processor time of all its threads since it was started. */
  cpuMs(): number {
    const stat = readFileSync(`/proc/${this.#process!.pid}/stat`, "utf8");
    // Behind the name, which may contain anything: state is the first, utime and stime the 12th and 13th.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  }

  start(): void {
    this.#process = new ServerProcess(process.execPath, this.#args, this.#env);
  }

  /** Fails with what it has said, if it cannot start. */
  async listening(): Promise<void> {
    await this.#process!.ready(() => accepts(this.port));
  }

  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  async stop(): Promise<void> {
    if (this.isRunning) await this.#process!.stop();
  }
}
