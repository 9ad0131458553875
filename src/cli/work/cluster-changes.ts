/**
 * `situ cluster drain`, `remove` and `rebalance`: ask the manager, and watch until it is done. The manager does
 * it whether anybody watches or not. It may die meanwhile, and what it was asked for be forgotten: whatever
 * is not seen in the cluster's status is asked for again.
 */

import { administer, type Wish } from "../../database/remote/administer.ts";
import { type ClusterStatus, clusterStatus } from "../../database/remote/cluster-status.ts";
import type { ConnectOptions } from "../../database/remote/connect-options.ts";
import { nowMs, sleep } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { counted } from "../../runtime/units.ts";
import { EXIT_OK } from "../failures.ts";
import { ProgressLine } from "../progress.ts";
import { connectionOf } from "./cluster-connection.ts";
import type { Context, Run } from "./context.ts";

/** How long one question may take, and the pause before the next. */
const ANSWER_MS = 2_000;
const LOOK_MS = 500;
/** How long a cluster may be without a manager that answers. */
const MANAGER_PATIENCE_MS = 10_000;

/** How far it is. */
interface Seen {
  /** Partitions that are still to move; 0 and done are two things. */
  readonly left: number;
  readonly isDone: boolean;
  /** Whether the manager knows of it. */
  readonly isUnderWay: boolean;
}

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
  let isKnown = false;
  try {
    for (;;) {
      if (!isKnown) await asked(connection, wish);
      const status = await seenStatus(connection);
      const seen = status && look(status);
      if (seen?.isDone === true) return;
      if (seen !== undefined && seen.left !== told) {
        told = seen.left;
        screen.json({ event: doing, node: wish.node, partitionsLeft: told });
      }
      line.show({ text: `${counted(told ?? 0, "partition")} left` });
      // A manager that has died may have forgotten it.
      isKnown = seen === undefined || seen.isUnderWay;
      if (nowMs() >= deadlineMs) {
        const left = `${counted(told ?? 0, "partition")} left to move`;
        throw new SituError("SITU_TIMEOUT", `${what}: ${left}; the cluster goes on by itself`);
      }
      await sleep(LOOK_MS);
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

/** While another manager is found, this is asked again. */
async function asked(connection: ConnectOptions, wish: Wish): Promise<void> {
  const deadlineMs = nowMs() + MANAGER_PATIENCE_MS;
  for (;;) {
    try {
      await administer(connection, wish);
      return;
    } catch (error) {
      if (!isPassing(error) || nowMs() >= deadlineMs) throw error;
      await sleep(LOOK_MS);
    }
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

/** Nobody, or the wrong one, has answered: the cluster may be about to change. */
function isPassing(error: unknown): boolean {
  const { code = "" } = error as { code?: string };
  return ["SITU_UNREACHABLE", "SITU_LOST", "SITU_TIMEOUT", "SITU_OVERLOADED"].includes(code);
}
