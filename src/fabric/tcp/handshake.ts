/**
 * The first frames of a connection, before anything else is said. `c` is the one who connects:
 *
 *   c → s  HELLO      magic, version, cluster, role (CLIENT or a node's number), the node it wants to
 *                     reach (or ANYBODY), a nonce
 *   s → c  CHALLENGE  magic, version, the node's number, the id of its instance, a nonce
 *   c → s  PROOF      HMAC over both frames, if c has a secret; otherwise nothing
 *   s → c  READY      HMAC over both frames, with another role; otherwise nothing
 *
 * Or, in place of what is next, REFUSED with the error, and the end of the connection. The proof
 * covers every byte that was said, with a nonce of each side: neither can it be used again, nor can
 * one in between change a role or a name. Where there is no secret everybody is believed.
 *
 * Here are the frames only, as functions; link.ts sends them.
 */

import { SituError } from "../../runtime/errors.ts";
import { MAX_NAME_BYTES } from "../../runtime/limits.ts";
import { isProof, NONCE_BYTES, PROOF_BYTES, prove } from "../../runtime/secret.ts";
import { CLIENT, type NodeId, nodeIdOf } from "../fabric.ts";
import type { Reader, Writer } from "../wire.ts";

export const HELLO = 8;
export const CHALLENGE = 9;
export const PROOF = 10;
export const READY = 11;
export const REFUSED = 12;

/** In place of the node that one wants to reach. */
export const ANYBODY = -1;

/** "Situ", as a little-endian word. */
const MAGIC = 0x75746953;
/** 2: a node describes a table with the seed of its hash. */
export const PROTOCOL_VERSION = 3;
/** No frame of a handshake is longer. */
export const HANDSHAKE_WORDS = 512;
const MAX_INSTANCE_BYTES = 64;

export interface Hello {
  readonly cluster: string;
  readonly role: NodeId;
  readonly to: NodeId;
  readonly nonce: Uint8Array;
}

export interface Challenge {
  readonly node: NodeId;
  readonly instance: string;
  readonly nonce: Uint8Array;
}

export function writeHello(out: Writer, hello: Hello): void {
  out.word(MAGIC);
  out.word(PROTOCOL_VERSION);
  out.text(hello.cluster);
  out.word(hello.role);
  out.word(hello.to);
  out.bytes(hello.nonce);
}

export function readHello(body: Reader): Hello {
  readVersion(body);
  const cluster = shortText(body, MAX_NAME_BYTES);
  const role = body.word();
  if (role < CLIENT) throw new SituError("SITU_PROTOCOL", `there is no role ${role}`);
  return { cluster, role, to: body.word(), nonce: bytesOf(body, NONCE_BYTES) };
}

export function writeChallenge(out: Writer, challenge: Challenge): void {
  out.word(MAGIC);
  out.word(PROTOCOL_VERSION);
  out.word(challenge.node);
  out.text(challenge.instance);
  out.bytes(challenge.nonce);
}

export function readChallenge(body: Reader): Challenge {
  readVersion(body);
  const node = nodeIdOf(body.word());
  const instance = shortText(body, MAX_INSTANCE_BYTES);
  return { node, instance, nonce: bytesOf(body, NONCE_BYTES) };
}

/** What the two sides of a connection have said, as one proves it. */
export class Conversation {
  #said = new Uint8Array(0);

  add(frame: Uint8Array): void {
    const all = new Uint8Array(this.#said.length + frame.length);
    all.set(this.#said);
    all.set(frame, this.#said.length);
    this.#said = all;
  }

  writeProof(out: Writer, secret: string | undefined, role: string): void {
    out.bytes(secret === undefined ? NOTHING : prove(secret, role, this.#said));
  }

  /** Throws SITU_SECRET if what came is not the proof that one who knows the secret would send. */
  checkProof(body: Reader, secret: string | undefined, role: string): void {
    const given = body.bytes();
    if (secret === undefined) return;
    if (given.length === PROOF_BYTES && isProof(given, prove(secret, role, this.#said))) return;
    throw new SituError("SITU_SECRET", `the ${role} does not know the secret of the cluster`);
  }
}

const NOTHING = new Uint8Array(0);

function readVersion(body: Reader): void {
  if (body.word() !== MAGIC) throw new SituError("SITU_PROTOCOL", "this is not Situ's protocol");
  const version = body.word();
  if (version !== PROTOCOL_VERSION) {
    throw new SituError(
      "SITU_PROTOCOL",
      `the other end speaks version ${version} of the protocol, this one ${PROTOCOL_VERSION}`,
    );
  }
}

function shortText(body: Reader, mostBytes: number): string {
  const text = body.text();
  if (Buffer.byteLength(text) > mostBytes) throw new SituError("SITU_PROTOCOL", "a long name");
  return text;
}

function bytesOf(body: Reader, length: number): Uint8Array {
  const bytes = body.bytes();
  if (bytes.length === length) return bytes;
  throw new SituError("SITU_PROTOCOL", `a handshake has ${bytes.length} bytes, not ${length}`);
}
