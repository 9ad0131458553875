/**
 * LinkBench (Armstrong et al., "LinkBench: a Database Benchmark Based on the Facebook Social Graph", SIGMOD 2013): its
 * mix and the shapes of config/FBWorkload.properties; and the mix of TAO (Bronson et al., USENIX ATC 2013), which
 * FaRM ran on LinkBench's graph (§4.4). The two differ by two orders of magnitude in writes.
 *
 * Where this differs from LinkBench: degrees are drawn from twenty points of its empirical distribution
 * (config/Distribution.dat, nlinks) with straight lines between them, and a tail that is cut off at 5,000 links. Which
 * objects an operation touches does not depend on their degrees; LinkBench draws 0.5 % of its reads of links and 5 % of
 * its writes by degree, so it meets long lists a little more often. LinkBench lets 0.3 % of its list reads go on behind
 * a list that filled the limit of 10,000 links; no list here is as long, so there are no such reads. Deleted links are
 * removed, not hidden. Versions are counted by the store: an update of a node, and a link that replaces another one,
 * read the version and raise it by one (Redis keeps versions of nodes only). LinkBench's client sends a constant.
 */

/** What a session can draw; the order is that of `mixes`. */
export const KINDS = [
  "get node",
  "add node",
  "update node",
  "delete node",
  "add link",
  "update link",
  "delete link",
  "change type",
  "count links",
  "get links",
  "get list",
  "get time range",
] as const;
export type LinkKind = (typeof KINDS)[number];

/** The writes of TAO's mix, as shares of each other. */
const TAO_WRITES = 0.2;
const TAO_WRITE_SHARES = {
  "add link": 52.5,
  "update node": 20.7,
  "add node": 16.5,
  "delete link": 8.3,
  "delete node": 2.0,
  "change type": 0.9,
};
const taoWrites = Object.values(TAO_WRITE_SHARES).reduce((sum, each) => sum + each, 0);
const taoWrite = (kind: keyof typeof TAO_WRITE_SHARES): number =>
  (TAO_WRITES * TAO_WRITE_SHARES[kind]) / taoWrites;
const taoRead = (percent: number): number => (percent * (100 - TAO_WRITES)) / 100;

/** In percent. */
export const mixes: Readonly<Record<"linkbench" | "tao", Readonly<Record<LinkKind, number>>>> = {
  linkbench: {
    "get node": 12.9326683,
    "add node": 2.5732789,
    "update node": 7.366437,
    "delete node": 1.0115914,
    "add link": 8.9886601,
    "update link": 8.0122125,
    "delete link": 2.9907664,
    "change type": 0,
    "count links": 4.8863567,
    "get links": 0.5261142,
    "get list": 50.7119145,
    "get time range": 0,
  },
  tao: {
    "get node": taoRead(28.9),
    "add node": taoWrite("add node"),
    "update node": taoWrite("update node"),
    "delete node": taoWrite("delete node"),
    "add link": taoWrite("add link"),
    "update link": 0,
    "delete link": taoWrite("delete link"),
    "change type": taoWrite("change type"),
    "count links": taoRead(11.7),
    "get links": taoRead(15.7),
    "get list": taoRead(40.9),
    "get time range": taoRead(2.8),
  },
};

/** nlinks of Distribution.dat: links of a node, and the percentage of nodes with at most as many. */
export const DEGREES: readonly (readonly [links: number, percent: number])[] = [
  [0, 19.747],
  [1, 72.985],
  [2, 86.738],
  [3, 91.817],
  [4, 94.459],
  [5, 95.869],
  [6, 96.778],
  [8, 97.817],
  [10, 98.341],
  [15, 98.963],
  [20, 99.222],
  [30, 99.465],
  [50, 99.652],
  [70, 99.722],
  [100, 99.774],
  [200, 99.84],
  [300, 99.87],
  [500, 99.9],
  [740, 99.919],
  [5_000, 100],
];

/** link_type_count: the links of a node are of two types, in equal parts. */
export const LINK_TYPES = 2;

/** Shapes of the zipfian access distributions. */
export const SHAPES = { linkRead: 0.8, linkWrite: 0.741, nodeRead: 0.625, nodeUpdate: 0.606 };

/** The chance that the link which an operation names exists. */
export const EXISTS = { get: 0.5, update: 0.9, delete: 0.9, add: 0.05 };

/** Nodes that one multiget names: geometric. */
export const MULTIGET_P = 0.382;
export const MOST_MULTIGET = 128;
export const LIST_LIMIT = 10_000;
/** What TAO's clients ask for. */
export const TAO_LIMIT = 50;

/** Log-normal sizes in bytes: median, and the most. */
export const SIZES = { sigma: 1, link: 8, node: 128, mostLink: 255, mostNode: 8_192 };

/** Initial times lie within fifty days. */
export const FIRST_TIME = 1_300_000_000_000;
export const TIME_SPAN = 50 * 24 * 3_600_000;
