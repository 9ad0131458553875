import type { StoreMemory } from "../../memory/region.ts";
import { SituError } from "../../runtime/errors.ts";
import { CLIENT, type NodeId, type Request } from "../fabric.ts";
import { isWriting, serveVerb } from "../verbs.ts";
import { Reader, Writer } from "../wire.ts";

const request = new Writer();
const reply = new Writer();
const body = new Reader(request.views);

/**
 * Does a verb on the memory of a node that is mapped here, under the rules that the node has for
 * those who ask: its configuration epoch, and that only nodes write. True if it was done.
 */
export function applyVerb(
  memory: StoreMemory,
  self: NodeId,
  epoch: number,
  nodeEpoch: number,
  verb: Request,
): boolean {
  request.clear();
  reply.clear();
  try {
    if (epoch !== nodeEpoch) {
      const message = `the request is of configuration ${epoch}, the node of ${nodeEpoch}`;
      throw new SituError("SITU_STALE_CONFIGURATION", message);
    }
    if (self === CLIENT && isWriting(verb.kind)) {
      throw new SituError("SITU_PERMISSION", "only nodes write to the memory of others");
    }
    verb.encode(request);
    serveVerb(memory, verb.kind, body.reset(request.views, 0, request.at), reply);
    // A frame has an even number of words.
    reply.align();
    // Whoever is told may do another verb, and with it use the buffers again: so a reader of its own.
    verb.replied(new Reader(reply.views).reset(reply.views, 0, reply.at));
    return true;
  } catch (error) {
    if (!(error instanceof SituError)) throw error;
    verb.failed(error);
    return false;
  }
}
