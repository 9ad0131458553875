/**
 * LinkBench's invariant: counts are those of the links that are there, links and nodes are as many as at the
 * beginning, plus those added, less those deleted, no link is there twice, and every list was in the order of its times.
 */

import type { ReadRows, Tally } from "../workload.ts";
import { Link, LinkCount, LinkNode } from "./store.ts";

const MOST_PROBLEMS = 20;

export async function checkLinks(
  nodes: number,
  links: number,
  read: ReadRows,
  tally: Tally,
): Promise<string[]> {
  const problems: string[] = [];
  const tell = (what: string): void => {
    if (problems.length < MOST_PROBLEMS) problems.push(what);
  };
  const { nodesAdded = 0, nodesDeleted = 0, linksAdded = 0, linksDeleted = 0 } = tally;
  let foundNodes = 0;
  for await (const _ of read(LinkNode)) foundNodes++;
  const expectedNodes = nodes + nodesAdded - nodesDeleted;
  if (foundNodes !== expectedNodes) tell(`${foundNodes} nodes, and not ${expectedNodes}`);
  const counts = new Map<string, number>();
  const seen = new Set<string>();
  for await (const { id1, link_type, id2 } of read(Link)) {
    const list = `${id1} ${link_type}`;
    const link = `${list} ${id2}`;
    if (seen.has(link)) tell(`link ${link} is there twice`);
    seen.add(link);
    counts.set(list, (counts.get(list) ?? 0) + 1);
  }
  const expectedLinks = links + linksAdded - linksDeleted;
  if (seen.size !== expectedLinks) tell(`${seen.size} links, and not ${expectedLinks}`);
  for await (const { id1, link_type, links: counted } of read(LinkCount)) {
    const list = `${id1} ${link_type}`;
    const found = counts.get(list) ?? 0;
    if (found !== counted) tell(`list ${list} has ${found} links, and counts ${counted}`);
    counts.delete(list);
  }
  for (const [list, found] of counts) tell(`list ${list} has ${found} links, and no count`);
  if ((tally.disorders ?? 0) > 0) tell(`${tally.disorders} links were out of order`);
  return problems;
}
