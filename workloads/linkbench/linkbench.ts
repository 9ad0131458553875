/** LinkBench, with its own mix or with TAO's, which FaRM ran (§4.4): see parameters.ts. */

import { DRAWS } from "../random/drawn.ts";
import type { Workload } from "../workload.ts";
import { checkLinks } from "./check.ts";
import { KINDS, LIST_LIMIT, mixes, SIZES, TAO_LIMIT } from "./parameters.ts";
import { LinkSession, popularities } from "./session.ts";
import { drawDegrees, linkRows } from "./shape.ts";
import { Link, LinkCount, LinkNode, type LinkStore } from "./store.ts";

export interface LinkBenchOptions {
  /** Operations of a session that are drawn before the run; a power of two. */
  readonly draws?: number;
}

/** Bytes of a node and of a link besides their data; data is half again as long as its median, on average. */
const NODE_BYTES = 16 + 1.65 * SIZES.node;
const LINK_BYTES = 24 + 1.65 * SIZES.link;

export function linkbench(
  mixName: keyof typeof mixes,
  nodes: number,
  { draws = DRAWS }: LinkBenchOptions = {},
): Workload<LinkStore> {
  const mix = mixes[mixName];
  const degrees = drawDegrees(nodes);
  const links = degrees.reduce((sum, each) => sum + each, 0);
  const limit = mixName === "tao" ? TAO_LIMIT : LIST_LIMIT;
  const popularity = popularities(nodes);
  return {
    name: mixName,
    source:
      mixName === "tao"
        ? "TAO (Bronson et al., ATC 2013), Figure 3, on LinkBench's graph, as FaRM (NSDI 2014), §4.4"
        : "LinkBench (Armstrong et al., SIGMOD 2013), config/FBWorkload.properties",
    mix: KINDS.map((name) => ({ name, percent: mix[name] })),
    tables: [LinkNode, Link, LinkCount],
    scale: `${nodes.toLocaleString("en")} nodes, ${links.toLocaleString("en")} links`,
    bytes: Math.ceil(nodes * NODE_BYTES + links * LINK_BYTES),
    rows: () => linkRows(nodes, degrees),
    session(store, { seed, lane, lanes }) {
      const graph = { nodes, degrees, mix, draws, limit, popularity, isTao: mixName === "tao" };
      return new LinkSession(store, graph, seed, lane, lanes);
    },
    check: (read, tally) => checkLinks(nodes, links, read, tally),
  };
}
