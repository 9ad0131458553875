/** A member of etcd that does what a test wants: answers, refuses, is silent, or answers late. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer, Server as SecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TlsOptions } from "../../src/fabric/tcp/tcp-options.ts";

interface Asked {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
}

/** What becomes of a request instead of its answer. `lost`: it is done, and the answer does not come. */
export type Fault = "silent" | "reset" | "lost" | "garbage" | { status: number; body: unknown };

export class FakeEtcd {
  readonly asked: Asked[] = [];
  /** By what is asked, for as long as it says something. */
  fault: (path: string, asked: Asked) => Fault | undefined = () => undefined;
  user: { name: string; password: string } | undefined;
  token = "token-1";
  value: string | undefined;
  revision = 1;
  readonly #server: Server;
  readonly #watchers = new Set<ServerResponse>();

  private constructor(server: Server) {
    this.#server = server;
  }

  /** With TLS, clients need a certificate, too. */
  static async start(tls?: TlsOptions): Promise<FakeEtcd> {
    const serve = (request: IncomingMessage, response: ServerResponse): void =>
      void fake.#serve(request, response);
    const server =
      tls === undefined
        ? createServer(serve)
        : createSecureServer({ ...tls, requestCert: true, rejectUnauthorized: true }, serve);
    const fake = new FakeEtcd(server);
    await once(server.listen(0, "127.0.0.1"), "listening");
    return fake;
  }

  get url(): string {
    const scheme = this.#server instanceof SecureServer ? "https" : "http";
    return `${scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  paths(): string[] {
    return this.asked.map(({ path }) => path);
  }

  put(value: string): void {
    this.value = Buffer.from(value).toString("base64");
    this.revision++;
    this.tell({ result: { events: [{ kv: { value: this.value } }] } });
  }

  /** A line to all who watch. */
  tell(line: object): void {
    for (const watcher of this.#watchers) watcher.write(`${JSON.stringify(line)}\n`);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    if (this.#server.listening) await once(this.#server.close(), "close");
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const path = request.url ?? "";
    const body = JSON.parse(Buffer.concat(parts).toString()) as Asked["body"];
    const asked = { path, headers: request.headers, body };
    this.asked.push(asked);
    const fault = this.fault(path, asked);
    const isRefused = this.user !== undefined && request.headers.authorization !== this.token;
    if (fault === "silent") return;
    if (fault === "reset") request.socket.destroy();
    else if (fault === "garbage") response.end("<html>");
    else if (typeof fault === "object") reply(response, fault.body, fault.status);
    else if (path === "/v3/auth/authenticate") this.#authenticate(body, response);
    else if (isRefused) {
      reply(response, { code: 16, message: "etcdserver: invalid auth token" }, 401);
    } else if (path === "/v3/watch") this.#watch(response);
    else {
      const answer = path === "/v3/kv/txn" ? this.#swap(body) : this.#range();
      if (fault !== "lost") reply(response, answer);
    }
  }

  #authenticate({ name, password }: Asked["body"], response: ServerResponse): void {
    if (this.user === undefined) {
      const body = { code: 9, message: "etcdserver: authentication is not enabled" };
      reply(response, body, 400);
    } else if (name === this.user.name && password === this.user.password) {
      reply(response, { token: this.token });
    } else {
      const message = "etcdserver: authentication failed, invalid user ID or password";
      reply(response, { error: message, code: 3, message }, 400);
    }
  }

  #watch(response: ServerResponse): void {
    this.#watchers.add(response);
    response.once("close", () => this.#watchers.delete(response));
    response.write(`${JSON.stringify({ result: { created: true } })}\n`);
  }

  #range(): object {
    const { value } = this;
    return value === undefined ? {} : { kvs: [{ value, mod_revision: String(this.revision) }] };
  }

  #swap(body: Asked["body"]): object {
    const [{ mod_revision }] = body.compare as [{ mod_revision: string }];
    const [{ request_put }] = body.success as [{ request_put: { value: string } }];
    const there = this.value === undefined ? "0" : String(this.revision);
    if (mod_revision !== there) return {};
    this.put(Buffer.from(request_put.value, "base64").toString());
    return { succeeded: true };
  }
}

function reply(response: ServerResponse, body: unknown, status = 200): void {
  response.statusCode = status;
  response.end(JSON.stringify(body));
}
