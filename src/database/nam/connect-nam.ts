/** From the description of a cluster of memory servers to a database on it. */

import type { Configuration } from "../../cluster/configuration.ts";
import { clientView } from "../../cluster/view.ts";
import type { NodeId } from "../../fabric/fabric.ts";
import type { TcpEndpoint } from "../../fabric/tcp/endpoint.ts";
import { Driver } from "../../protocols/driver.ts";
import { isLost } from "../../protocols/message.ts";
import { listTables } from "../../protocols/nam/catalogue.ts";
import {
  formMemory,
  MAX_FORMATION,
  type MemorySettings,
  stateOf,
} from "../../protocols/nam/formation.ts";
import { Members } from "../../protocols/nam/members.ts";
import { changeMembers } from "../../protocols/nam/membership.ts";
import { tableOf } from "../../protocols/nam/segments.ts";
import { sleep } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { NAM_BEAT_MS, NAM_SERVER_MISSES } from "../../runtime/limits.ts";
import { Random, uniqueId } from "../../runtime/random.ts";
import type { ConnectSettings } from "../remote/connect-options.ts";
import { type NamConnection, NamDatabase } from "./nam-database.ts";

/** Each journal is at so many servers (§6.2). */
const JOURNAL_COPIES = 2;
/** A server that does not say anything for so long is not there. */
const ANSWER_MS = NAM_BEAT_MS * NAM_SERVER_MISSES;

interface FoundMemory {
  readonly formation: number;
  readonly memory: MemorySettings;
  readonly members: Members;
}

/** Joins a memory that goes on without some of its servers, or forms one out of all of them. */
async function findMemory(
  driver: Driver,
  servers: readonly NodeId[],
  timeoutMs: number,
): Promise<FoundMemory> {
  const random = new Random();
  const { clock } = driver.endpoint;
  const untilMs = clock.nowMs() + timeoutMs;
  for (;;) {
    const leftMs = Math.max(1, untilMs - clock.nowMs());
    const asked = await Promise.allSettled(
      servers.map((server) => driver.start(stateOf(server), Math.min(leftMs, ANSWER_MS))),
    );
    const found = asked.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    const joined = found
      .toSorted((a, b) => b.epoch - a.epoch)
      .find(({ formation }) => formation !== 0);
    const isAlone = found.length === servers.length && found.every(({ epoch }) => epoch === 1);
    const isWhole = isAlone && found.every(({ formation }) => formation === joined?.formation);
    const hasCopies = joined !== undefined && joined.settings.copies > 1;
    const isOver = clock.nowMs() >= untilMs;
    if (hasCopies && !isWhole) {
      const members = new Members(servers, joined.settings.copies);
      members.become(joined.epoch, joined.alive);
      const { formation, settings: memory } = joined;
      // Those that do not answer, or were started again.
      const isThere = (server: NodeId, i: number): boolean => {
        const each = asked[i];
        const isMember = each.status === "fulfilled" && each.value.formation === formation;
        return isMember || !members.has(server);
      };
      const directory = directoryOf(servers, members, formation, memory);
      const suspects = servers.filter((server, i) => !isThere(server, i));
      try {
        // Journals may be about any of them.
        const reachable = members.alive.filter((server) => !suspects.includes(server));
        const entries = await driver.start(listTables(reachable, formation), leftMs);
        for (const { id, shape } of entries) {
          directory.tables[id] = tableOf(id, shape, servers, members);
        }
        const changing = changeMembers(directory, suspects, (below) => random.below(below));
        const { epoch, alive } = await driver.start(changing, leftMs);
        members.become(epoch, alive);
        return { formation, memory, members };
      } catch (error) {
        if (isOver || !(error instanceof SituError) || !isLost(error)) throw error;
      }
    } else if (isAlone || isOver) {
      const proposal = 1 + random.below(MAX_FORMATION - 1);
      const { formation, settings: memory } = await driver.start(
        formMemory(servers, proposal),
        leftMs,
      );
      return { formation, memory, members: new Members(servers, memory.copies) };
    }
    await sleep(NAM_BEAT_MS, clock);
  }
}

function directoryOf(
  servers: readonly NodeId[],
  members: Members,
  formation: number,
  memory: MemorySettings,
): NamConnection["directory"] {
  return {
    servers,
    members,
    tables: [],
    pairs: memory.threads,
    pairsPerSlot: 1,
    journalWords: memory.journalWords,
    overflowWords: memory.overflowWords,
    journalCopies: Math.max(JOURNAL_COPIES, memory.copies),
    formation,
    timestampServers: [servers[0]],
  };
}

export async function connectNam(
  settings: ConnectSettings,
  configuration: Configuration,
  endpoint: TcpEndpoint,
): Promise<NamDatabase> {
  const driver = new Driver(endpoint);
  const close = async (): Promise<void> => {
    driver.close();
    await endpoint.close();
  };
  const servers = configuration.nodes.map(({ id }) => id);
  try {
    const { formation, memory, members } = await findMemory(driver, servers, settings.timeoutMs);
    const { current } = clientView(uniqueId(), configuration, "nam");
    const db = new NamDatabase({
      driver,
      directory: directoryOf(servers, members, formation, memory),
      view: current,
      placement: current.placement,
      timeoutMs: settings.timeoutMs,
      close,
    });
    await db.openTables(settings.tables, settings.extents ?? {});
    return db;
  } catch (error) {
    await close();
    throw error;
  }
}
