/**
 * Messages about leases as datagrams, of a fixed layout so that nothing is allocated to write one:
 *
 *   byte 0   "SLE1"
 *   byte 4   configuration, uint32
 *   byte 8   from, to, uint16 each
 *   byte 12  request, grant, milliseconds of the grant, float64 each
 *   byte 36  the lengths of three names, a byte each; then the names: the cluster, the lives of the
 *            sender and the receiver
 *   at last, where the nodes have a secret, HMAC-SHA256 over all of it
 *
 * One that was recorded and comes again does no harm (leases.ts). One that is not of this cluster, not
 * for this node, or not right in any way is as if it had not come.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { MAX_LEASE_MESSAGE_BYTES } from "../../runtime/limits.ts";
import { isProof, PROOF_BYTES, prove } from "../../runtime/secret.ts";
import type { LeaseMessage } from "./leases.ts";

const MAGIC = 0x31454c53;
const AT_CONFIGURATION = 4;
const AT_FROM = 8;
const AT_TO = 10;
const AT_REQUEST = 12;
const AT_GRANT = 20;
const AT_GRANT_MS = 28;
const AT_LENGTHS = 36;
const AT_NAMES = 39;
const ROLE = "lease";
/** They have letters and digits only (configuration.ts). */
const NAMES = "latin1";

export interface LeaseDatagramOptions {
  readonly self: NodeId;
  readonly cluster: string;
  /** Of the nodes, not of clients. */
  readonly secret?: string | undefined;
}

export class LeaseDatagrams {
  readonly #self: NodeId;
  readonly #cluster: string;
  readonly #secret: string | undefined;

  constructor({ self, cluster, secret }: LeaseDatagramOptions) {
    this.#self = self;
    this.#cluster = cluster;
    this.#secret = secret;
  }

  /** Into a buffer of MAX_LEASE_MESSAGE_BYTES; returns its length, or 0 if the names are too long. */
  encode(out: Buffer, to: NodeId, message: LeaseMessage): number {
    const { configurationId, from, request, grant, grantMs, instance, toInstance } = message;
    const ends = PROOF_BYTES + AT_NAMES;
    if (this.#cluster.length + instance.length + toInstance.length + ends > out.length) return 0;
    out.writeUInt32LE(MAGIC, 0);
    out.writeUInt32LE(configurationId, AT_CONFIGURATION);
    out.writeUInt16LE(from, AT_FROM);
    out.writeUInt16LE(to, AT_TO);
    out.writeDoubleLE(request, AT_REQUEST);
    out.writeDoubleLE(grant, AT_GRANT);
    out.writeDoubleLE(grantMs, AT_GRANT_MS);
    out[AT_LENGTHS] = this.#cluster.length;
    out[AT_LENGTHS + 1] = instance.length;
    out[AT_LENGTHS + 2] = toInstance.length;
    let at = AT_NAMES;
    at += out.write(this.#cluster, at, NAMES);
    at += out.write(instance, at, NAMES);
    at += out.write(toInstance, at, NAMES);
    if (this.#secret === undefined) return at;
    out.set(prove(this.#secret, ROLE, out.subarray(0, at)), at);
    return at + PROOF_BYTES;
  }

  /** Undefined if it is none for this node. */
  decode(given: Buffer): LeaseMessage | undefined {
    const proofBytes = this.#secret === undefined ? 0 : PROOF_BYTES;
    const end = given.length - proofBytes;
    if (end < AT_NAMES || given.length > MAX_LEASE_MESSAGE_BYTES) return undefined;
    if (given.readUInt32LE(0) !== MAGIC || given.readUInt16LE(AT_TO) !== this.#self) {
      return undefined;
    }
    const toInstanceAt = AT_NAMES + given[AT_LENGTHS] + given[AT_LENGTHS + 1];
    if (toInstanceAt + given[AT_LENGTHS + 2] !== end) return undefined;
    const instanceAt = AT_NAMES + given[AT_LENGTHS];
    if (given.toString(NAMES, AT_NAMES, instanceAt) !== this.#cluster) return undefined;
    if (this.#secret !== undefined) {
      const proof = prove(this.#secret, ROLE, given.subarray(0, end));
      if (!isProof(given.subarray(end), proof)) return undefined;
    }
    const message = {
      configurationId: given.readUInt32LE(AT_CONFIGURATION),
      from: given.readUInt16LE(AT_FROM),
      instance: given.toString(NAMES, instanceAt, toInstanceAt),
      toInstance: given.toString(NAMES, toInstanceAt, end),
      request: given.readDoubleLE(AT_REQUEST),
      grant: given.readDoubleLE(AT_GRANT),
      grantMs: given.readDoubleLE(AT_GRANT_MS),
    };
    const isSound = isCount(message.request) && isCount(message.grant) && message.grantMs >= 0;
    return isSound ? message : undefined;
  }
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
