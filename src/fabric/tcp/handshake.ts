/**
 * The first frames of a connection, before anything else is said. `c` is the one who connects:
 *
 *   c → s  HELLO      magic, version, cluster, role (CLIENT or a node's number), the node it wants to
 *                     reach (or ANYBODY), the id of its instance, a nonce
 *   s → c  CHALLENGE  magic, version, the node's number, the id of its instance, a nonce
 *   c → s  PROOF      that c knows the secret, if it has one; otherwise nothing
 *   s → c  READY      that s knows it; otherwise nothing
 *
 * Or, in place of what is next, REFUSED with the error, and the end of the connection.
 *
 * There are two secrets: that of clients, and that of nodes, which clients do not know. The role that c
 * claims says which of them both sides must prove, so that a client cannot pass for a node. Where there is
 * no secret everybody is believed.
 *
 * Proofs and the keys of batches (batches.ts) are derived from the secret and from every byte that was
 * said, by HKDF with a label for each use. Hence:
 *
 * - a nonce of each side is in it: no two connections have a key in common, and no proof is worth anything
 *   on another connection
 * - a role, a number, a name or a version that was changed on the way leaves the two sides with different
 *   keys: there is nothing to negotiate, and so nothing to talk them out of
 * - a proof sent back to its maker is none: the two sides have different labels, and a node talks to
 *   nobody who has its own number
 * - under TLS the keys of the TLS session are in it, too: one in between who ends two sessions, with
 *   whatever certificates, cannot pass proofs from one to the other
 *
 * Here are the frames and keys only, as functions; link.ts sends them.
 */

import { SituError } from "../../runtime/errors.ts";
import { MAX_NAME_BYTES } from "../../runtime/limits.ts";
import { isProof, NONCE_BYTES, PROOF_BYTES, Transcript } from "../../runtime/secret.ts";
import { TAG_KEY_BYTES } from "../../runtime/tag-stream.ts";
import { CLIENT, type NodeId, nodeIdOf } from "../fabric.ts";
import type { Reader, Writer } from "../wire.ts";
import type { TcpShared } from "./tcp-options.ts";

export const HELLO = 8;
export const CHALLENGE = 9;
export const PROOF = 10;
export const READY = 11;
export const REFUSED = 12;

/** In place of the node that one wants to reach. */
export const ANYBODY = -1;

/** "Situ", as a little-endian word. */
const MAGIC = 0x75746953;
/** 2: a node describes a table with the seed of its hash. 3: nodes have a secret of their own; tags. */
export const PROTOCOL_VERSION = 6;
/** No frame of a handshake is longer. */
export const HANDSHAKE_WORDS = 512;
const MAX_INSTANCE_BYTES = 64;

export interface Hello {
  readonly cluster: string;
  readonly role: NodeId;
  readonly to: NodeId;
  readonly instance: string;
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
  out.text(hello.instance);
  out.bytes(hello.nonce);
}

export function readHello(body: Reader): Hello {
  readVersion(body);
  const cluster = shortText(body, MAX_NAME_BYTES);
  const role = body.word();
  if (role < CLIENT) throw new SituError("SITU_PROTOCOL", `there is no role ${role}`);
  const to = body.word();
  const instance = shortText(body, MAX_INSTANCE_BYTES);
  return { cluster, role, to, instance, nonce: bytesOf(body, NONCE_BYTES) };
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

/** The two sides of a connection: the one who connects, and the one who accepts. */
export type Side = "connecting" | "accepting";

/** Of batches (batches.ts). */
export interface BatchKeys {
  readonly sending: Uint8Array;
  readonly receiving: Uint8Array;
}

/** The secret that one who claims to be `role` must know, and must be shown in return. */
export function secretOf(
  { secret, nodeSecret }: Pick<TcpShared, "secret" | "nodeSecret">,
  role: NodeId,
): string | undefined {
  if (role === CLIENT) return secret;
  if (nodeSecret !== undefined || secret === undefined) return nodeSecret;
  throw new SituError(
    "SITU_SECRET",
    "no node can connect where clients need a secret and nodes have none: set nodeSecret",
  );
}

/** What the two sides of a connection have said, as one proves it. */
export class Conversation {
  readonly #said = new Transcript();

  /** To be called for HELLO and CHALLENGE, and for what TLS has to say about the session. */
  add(bytes: Uint8Array): void {
    this.#said.add(bytes);
  }

  writeProof(out: Writer, secret: string | undefined, side: Side): void {
    out.bytes(secret === undefined ? NOTHING : this.#derive(secret, `${side} proof`, PROOF_BYTES));
  }

  /** Throws SITU_SECRET if what came is not the proof that one who knows the secret would send. */
  checkProof(body: Reader, secret: string | undefined, side: Side): void {
    const given = body.bytes();
    if (
      secret === undefined ||
      isProof(given, this.#derive(secret, `${side} proof`, PROOF_BYTES))
    ) {
      return;
    }
    const who = side === "connecting" ? "the one who connects" : "the node";
    throw new SituError("SITU_SECRET", `${who} does not know the secret of the cluster`);
  }

  /** Those of one side; what the one sends with the other receives with. */
  batchKeys(secret: string, side: Side): BatchKeys {
    const connecting = this.#derive(secret, "connecting batches", TAG_KEY_BYTES);
    const accepting = this.#derive(secret, "accepting batches", TAG_KEY_BYTES);
    return side === "connecting"
      ? { sending: connecting, receiving: accepting }
      : { sending: accepting, receiving: connecting };
  }

  #derive(secret: string, use: string, bytes: number): Uint8Array {
    return this.#said.derive(secret, `situ ${PROTOCOL_VERSION} ${use}`, bytes);
  }
}

/** With TLS there are tags already, and without a secret there is nothing to make them of. */
export function keysOf(
  { tls }: Pick<TcpShared, "tls">,
  conversation: Conversation,
  secret: string | undefined,
  side: Side,
): BatchKeys | undefined {
  if (secret === undefined || tls !== undefined) return undefined;
  return conversation.batchKeys(secret, side);
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
