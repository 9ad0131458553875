/**
 * A node in a cluster whose configuration changes: what each change means for its two threads. Runs in the
 * NIC worker. The host's thread is told over the link, behind all that was sent to it before.
 */

import { type Configuration, packConfiguration } from "../cluster/configuration.ts";
import { EtcdConfigurations } from "../cluster/etcd/etcd-configurations.ts";
import { EtcdGateway } from "../cluster/etcd/gateway.ts";
import { EtcdRecord } from "../cluster/etcd/record.ts";
import { serveAdminister } from "../cluster/membership/administer.ts";
import { hasNothing } from "../cluster/replicas.ts";
import { View } from "../cluster/view.ts";
import {
  ADMINISTER_KIND,
  type ConfigurationId,
  type Incoming,
  MEMBERSHIP_KIND,
  type Request,
} from "../fabric/fabric.ts";
import type { Writer } from "../fabric/wire.ts";
import { realClock } from "../runtime/clock.ts";
import { SituError } from "../runtime/errors.ts";
import type { HostLink } from "./host-link.ts";
import type { Candidate } from "./joining.ts";
import type { Nic } from "./nic.ts";
import type { NodeConfiguration } from "./node-configuration.ts";
import { type MemberStats, NodeMembership } from "./node-membership.ts";
import type { ServingGate } from "./serving-gate.ts";

/** What the host's thread is told of a configuration. */
export interface Announced {
  readonly what: "adopted" | "committed";
  readonly configuration: object;
}

export interface MemberListener {
  /** It serves, for the first time. */
  serving(configuration: Configuration): void;
  /** This life of it is over. It was to leave, if it was drained and had nothing any more. */
  removed(configuration: Configuration, wasDrained: boolean): void;
  refused(why: string): void;
  died(error: Error): void;
}

export interface MemberOptions {
  readonly candidate: Candidate;
  readonly nic: Nic;
  readonly link: HostLink;
  readonly configuration: NodeConfiguration;
  readonly gate: ServingGate;
  readonly listener: MemberListener;
}

/** Before the host is told again, should the ring to it have been full. */
const TELL_AGAIN_MS = 5;

export class Member {
  readonly #options: MemberOptions;
  readonly #configurations: EtcdConfigurations;
  #membership: NodeMembership | undefined;
  #isServing = false;
  /** It was drained, and had nothing any more, when it was a member last. */
  #wasDrained = false;

  private constructor(options: MemberOptions, configurations: EtcdConfigurations) {
    this.#options = options;
    this.#configurations = configurations;
  }

  static async start(options: MemberOptions): Promise<Member> {
    const { candidate, nic, configuration } = options;
    const gateway = new EtcdGateway(candidate.etcd);
    const record = new EtcdRecord(gateway, configuration.cluster.cluster);
    try {
      const member = new Member(options, new EtcdConfigurations(record, await record.read()));
      nic.service.handle({
        kind: MEMBERSHIP_KIND,
        serve: (_, incoming) => member.#receive(incoming),
      });
      nic.service.handle({
        kind: ADMINISTER_KIND,
        serve: (_, incoming) => serveAdminister(member.#membership, incoming),
      });
      await member.#start();
      return member;
    } catch (error) {
      gateway.close();
      throw error;
    }
  }

  async #start(): Promise<void> {
    const { candidate, nic, configuration, gate } = this.#options;
    this.#membership = await NodeMembership.start({
      address: candidate.address,
      listen: configuration.listen!,
      endpoint: nic.endpoint,
      configurations: this.#configurations,
      hasItsData: candidate.hasItsData,
      nodeSecret: configuration.nodeSecret,
      gate: gate.lease,
      listener: {
        adopted: (next) => this.#adopted(next),
        committed: (next) => this.#committed(next),
        removed: (next) => this.#options.listener.removed(next, this.#wasDrained),
        refused: (why) => this.#options.listener.refused(why),
        died: (error) => this.#options.listener.died(error),
      },
    });
  }

  /** Undefined while it starts. */
  stats(): MemberStats | undefined {
    return this.#membership?.stats();
  }

  /** This node has copied these partitions, in a configuration. */
  filled(configurationId: ConfigurationId, partitions: readonly number[]): void {
    this.#membership?.filled(configurationId, partitions);
  }

  async close(): Promise<void> {
    await this.#membership?.close();
    this.#configurations.close();
  }

  #receive(incoming: Incoming): void {
    // One who starts is told again.
    if (this.#membership === undefined) throw new SituError("SITU_OVERLOADED", "it is starting");
    this.#membership.receive(incoming.from.node, incoming.body.text());
    incoming.reply();
  }

  #adopted(next: Configuration): void {
    const { nic, link, configuration } = this.#options;
    const { id, protocol, place, places } = configuration;
    const { instance } = nic.endpoint;
    const own = next.nodes.find((node) => node.id === id && node.instance === instance);
    // One that is taken for dead while it still has something has not left: it joins again.
    if (own !== undefined) {
      this.#wasDrained = own.draining === true && hasNothing(next.placement ?? [], id);
    }
    const configured = { configuration: next, protocol, thread: place, places };
    const view = new View({ self: id, instance, ...configured });
    // A life that has left stays where it is, with both of its threads.
    if (!nic.service.adopt(view)) return;
    link.configurationId = next.configurationId;
    this.#tell("adopted", next);
  }

  #committed(next: Configuration): void {
    const { nic, listener } = this.#options;
    nic.service.recover();
    this.#tell("committed", next);
    if (!this.#isServing) listener.serving(next);
    this.#isServing = true;
  }

  /** The later of two that come in the wrong order counts. */
  #tell(what: Announced["what"], configuration: Configuration): void {
    const { link, configuration: own } = this.#options;
    const send = (told: Told): void => link.send(own.id, 0, told);
    const again = (told: Told): void => void realClock.after(TELL_AGAIN_MS, () => send(told));
    send(new Told(what, configuration, again));
  }
}

/** A configuration, for the host's thread. */
class Told implements Request {
  readonly kind = MEMBERSHIP_KIND;
  readonly #text: string;
  readonly #again: (told: Told) => void;

  constructor(what: Announced["what"], configuration: Configuration, again: (told: Told) => void) {
    this.#again = again;
    const announced: Announced = { what, configuration: packConfiguration(configuration) };
    this.#text = JSON.stringify(announced);
  }

  encode(out: Writer): void {
    out.text(this.#text);
  }

  replied(): void {}

  /** The ring was full, or the node is being closed. */
  failed(why: SituError): void {
    if (why.code !== "SITU_CLOSED") this.#again(this);
  }
}
