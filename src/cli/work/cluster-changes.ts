/**
 * `situ cluster drain`, `remove` and `rebalance`: ask the manager, and watch until it is done (wished-change.ts).
 * The manager does it whether anybody watches or not.
 */

import { administer, type Wish } from "../../database/remote/administer.ts";
import { type ClusterStatus, clusterStatus } from "../../database/remote/cluster-status.ts";
import type { ConnectOptions } from "../../database/remote/connect-options.ts";
import { nowMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { counted } from "../../runtime/units.ts";
import { EXIT_OK } from "../failures.ts";
import { ProgressLine } from "../progress.ts";
import { connectionOf } from "./cluster-connection.ts";
import type { Context, Run } from "./context.ts";
import { isPassing, type Seen, WishedChange } from "./wished-change.ts";

/** How long one question may take. */
const ANSWER_MS = 2_000;

interface Task {
  readonly wish: Wish;
  /** What is going on, in a word. */
  readonly doing: string;
  readonly look: (status: ClusterStatus) => Seen;
}

export const runClusterDrain: Run<"cluster drain"> = async (values, context) => {
  const { node, cancel } = values;
  const connection = connectionOf(values, ANSWER_MS);
  const { screen } = context;
  if (cancel) {
    const isStaying = (status: ClusterStatus): boolean => found(status, node)?.isDraining !== true;
    await follow(connection, values.timeout, context, {
      wish: { what: "undrain", node },
      doing: "keeping",
      look: (status) => ({ left: 0, isDone: isStaying(status), isUnderWay: false }),
    });
    screen.json({ event: "kept", node });
    screen.line(`node ${node} stays, and gets partitions again`);
    return EXIT_OK;
  }
  await follow(connection, values.timeout, context, {
    wish: { what: "drain", node },
    doing: "draining",
    look: (status) => {
      const it = found(status, node);
      const left = it === undefined ? 0 : it.primaries + it.backups + it.filling;
      const isDraining = it?.isDraining === true;
      return { left, isDone: isDraining && left === 0, isUnderWay: isDraining };
    },
  });
  screen.json({ event: "drained", node });
  screen.line(`node ${node} is drained; it leaves with: situ cluster remove ${node}`);
  return EXIT_OK;
};

export const runClusterRemove: Run<"cluster remove"> = async (values, context) => {
  const { node } = values;
  const isGone = (status: ClusterStatus): boolean => found(status, node) === undefined;
  await follow(connectionOf(values, ANSWER_MS), values.timeout, context, {
    wish: { what: "remove", node },
    doing: "removing",
    look: (status) => ({ left: 0, isDone: isGone(status), isUnderWay: false }),
  });
  context.screen.json({ event: "removed", node });
  context.screen.line(`node ${node} has left the cluster; its process ends by itself`);
  return EXIT_OK;
};

export const runClusterRebalance: Run<"cluster rebalance"> = async (values, context) => {
  await follow(connectionOf(values, ANSWER_MS), values.timeout, context, {
    wish: { what: "rebalance" },
    doing: "rebalancing",
    look: ({ isBalanced, health }) => {
      return { left: health.filling.length, isDone: isBalanced, isUnderWay: true };
    },
  });
  context.screen.json({ event: "balanced" });
  context.screen.line("balanced: nothing would lie better elsewhere");
  return EXIT_OK;
};

function found({ nodes }: ClusterStatus, node: number) {
  return nodes.find(({ id }) => id === node);
}

async function follow(
  connection: ConnectOptions,
  timeoutMs: number | undefined,
  { screen, signal }: Context,
  { wish, doing, look }: Task,
): Promise<void> {
  const deadlineMs = nowMs() + (timeoutMs ?? Number.POSITIVE_INFINITY);
  const what = wish.node === undefined ? doing : `${doing} node ${wish.node}`;
  const line = new ProgressLine(screen, what);
  let told: number | undefined;
  const change = new WishedChange({
    ask: () => administer(connection, wish),
    look: async () => {
      const status = await seenStatus(connection);
      return status && look(status);
    },
  });
  try {
    await change.begin();
    for (;;) {
      const seen = await change.advance();
      if (seen?.isDone === true) return;
      if (seen !== undefined && seen.left !== told) {
        told = seen.left;
        screen.json({ event: doing, node: wish.node, partitionsLeft: told });
      }
      line.show({ text: `${counted(told ?? 0, "partition")} left` });
      if (nowMs() >= deadlineMs) {
        const left = `${counted(told ?? 0, "partition")} left to move`;
        throw new SituError("SITU_TIMEOUT", `${what}: ${left}; the cluster goes on by itself`);
      }
      await change.pause();
      if (signal.aborted) {
        line.clear();
        screen.note(`${what}: the cluster goes on by itself`);
        signal.throwIfAborted();
      }
    }
  } finally {
    line.clear();
  }
}

async function seenStatus(connection: ConnectOptions): Promise<ClusterStatus | undefined> {
  try {
    return await clusterStatus(connection);
  } catch (error) {
    if (isPassing(error)) return undefined;
    throw error;
  }
}
