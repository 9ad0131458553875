/**
 * The recovery of one configuration at one node: what it has learned, as the primary of some
 * partitions, of the transactions that write to them and are in doubt; and which ones it has settled.
 * It ends with the next configuration, whatever state it is in, and all of its messages with it:
 * those who have seen something tell it again then.
 */

import type { ConfigurationId, NodeId } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import type { Placement } from "../../tables/partitions.ts";
import { Message } from "../message.ts";
import type { Name } from "../names.ts";
import type { Head } from "../records.ts";
import type { Changes } from "./recovering.ts";
import type { PartitionWrites } from "./replica.ts";
import { SAW_NOTHING, type Seen, strongest } from "./votes.ts";

/** What recovery must know of a configuration. */
export interface RecoveryView extends Changes {
  readonly self: NodeId;
  readonly configurationId: ConfigurationId;
  readonly placement: Placement;
}

/** A transaction in doubt, in one partition. */
export class PartitionDoubt {
  /** The strongest that any replica has seen. */
  seen: Seen = SAW_NOTHING;
  readonly seenBy = new Map<NodeId, Seen>();
  writes: PartitionWrites | undefined;
  /**
   * The primary has installed it, or let it go, before: others may have written its rows since. So it takes no
   * writes over, and gives none to those who began to copy later: they have them from its rows.
   */
  isOver = false;
  isLocked = false;

  note(node: NodeId, seen: Seen): void {
    this.seenBy.set(node, seen);
    this.seen = strongest(this.seen, seen);
  }
}

/** The same, in all partitions of this primary. */
export interface Doubt {
  readonly head: Head;
  readonly partitions: ReadonlyMap<number, PartitionDoubt>;
  /** All replicas have what any of them has seen: the partitions vote. */
  isReplicated: boolean;
  /** It is settled, as far as this node is concerned. */
  isEnded: boolean;
}

export class Round {
  readonly view: RecoveryView;
  /** Partitions that this node has become the primary of, and that are not served yet. */
  readonly blocked: Set<number>;
  readonly doubts = new Map<string, Doubt>();
  /** All members have the configuration. */
  hasBegun = false;
  /** All replicas of this node's partitions have said what is in doubt. */
  hasHeardAll = false;
  /** All of them have what any of them has seen. */
  hasReplicated = false;
  /** Transactions that this node settles, or has settled: a vote may come twice, and late. */
  readonly settled = new Set<string>();
  isCurrent = true;
  /** What it waits for. */
  readonly messages = new Set<RecoveryMessage>();

  constructor(view: RecoveryView, blocked: Iterable<number>) {
    this.view = view;
    this.blocked = new Set(blocked);
  }

  /** There is a later configuration: nobody waits any more, and nothing is sent again. */
  end(): void {
    this.isCurrent = false;
    for (const message of [...this.messages]) message.failed(over());
  }

  /** What is known of a transaction in a partition of this primary, from now on if not before. */
  doubtOf(head: Head, partition: number): PartitionDoubt | undefined {
    const key = keyOf(head.name);
    let doubt = this.doubts.get(key);
    if (doubt === undefined) {
      const { placement, self } = this.view;
      const own = head.partitions.filter((each) => placement.primaryOf(each) === self);
      if (own.length === 0) return undefined;
      const partitions = new Map(own.map((each) => [each, new PartitionDoubt()]));
      doubt = { head, partitions, isReplicated: false, isEnded: false };
      this.doubts.set(key, doubt);
    }
    return doubt.partitions.get(partition);
  }

  *partitionDoubts(): Generator<readonly [Doubt, number, PartitionDoubt]> {
    for (const doubt of this.doubts.values()) {
      for (const [partition, each] of doubt.partitions) yield [doubt, partition, each];
    }
  }
}

export function keyOf({ coordinator, sequence }: Pick<Name, "coordinator" | "sequence">): string {
  return `${coordinator} ${sequence}`;
}

/** A message of a round: sent until it is answered, or the round is over. */
export abstract class RecoveryMessage extends Message {
  override readonly isInsistent = true;
  readonly round: Round;

  constructor(to: NodeId, round: Round) {
    super(to);
    this.round = round;
  }

  override failed(why: SituError): void {
    super.failed(this.round.isCurrent ? whileCurrent(why) : over());
  }
}

/** The other end may adopt the configuration a moment later. */
function whileCurrent(why: SituError): SituError {
  if (why.code !== "SITU_STALE_CONFIGURATION") return why;
  return new SituError("SITU_LOST", why.message, { cause: why });
}

function over(): SituError {
  return new SituError("SITU_STALE_CONFIGURATION", "a later configuration is recovered by now");
}
