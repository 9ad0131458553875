/**
 * How the nodes of a cluster agree on its configuration (FaRM §5.2), as a state machine: what it does
 * happens through `MembershipHost`, what it is told are calls of its methods, and time passes by `tick`.
 *
 *   suspect    the manager, when the lease of a node has run out; a node, when the manager's has. In the
 *              second case the nodes have turns, one lease apart, in the order of `placeInLine`
 *   probe      all others are asked whether they are there. With answers of a majority it goes on, unless
 *              they still hear the manager, or the suspicion has gone within the time between two renewals;
 *              within a lease, where there is a connection, which a process that was killed has not
 *   swap       the next configuration takes the place of this one in the store of configurations, if this one
 *              is still there: one of all who try succeeds. Its author is the manager
 *   announce   it is told to all members, and to those who may serve in earlier ones
 *   adopt      a node that hears of a newer configuration, from whomever, goes over to it at once: it
 *              stops serving, and neither grants nor asks for leases in an earlier one. It acknowledges
 *   commit     when nobody can serve in an earlier one any more (announcement.ts)
 *
 * A configuration counts from the moment when it is in the store. So its manager may die at any step: the
 * others take over from what is stored. They do the same if a configuration is not committed for too
 * long although its manager is alive. And if all members have restarted, and none is left in the life that
 * the configuration knows, a majority of them goes on with what each has in its store.
 *
 * Invariants: the number of a node's configuration only grows. Nobody tells of a configuration that is not in
 * the store. A node that is not a member, or only in an earlier life, serves nothing and changes nothing. One that was a
 * member acknowledges that it is none any more, and its services stay in the last configuration that it belonged to
 * (NodeService.adopt): once a configuration is committed, no member accepts anything that they still send.
 */

import type { ConfigurationId, NodeId } from "../../fabric/fabric.ts";
import {
  COMMIT_PATIENCE_LEASES,
  FIRST_GRACE_LEASES,
  LEASE_RENEWALS,
  MAX_UNSETTLED,
  MEMBERSHIP_TICKS,
  STORE_PATIENCE_LEASES,
} from "../../runtime/limits.ts";
import type { Configuration, NodeAddress } from "../configuration.ts";
import { Announcement } from "./announcement.ts";
import { type Change, Changes } from "./changes.ts";
import { idIsTaken, joinedAs } from "./joins.ts";
import type { MembershipHost, MembershipOptions } from "./membership-host.ts";
import type { HasFilled, Join, MembershipMessage, Probed } from "./messages.ts";
import { audienceOf, isFirst, majorityOf, placeInLine, succeeding } from "./succession.ts";
import { Survey } from "./survey.ts";

export class Membership {
  readonly self: NodeId;
  readonly instance: string;
  readonly #host: MembershipHost;
  #configuration: Configuration | undefined;
  #lastCommitted: Configuration | undefined;
  #adoptedMs = 0;
  #committedMs = 0;
  /** What this node has promised to others than members ends then; undefined until it is known. */
  #promisedUntilMs: number | undefined;
  #announcement: Announcement | undefined;
  /** An attempt to change the configuration: who is there, and whether the store is asked already. */
  #survey: Survey | undefined;
  #isSwapping = false;
  #attempts = 0;
  readonly #changes: Changes;
  /** Partitions that this node fills, and has all of. */
  #filled: readonly number[] = [];
  /** Nodes that are members in a life that is over, as it seems. */
  readonly #restarted = new Set<NodeId>();
  #joining: Join | undefined;
  #wasMember = false;
  #suspects: ReadonlySet<NodeId> = new Set();
  #suspectedMs = 0;
  /** How often this node has begun to suspect others. */
  suspicions = 0;
  #retryAtMs = Number.NEGATIVE_INFINITY;
  #repeatAtMs = Number.NEGATIVE_INFINITY;

  constructor({ self, instance, host }: MembershipOptions) {
    this.self = self;
    this.instance = instance;
    this.#host = host;
    this.#changes = new Changes(host);
  }

  /** Undefined before the first. */
  get configuration(): Configuration | undefined {
    return this.#configuration;
  }

  get configurationId(): ConfigurationId {
    return this.#configuration?.configurationId ?? 0;
  }

  get isCommitted(): boolean {
    return this.#configuration !== undefined && this.#lastCommitted === this.#configuration;
  }

  get isManager(): boolean {
    return this.isMember && this.#configuration?.manager === this.self;
  }

  get isMember(): boolean {
    const nodes = this.#configuration?.nodes ?? [];
    return nodes.some(({ id, instance }) => id === this.self && instance === this.instance);
  }

  /** How often `tick` is to be called. */
  get tickMs(): number {
    return this.#leaseMs / MEMBERSHIP_TICKS;
  }

  get #leaseMs(): number {
    return this.#configuration!.leaseMs;
  }

  /** A configuration that is in the store: it counts if it is newer. */
  learned(configuration: Configuration): void {
    if (configuration.configurationId <= this.configurationId) return;
    this.#configuration = configuration;
    this.#adoptedMs = this.#host.nowMs();
    this.#promisedUntilMs = undefined;
    this.#survey = undefined;
    this.#suspects = new Set();
    this.#restarted.clear();
    // Who copies says it again, of this configuration, if it is still so.
    this.#filled = [];
    this.#announcement = this.isManager ? this.announce(configuration, this.#adoptedMs) : undefined;
    this.#host.adopt(configuration);
    if (this.#wasMember && !this.isMember) this.#host.removed(configuration);
    this.#wasMember = this.isMember;
    if (this.isMember) this.#joining = undefined;
    else this.#giveUpTakenId(configuration);
  }

  /**
   * Another new node has become a member under the id that this one has chosen. What the manager answers goes to that one,
   * so this one has to see it by itself.
   */
  #giveUpTakenId({ nodes }: Configuration): void {
    if (this.#joining === undefined || this.#joining.hasItsData) return;
    const holder = nodes.find(({ id }) => id === this.self);
    if (holder === undefined || holder.instance === this.instance) return;
    this.#joining = undefined;
    this.#host.refused(idIsTaken(holder));
  }

  /** Asks to become a member until it is one. The newest configuration must be known. */
  join(node: NodeAddress, hasItsData: boolean): void {
    this.#joining = { what: "join", node, hasItsData };
    this.#giveUpTakenId(this.#configuration!);
    this.tick();
  }

  /** Has the configuration changed, by the manager and once it is committed; false if it is not the manager. */
  change(name: string, change: Change): boolean {
    if (!this.isManager) return false;
    this.#changes.want(name, change);
    this.tick();
    return true;
  }

  /** This node has copied these partitions, in this configuration, and tells the manager until they count. */
  filled(configurationId: ConfigurationId, partitions: readonly number[]): void {
    if (configurationId !== this.configurationId) return;
    const all = new Set([...this.#filled, ...partitions]);
    this.#filled = [...all].filter((partition) => this.#fills(partition));
    this.#repeatAtMs = Number.NEGATIVE_INFINITY;
    this.tick();
  }

  #fills(partition: number): boolean {
    return this.#configuration?.placement?.[partition]?.filling.includes(this.self) === true;
  }

  protected announce(configuration: Configuration, nowMs: number): Announcement {
    return new Announcement(configuration, nowMs);
  }

  /** This node has stopped serving in earlier configurations, and leases that it granted end after this time. */
  adopted(configurationId: ConfigurationId, remainingMs: number): void {
    if (configurationId !== this.configurationId) return;
    this.#promisedUntilMs = this.#host.nowMs() + remainingMs;
    this.#repeatAtMs = Number.NEGATIVE_INFINITY;
    this.tick();
  }

  /** Those whose leases have run out, in this configuration: all of them, each time they change. */
  suspect(configurationId: ConfigurationId, suspects: readonly NodeId[]): void {
    if (configurationId !== this.configurationId) return;
    if (this.#suspects.size === 0) this.#suspectedMs = this.#host.nowMs();
    this.suspicions += suspects.filter((id) => !this.#suspects.has(id)).length;
    this.#suspects = new Set(suspects);
    this.tick();
  }

  /** A node is behind. */
  outdated(node: NodeId): void {
    const configuration = this.#configuration;
    if (configuration !== undefined) {
      this.#host.send(node, { what: "new configuration", configuration });
    }
  }

  receive(from: NodeId, message: MembershipMessage): void {
    switch (message.what) {
      case "probe":
        this.#probed(from, message.configurationId, message.attempt);
        break;
      case "probed":
        this.#answered(from, message);
        break;
      case "new configuration":
        this.#told(from, message.configuration);
        break;
      case "acknowledged":
        this.#acknowledged(from, message);
        break;
      case "join":
        this.#joins(from, message);
        break;
      case "filled":
        if (this.isManager) this.#changes.filled(this.#configuration!, from, message);
        break;
      case "refused":
        if (this.#joining !== undefined && message.instance === this.instance) {
          this.#joining = undefined;
          this.#host.refused(message.why);
        }
        break;
      case "committed":
        if (message.configurationId === this.configurationId) this.#commit();
    }
  }

  tick(): void {
    if (this.#configuration === undefined) return;
    const nowMs = this.#host.nowMs();
    if (nowMs >= this.#repeatAtMs) this.#repeat(nowMs);
    if (this.#mayCommit(nowMs)) this.#commitAll();
    if (this.#survey !== undefined) this.#goOn(this.#survey, nowMs);
    else if (this.#shouldBegin(nowMs)) this.#begin(nowMs);
  }

  // Suspect and probe.

  /** Whether the configuration should have been committed long ago. */
  #isStuck(nowMs: number): boolean {
    return !this.isCommitted && nowMs > this.#adoptedMs + this.#patienceMs;
  }

  /** How long it may take until the configuration is committed. */
  get #patienceMs(): number {
    const leases = isFirst(this.#configuration!) ? FIRST_GRACE_LEASES : COMMIT_PATIENCE_LEASES;
    return leases * this.#leaseMs;
  }

  #shouldBegin(nowMs: number): boolean {
    if (nowMs < this.#retryAtMs) return false;
    if (!this.isMember) return this.#shouldReturn(nowMs);
    if (this.isManager) return this.#hasReason(nowMs);
    const sinceMs = this.#suspects.size > 0 ? this.#suspectedMs : this.#adoptedMs;
    const turnMs = sinceMs + placeInLine(this.#configuration!, this.self) * this.#leaseMs;
    return nowMs >= turnMs && (this.#suspects.size > 0 || this.#isStuck(nowMs));
  }

  /** Whether this node has waited for so long to become a member again that there may be none to admit it. */
  #shouldReturn(nowMs: number): boolean {
    const place = this.#configuration!.nodes.findIndex(({ id }) => id === this.self);
    if (this.#joining?.hasItsData !== true || place < 0) return false;
    return nowMs >= this.#adoptedMs + this.#patienceMs + place * this.#leaseMs;
  }

  #hasReason(nowMs: number): boolean {
    if (this.#suspected(nowMs).length > 0) return true;
    return this.isCommitted && this.#changes.isDue(this.#configuration!, nowMs - this.#committedMs);
  }

  /** Those that this node would go on without. */
  #suspected(nowMs: number): NodeId[] {
    const silent = this.isCommitted
      ? []
      : this.#announcement?.silentMembers(nowMs, this.#patienceMs);
    return [...this.#suspects, ...this.#restarted, ...(silent ?? [])];
  }

  #begin(nowMs: number): void {
    const attempt = ++this.#attempts;
    const self = { id: this.self, instance: this.instance };
    const survey = new Survey(attempt, nowMs, this.#configuration!, self);
    this.#survey = survey;
    this.#isSwapping = false;
    this.#probe(survey);
    this.#goOn(survey, nowMs);
  }

  #probe(survey: Survey): void {
    const { configurationId } = this;
    const { number: attempt } = survey;
    for (const id of survey.unheard()) {
      this.#host.send(id, { what: "probe", configurationId, attempt });
    }
  }

  #probed(from: NodeId, configurationId: ConfigurationId, attempt: number): void {
    if (configurationId < this.configurationId) {
      this.outdated(from);
      return;
    }
    const { instance } = this;
    const manager = this.#configuration?.manager;
    const hasManager =
      manager !== undefined && !this.#suspects.has(manager) && !this.#isStuck(this.#host.nowMs());
    this.#host.send(from, {
      what: "probed",
      configurationId: this.configurationId,
      attempt,
      instance,
      hasManager,
      joining: this.#joining?.hasItsData === true ? this.#joining.node : undefined,
    });
  }

  #answered(from: NodeId, answer: Probed): void {
    const survey = this.#survey;
    if (survey?.answered(from, answer) !== true) return;
    // Only a late message of a still earlier life has said that this one is over.
    if (survey.survives(from)) this.#restarted.delete(from);
    if (answer.configurationId < this.configurationId) this.outdated(from);
    this.#goOn(survey, this.#host.nowMs());
  }

  #goOn(survey: Survey, nowMs: number): void {
    const { beganMs, configuration } = survey;
    if (this.#isSwapping) {
      if (nowMs > beganMs + STORE_PATIENCE_LEASES * this.#leaseMs) this.#giveUp(this.#leaseMs);
      return;
    }
    const suspects = this.#suspected(nowMs);
    const hasManagerAgain = !this.isManager && suspects.length === 0 && !this.#isStuck(nowMs);
    if (this.isMember && hasManagerAgain) {
      this.#giveUp(this.#leaseMs / LEASE_RENEWALS);
      return;
    }
    // This node counts itself, as a member or as one who is back.
    const present = survey.present(suspects) + (this.isMember ? 0 : 1);
    const isEnough = this.hasMajority(present, configuration.nodes.length);
    // Nobody is taken for dead for a change that can wait: leases say who is.
    const isForced = suspects.length > 0 || !this.isManager;
    const isLate = nowMs >= beganMs + (isForced ? this.#leaseMs : this.#patienceMs);
    // Of those who are suspected, other lives may answer, and be needed; of the restarted, they do.
    const gone = suspects.filter((id) => !this.#restarted.has(id));
    const mayRenew = this.#suspects.size > 0 && this.mayRenew(nowMs - this.#suspectedMs);
    // A machine that stands still for a moment makes leases late, and ends no connection.
    const isHopeful = mayRenew || gone.some((id) => this.#host.isConnected(id));
    if (!isLate && (!isEnough || isHopeful || survey.isWaiting(gone))) return;
    const planned = isEnough ? this.#planned(survey, suspects) : undefined;
    if (planned !== undefined) this.#swap(survey, planned);
    // Others may find out about the manager a little later.
    else this.#giveUp(isEnough ? this.#leaseMs / LEASE_RENEWALS : this.#leaseMs);
  }

  /** The next configuration, or undefined if there is no reason for one, or it is not for this node to make it. */
  #planned(survey: Survey, suspects: readonly NodeId[]): Configuration | undefined {
    const current = survey.configuration;
    if (!this.isMember) return survey.hasMembers ? undefined : this.#returning(survey);
    if (!this.isManager && survey.hasManager) return undefined;
    const kept = survey.kept(suspects);
    if (!this.isManager || kept.length < current.nodes.length) {
      return this.#host.plan(current, kept, this.self);
    }
    return this.isCommitted ? this.#changes.next(current) : undefined;
  }

  /** All members have restarted, as after a loss of power: those who are back with their data go on. */
  #returning(survey: Survey): Configuration {
    const { configuration, ids } = survey.withReturned(this.#joining!.node);
    return this.#host.plan(configuration, ids, this.self);
  }

  /** A node that stood still for a moment renews its lease as soon as it goes on. */
  protected mayRenew(suspectedForMs: number): boolean {
    return suspectedForMs < this.#leaseMs / LEASE_RENEWALS;
  }

  protected hasMajority(present: number, nodes: number): boolean {
    return present >= majorityOf(nodes);
  }

  #giveUp(pauseMs: number): void {
    this.#survey = undefined;
    this.#retryAtMs = this.#host.nowMs() + pauseMs;
  }

  // Swap.

  #swap(survey: Survey, planned: Configuration): void {
    const current = survey.configuration;
    const next = succeeding(current, this.isCommitted, planned);
    if (next.unsettled!.length > MAX_UNSETTLED) {
      this.#giveUp(this.#leaseMs);
      return;
    }
    this.#isSwapping = true;
    this.#host.swap(current, next, (outcome) => {
      // In the store, it counts, whatever has happened here meanwhile.
      if (outcome === "swapped") this.learned(next);
      else this.#readBack(survey);
    });
  }

  #readBack(survey: Survey): void {
    this.#host.read((newest) => {
      if (newest !== undefined) this.learned(newest);
      if (this.#survey === survey) this.#giveUp(this.#leaseMs);
    });
  }

  // Announce, adopt and commit.

  /** What was lost is said again. */
  #repeat(nowMs: number): void {
    this.#repeatAtMs = nowMs + this.#leaseMs / LEASE_RENEWALS;
    if (this.#joining !== undefined) {
      for (const { id } of this.#configuration!.nodes) this.#host.send(id, this.#joining);
    }
    if (this.#survey !== undefined && !this.#isSwapping) this.#probe(this.#survey);
    if (this.isCommitted) {
      this.#tellFilled();
      return;
    }
    if (this.#announcement !== undefined) {
      for (const id of this.#announcement.unheard()) if (id !== this.self) this.outdated(id);
    }
    this.#acknowledge(this.#configuration!.manager);
  }

  /** Also as one who is no member. */
  #acknowledge(to: NodeId | undefined): void {
    if (this.#promisedUntilMs === undefined || to === undefined) return;
    const { configurationId, instance } = this;
    const remainingMs = Math.max(0, this.#promisedUntilMs - this.#host.nowMs());
    if (to === this.self) {
      this.#announcement?.acknowledge(to, instance, remainingMs, this.#host.nowMs());
    } else {
      this.#host.send(to, { what: "acknowledged", configurationId, instance, remainingMs });
    }
  }

  #told(from: NodeId, configuration: Configuration): void {
    const { configurationId } = configuration;
    if (configurationId < this.configurationId) this.outdated(from);
    else if (configurationId > this.configurationId) this.learned(configuration);
    else this.#acknowledge(from);
  }

  #acknowledged(
    from: NodeId,
    message: Extract<MembershipMessage, { readonly what: "acknowledged" }>,
  ): void {
    const { configurationId, instance, remainingMs } = message;
    if (configurationId !== this.configurationId) {
      if (configurationId < this.configurationId) this.outdated(from);
      return;
    }
    this.#announcement?.acknowledge(from, instance, remainingMs, this.#host.nowMs());
    if (this.isManager && this.isCommitted) {
      this.#host.send(from, { what: "committed", configurationId });
    }
    this.tick();
  }

  #joins(from: NodeId, join: Join): void {
    const { node, hasItsData } = join;
    const refuse = (why: string): void =>
      this.#host.send(from, { what: "refused", instance: node.instance ?? "", why });
    const as = this.isManager ? joinedAs(this.#configuration!, join) : "member";
    if (as === "member") {
      this.outdated(from);
    } else if (as === "restarted") {
      // Its earlier life is over, and leaves first.
      this.#restarted.add(node.id);
      this.tick();
    } else if (as === "new") {
      this.change(`join ${node.id}`, (configuration) => {
        if (configuration.nodes.some(({ id }) => id === node.id)) return undefined;
        const admitted = this.#host.admit(configuration, node, hasItsData);
        if (typeof admitted !== "string") return admitted;
        refuse(admitted);
        return undefined;
      });
    } else {
      refuse(as.refusal);
    }
  }

  #tellFilled(): void {
    const { configurationId, instance } = this;
    const partitions = this.#filled;
    if (partitions.length === 0) return;
    const message: HasFilled = { what: "filled", configurationId, instance, partitions };
    if (this.isManager) this.receive(this.self, message);
    else this.#host.send(this.#configuration!.manager!, message);
  }

  /** Without the leases of a majority, a later configuration may have been committed meanwhile. */
  #mayCommit(nowMs: number): boolean {
    if (this.#announcement === undefined || this.isCommitted) return false;
    return this.#announcement.mayCommit(nowMs) && this.#host.hasLease();
  }

  #commitAll(): void {
    const { configurationId } = this;
    this.#commit();
    for (const id of audienceOf(this.#configuration!).keys()) {
      if (id !== this.self) this.#host.send(id, { what: "committed", configurationId });
    }
  }

  #commit(): void {
    if (this.isCommitted) return;
    const previous = this.#lastCommitted;
    const configuration = this.#configuration!;
    this.#lastCommitted = configuration;
    this.#committedMs = this.#host.nowMs();
    if (this.isMember) this.#host.committed(configuration, previous);
  }
}
