/**
 * Models of machines and networks, as data. Each figure has its source: "FaSST" and "FaRM" are the
 * papers in the project's seeds, the section follows. What is computed from two figures is computed
 * here, so that one sees how.
 *
 * A packet takes this way; each step that has a figure above 0 takes its time, and waits where others
 * are before it:
 *
 *   core (issue, Doorbell) → NIC → PCIe and wire → NIC → core (serve) → … and the same way back
 *
 * A verb is not served by a core: the NIC does it, over its PCIe bus. In a NIC there is one engine for
 * what comes and what goes; it takes a time for each packet, or for its bytes if that is longer.
 *
 * In an RPC four packets pass the NIC of a machine that is client and server alike: its request and
 * the reply to it, another's request and the reply to that. So a rate of R RPCs per second and
 * machine means a fourth of 1/R for each packet.
 */

export interface NicModel {
  /** NICs in a machine. */
  readonly count: number;
  /** For one packet of a message, a fourth of what an RPC takes. */
  readonly messageUs: number;
  /** The NIC is told of new requests, once for all that leave in a turn. */
  readonly doorbellUs: number;
  /** For one packet of a verb, with all its queue pairs in the NIC's cache. */
  readonly verbUs: number;
  /** 1, or how much longer a packet of a connection takes because queue pairs are fetched again. */
  readonly cacheMisses: number;
  readonly bytesPerUs: number;
  /** Whether what comes and what goes have an engine each. One for both, if not given. */
  readonly isDuplex?: boolean;
  /** For a write that comes, where that is longer than `verbUs`. */
  readonly writeUs?: number;
}

export interface CoreModel {
  readonly count: number;
  /** For the packet of a request: making it, and posting it. */
  readonly issueUs: number;
  /** The Doorbell: a write over PCIe, once for all that leaves in a turn. */
  readonly doorbellUs: number;
  /** For a request that has come: polling for it, and its reply. The store's work comes on top. */
  readonly serveUs: number;
  /** For a reply that has come. */
  readonly completeUs: number;
  /** For a verb: to post it and to poll for its completion. */
  readonly verbUs: number;
  /** What a handler does in the store: one key. */
  readonly handlerUs: number;
}

export interface Hardware {
  readonly name: string;
  readonly nic: NicModel;
  readonly host: CoreModel;
  /** Cores on the NIC, for messages that are served there. */
  readonly nicCores: CoreModel;
  /** One way, with the switch. */
  readonly wireUs: number;
  /** One crossing of the PCIe bus. */
  readonly pcieUs: number;
  /** The gap between two cache lines of a memory access is random, and at most this. */
  readonly lineGapUs: number;
  /** How many transactions a thread has under way, in a closed loop. */
  readonly coroutines: number;
}

const NO_CORES: CoreModel = {
  count: 1,
  issueUs: 0,
  doorbellUs: 0,
  serveUs: 0,
  completeUs: 0,
  verbUs: 0,
  handlerUs: 0,
};

/** Costs nothing but a constant time on the wire: for simulations that look for wrong results. */
export const PLAIN: Hardware = {
  name: "plain",
  nic: {
    count: 1,
    messageUs: 0,
    doorbellUs: 0,
    verbUs: 0,
    cacheMisses: 1,
    bytesPerUs: Number.POSITIVE_INFINITY,
  },
  host: NO_CORES,
  nicCores: NO_CORES,
  wireUs: 10,
  pcieUs: 0,
  lineGapUs: 0.5,
  coroutines: 20,
};

/** FaSST §4.1: about 20 coroutines a thread hide the network's latency. */
const COROUTINES = 20;
/** FaSST §6.4: 2.8 µs median for one RPC at low load, "close to the network's RTT". */
const ROUND_TRIP_US = 2.8;
/**
 * Xenic §3.1: an RDMA write to host memory takes 3.5 µs from another server, and 4.5 µs to the SoC's;
 * the rest of its figures are in pictures. A PCIe crossing is taken as a tenth of the round trip:
 * the throughput of saturated machines does not depend on it.
 */
const PCIE_US = 0.28;
const WIRE_US = ROUND_TRIP_US / 2 - 2 * PCIE_US;

/** Two rates of one thing, with requests in batches of 1 and of `batch`: the time of each, per batch. */
function split(rateOfOne: number, rateOfBatch: number, batch: number) {
  const perBatchUs = (1 / rateOfOne - 1 / rateOfBatch) / (1 - 1 / batch);
  return { perBatchUs, eachUs: 1 / rateOfOne - perBatchUs };
}

/** FaSST §4.5: a core of CIB does 3.4 Mrps with one request a batch and 4.3 Mrps with eleven. */
const FASST_CORE = split(3.4, 4.3, 11);
/** FaSST §6.1: 14 cores do 32.3 Mtps of O(1, 0) and are the bottleneck; the store is what is new. */
const FASST_HANDLER_US = 14 / 32.3 - 1 / 3.4;

/** A datagram RPC's core time: a quarter each to issue and to complete, half to serve. */
function fasstCores(count: number): CoreModel {
  return {
    count,
    issueUs: FASST_CORE.eachUs / 4,
    doorbellUs: FASST_CORE.perBatchUs,
    serveUs: FASST_CORE.eachUs / 2,
    completeUs: FASST_CORE.eachUs / 4,
    // FaSST §3.3.2: 10.9 Mrps per thread where queue pairs are not shared.
    verbUs: 1 / 10.9,
    handlerUs: FASST_HANDLER_US,
  };
}

/** FaSST §3.3.1: 11.6 Mrps on CX3 with one request a batch, 12.3 Mrps with eleven. */
const CX3_RPC = split(11.6, 12.3, 11);
/** FaSST §3.3.1: 11.2 Mrps of small READs on CX3, on six machines. */
const CX3_VERB_US = 1 / 11.2 / 4;
/**
 * FaSST §3.3.1: READs of 384 bytes, 6.5 Mrps. Two of four packets are long: what is left for one of
 * them, and its bytes. It comes to 7.0 GB/s, which is the 56 Gbps of the link.
 */
const CX3_BYTES_PER_US = 384 / ((1 / 6.5 - 2 * CX3_VERB_US) / 2);

/** FaSST's CX3 cluster: one ConnectX-3, 8 cores (FaSST §3.3, Table 2). */
export const FASST_CX3: Hardware = {
  name: "fasst-cx3",
  nic: {
    count: 1,
    messageUs: CX3_RPC.eachUs / 4,
    doorbellUs: CX3_RPC.perBatchUs,
    verbUs: CX3_VERB_US,
    // Datagrams: one queue pair a thread, whatever the size of the cluster (FaSST §3.2).
    cacheMisses: 1,
    bytesPerUs: CX3_BYTES_PER_US,
  },
  // The paper gives no figure for one of CX3's cores in its text; those of CIB are taken.
  host: fasstCores(8),
  nicCores: NO_CORES,
  wireUs: WIRE_US,
  pcieUs: PCIE_US,
  lineGapUs: 0,
  coroutines: COROUTINES,
};

/** FaSST §3.3.1: 34.9 and 40.9 Mrps on CIB; READs: 51.2 Mrps, of 384 bytes 23.1 Mrps. */
const CIB_RPC = split(34.9, 40.9, 11);
const CIB_VERB_US = 1 / 51.2 / 4;
const CIB_BYTES_PER_US = 384 / ((1 / 23.1 - 2 * CIB_VERB_US) / 2);

/** FaSST's CIB cluster: one Connect-IB, 14 cores (FaSST §3.3, Table 2). */
export const FASST_CIB: Hardware = {
  name: "fasst-cib",
  nic: {
    count: 1,
    messageUs: CIB_RPC.eachUs / 4,
    doorbellUs: CIB_RPC.perBatchUs,
    verbUs: CIB_VERB_US,
    cacheMisses: 1,
    bytesPerUs: CIB_BYTES_PER_US,
  },
  host: fasstCores(14),
  nicCores: NO_CORES,
  wireUs: WIRE_US,
  pcieUs: PCIE_US,
  lineGapUs: 0,
  coroutines: COROUTINES,
};

/** FaSST §4.5: FaRM's RPCs reach 5 Mrps on 16 cores, and a second NIC does not help. */
const FARM_RPC_CORE_US = 16 / 5;
/** FaSST §3.3 and §6.2: FaRM's READs deliver 4 times that. */
const FARM_READ_CORE_US = 16 / (4 * 5);

/**
 * Queue pairs of a machine of FaRM: 2·m·t/q (FaRM §3.1), here with all t threads sharing (q = t): no
 * other value has fewer. FaSST compares with FaRM's published 90 machines [FaSST 12], with two NICs.
 */
const FARM_MACHINES = 90;
const FARM_QUEUE_PAIRS = (2 * FARM_MACHINES) / 2;
/**
 * FaSST §3.3: READs of CX3 are at their peak with 6 machines and 8 threads, 48 queue pairs, and at
 * 24 % of it with 22 machines, 176 queue pairs. In between: a straight line.
 */
const CACHED_QUEUE_PAIRS = 6 * 8;
const MANY_QUEUE_PAIRS = 22 * 8;
const RATE_WITH_MANY = 0.24;
const FARM_READ_RATE =
  1 -
  ((1 - RATE_WITH_MANY) * (FARM_QUEUE_PAIRS - CACHED_QUEUE_PAIRS)) /
    (MANY_QUEUE_PAIRS - CACHED_QUEUE_PAIRS);

/** FaRM as FaSST compares with it: two ConnectX-3, 16 cores (FaSST §6, Table 3). */
export const FARM_2XCX3: Hardware = {
  name: "farm-2xcx3",
  nic: {
    count: 2,
    // Its messages are RDMA writes (FaRM §3.1), over connections too.
    messageUs: CX3_VERB_US / FARM_READ_RATE,
    doorbellUs: 0,
    verbUs: CX3_VERB_US,
    cacheMisses: 1 / FARM_READ_RATE,
    bytesPerUs: CX3_BYTES_PER_US,
  },
  host: {
    count: 16,
    issueUs: FARM_RPC_CORE_US / 4,
    // Connected queue pairs: one Doorbell for each destination, in the figures above (FaSST §3.2).
    doorbellUs: 0,
    serveUs: FARM_RPC_CORE_US / 2,
    completeUs: FARM_RPC_CORE_US / 4,
    verbUs: FARM_READ_CORE_US,
    // No paper has it for FaRM; a store's work on one key is taken to be as in FaSST.
    handlerUs: FASST_HANDLER_US,
  },
  nicCores: NO_CORES,
  wireUs: WIRE_US,
  pcieUs: PCIE_US,
  lineGapUs: 0,
  coroutines: COROUTINES,
};

/** NAM-DB §7.2: the basic vector is bound by the bandwidth of dual-port FDR 4x, two times 54.3 Gbps. */
const FDR_BYTES_PER_US = (2 * 54_300) / 8;
/**
 * NAM-DB §7.2: 36 M timestamps a second are published by one write each, with everything else out of the way: what a NIC does of
 * small writes that come. This figure is fitted to that result.
 */
const FDR_WRITES = 36;
/** NAM-DB §7.2: 2 M timestamps a second by the old oracle, whose thread is told of each. Fitted, too. */
const ORACLE_THREAD_US = 1 / 2;
/** A small read on Connect-IB takes 1.75 µs or so; two crossings of the bus and the wire each way, and the memory access. */
const FDR_PCIE_US = 0.12;
const FDR_WIRE_US = 1.75 / 2 - 3 * FDR_PCIE_US;

/** NAM-DB's machines: those of cluster B have 20 cores (§7). */
function namdb(name: string, cores: number): Hardware {
  return {
    name,
    nic: {
      count: 1,
      messageUs: CIB_VERB_US,
      doorbellUs: 0,
      verbUs: CIB_VERB_US,
      cacheMisses: 1,
      bytesPerUs: FDR_BYTES_PER_US,
      isDuplex: true,
      writeUs: 1 / FDR_WRITES,
    },
    host: {
      count: cores,
      issueUs: 0,
      doorbellUs: 0,
      serveUs: ORACLE_THREAD_US,
      completeUs: 0,
      // FaSST §3.3.2, as above.
      verbUs: 1 / 10.9,
      handlerUs: 0,
    },
    nicCores: NO_CORES,
    wireUs: FDR_WIRE_US,
    pcieUs: FDR_PCIE_US,
    lineGapUs: 0,
    // NAM-DB §6.1: a thread has one transaction.
    coroutines: 1,
  };
}

export const NAMDB_B: Hardware = namdb("namdb-b", 20);
/** The oracle's server: one thread is told which timestamps are done. */
export const NAMDB_ORACLE: Hardware = namdb("namdb-oracle", 1);

export const HARDWARE: Readonly<Record<string, Hardware>> = {
  plain: PLAIN,
  "fasst-cx3": FASST_CX3,
  "fasst-cib": FASST_CIB,
  "farm-2xcx3": FARM_2XCX3,
  "namdb-b": NAMDB_B,
  "namdb-oracle": NAMDB_ORACLE,
};
