/** One request to one member of etcd, over its JSON gateway: a POST of JSON, answered by JSON or by a stream of it. */

import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { SituError } from "../../runtime/errors.ts";
import { ETCD_CALL_MS, MAX_ETCD_REPLY_BYTES } from "../../runtime/limits.ts";
import type { EtcdOptions } from "./endpoints.ts";

/** A member of etcd that has answered with an error. */
export class EtcdError extends Error {
  override readonly name = "EtcdError";
  readonly status: number;
  /** The code of gRPC, or undefined if the answer was none of etcd's. */
  readonly code: number | undefined;

  constructor(endpoint: string, status: number, text: string) {
    const { code, said } = parsedError(text);
    super(`${endpoint}: ${said === "" ? `HTTP status ${status}` : said}`);
    this.status = status;
    this.code = code;
  }

  get isTokenInvalid(): boolean {
    return (
      this.code === UNAUTHENTICATED || /invalid auth token|revision in header/.test(this.message)
    );
  }

  /** Whether another member, or the same one later, may answer: it has no leader, is starting, is slow. */
  get isPassing(): boolean {
    if (this.code === undefined) return this.status !== 404;
    if (/too many requests/.test(this.message)) return true;
    return [DEADLINE_EXCEEDED, UNAVAILABLE, INTERNAL, UNKNOWN].includes(this.code);
  }
}

/** Codes of gRPC. */
const UNKNOWN = 2;
const DEADLINE_EXCEEDED = 4;
const INTERNAL = 13;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

/** Up to 3.5 the text is `error`, and also `message`; from 3.6 on only `message`. */
function parsedError(text: string): { code: number | undefined; said: string } {
  try {
    const { error, message, code } = (JSON.parse(text) ?? {}) as Record<string, unknown>;
    const said = [message, error].find((each) => typeof each === "string") ?? "";
    return { code: typeof code === "number" ? code : undefined, said: said as string };
  } catch {
    return { code: undefined, said: text.slice(0, 200).trim() };
  }
}

export interface EtcdCall {
  readonly options: EtcdOptions;
  readonly endpoint: string;
  readonly path: string;
  readonly body: object;
  readonly token: string | undefined;
  readonly signal?: AbortSignal;
}

/** Sends a request and gives the whole answer. */
export async function call(given: EtcdCall, timeoutMs = ETCD_CALL_MS): Promise<unknown> {
  const { endpoint } = given;
  const signal = AbortSignal.any([
    AbortSignal.timeout(timeoutMs),
    ...(given.signal === undefined ? [] : [given.signal]),
  ]);
  const response = await begin({ ...given, signal });
  const text = await textOf(response, endpoint);
  if (response.statusCode !== 200) throw new EtcdError(endpoint, response.statusCode ?? 0, text);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SituError("SITU_PROTOCOL", `${endpoint} answers what is not JSON`, { cause });
  }
}

/** Sends a request, and gives its answer when it begins. */
export function begin(given: EtcdCall): Promise<IncomingMessage> {
  const { options, endpoint, path, body, token, signal } = given;
  const { ca, cert, key } = options;
  const isSecure = endpoint.startsWith("https:");
  return new Promise((resolve, reject) => {
    const send = isSecure ? httpsRequest : httpRequest;
    const request: ClientRequest = send(
      `${endpoint}${path}`,
      {
        method: "POST",
        // A connection each: requests are rare, and one to a member that has gone must not be kept.
        agent: false,
        headers: {
          "content-type": "application/json",
          // Without it, a member that is cut off from the others would answer, or keep a watch open.
          "grpc-metadata-hasleader": "true",
          ...(token === undefined ? {} : { authorization: token }),
        },
        ...(signal === undefined ? {} : { signal }),
        ...(isSecure ? { ca, cert, key } : {}),
      },
      resolve,
    );
    request.once("error", reject);
    request.end(JSON.stringify(body));
  });
}

async function textOf(response: IncomingMessage, endpoint: string): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > MAX_ETCD_REPLY_BYTES) {
      response.destroy();
      throw new SituError(
        "SITU_PROTOCOL",
        `${endpoint} answers more than ${MAX_ETCD_REPLY_BYTES} bytes`,
      );
    }
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}
