// The memory that edges take, counted in blocks of the store: of lists as long as LinkBench's, most of which have one or two
// edges, and of one list that all edges are in, which has a second tree to find them by their targets.
import { type Database, graph, open, str, u32, u53 } from "situ";
import { FIRST_TIME, LINK_TYPES, TIME_SPAN } from "../../workloads/linkbench/parameters.ts";
import { drawDegrees, targetOf } from "../../workloads/linkbench/shape.ts";
import { counted } from "../harness/figures.ts";
import { temporaryFolder } from "../harness/resources.ts";
import type { TrustContext, TrustMeasure, TrustResult } from "../trust/measure.ts";

const BAR = { atMost: 64 };
const OBJECTS = 100_000;
const QUICK_OBJECTS = 20_000;
const HUB_EDGES = 200_000;
const QUICK_HUB_EDGES = 50_000;
const OBJECT_BYTES = 128;
const AT_ONCE = 100;
const MIB = 2 ** 20;

const objects = { node: { version: u32(), time: u53(), data: str() } };
/** Sixteen bytes. */
const data = { one: u53(), other: u53() };
const TYPES = ["link0", "link1"] as const;

const links = (db: Database) =>
  graph(db, { objects, associations: { link0: { data }, link1: { data } } });
type Links = ReturnType<typeof links>;

export const edgeBytes: TrustMeasure = {
  name: "edge-bytes",
  async run({ options, memoryFolder }: TrustContext): Promise<TrustResult> {
    const path = temporaryFolder(memoryFolder);
    const db = await open({ path, memoryDir: path, memoryBytes: 512 * MIB });
    const g = links(db);
    const count = options.quick ? QUICK_OBJECTS : OBJECTS;
    addObjects(db, g, count);
    const degrees = drawDegrees(count);
    const edges = degrees.reduce((sum, each) => sum + each, 0);
    const ofLists = bytesOf(db, () => addLists(db, g, degrees)) / edges;
    const hubEdges = options.quick ? QUICK_HUB_EDGES : HUB_EDGES;
    const hub = g.objAdd("node", { version: 1, time: 0, data: "" });
    const ofHub = bytesOf(db, () => addToHub(db, g, hub, hubEdges)) / hubEdges;
    await db.close();
    return {
      figures: [
        counted(
          "memory of an edge with 16 bytes of data, LinkBench's lists",
          BAR,
          ofLists,
          "bytes",
        ),
        counted("memory of an edge with 16 bytes of data, one long list", BAR, ofHub, "bytes"),
      ],
      notes: [
        `edge-bytes: blocks that ${edges.toLocaleString("en")} edges of ${count.toLocaleString("en")} objects take, beyond those ` +
          `that the objects took before; ${hubEdges.toLocaleString("en")} edges of one object`,
      ],
    };
  },
};

function bytesOf(db: Database, change: () => void): number {
  const before = used(db);
  change();
  return used(db) - before;
}

function used(db: Database): number {
  const { reservedBytes, freeBytes } = db.stats().memory;
  return reservedBytes - freeBytes;
}

function addObjects(db: Database, g: Links, count: number): void {
  const text = "x".repeat(OBJECT_BYTES);
  for (let first = 1; first <= count; first += AT_ONCE) {
    db.transactSync((tx) => {
      const inside = g.in(tx);
      for (let id = first; id < first + AT_ONCE; id++) {
        inside.objAdd("node", { version: 1, time: FIRST_TIME, data: text }, { id });
      }
    });
  }
}

/** Times come in no order, as LinkBench loads them. */
function addLists(db: Database, g: Links, degrees: Uint16Array): void {
  for (let id = 1; id < degrees.length; id++) {
    db.transactSync((tx) => {
      const inside = g.in(tx);
      for (let i = 0; i < degrees[id]; i++) {
        const time = FIRST_TIME + ((i * 7_919) % TIME_SPAN);
        inside.assocAdd(id, TYPES[i % LINK_TYPES], targetOf(id, i), time, { one: i, other: id });
      }
    });
  }
}

function addToHub(db: Database, g: Links, hub: number, edges: number): void {
  for (let first = 0; first < edges; first += AT_ONCE) {
    db.transactSync((tx) => {
      const inside = g.in(tx);
      for (let i = first; i < first + AT_ONCE; i++) {
        inside.assocAdd(hub, "link0", targetOf(hub, i), FIRST_TIME + i, { one: i, other: hub });
      }
    });
  }
}
