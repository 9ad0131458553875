// One node of a benchmark's cluster: its file, its folders, and its process, which may be killed and started
// again with what it had.
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "../harness/resources.ts";
import { accepts, ServerProcess } from "../harness/server-process.ts";

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
