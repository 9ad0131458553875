/**
 * The machines of Xenic's evaluation (SOSP 2021, §3 and §5), as data. Each figure says where it comes from:
 *
 *   paper     it stands in the text
 *   derived   it follows from figures of the text, by the arithmetic that is here
 *   standard  it is a property of Ethernet or RoCE
 *   fitted    it was chosen so that a result of the paper comes out; which one is said
 *   chosen    the paper does not say, and results depend on it little
 *
 * Two models: servers with the SmartNIC (LiquidIO 3), and the same servers with the RDMA NIC (CX5) that DrTM+H uses.
 */

/** Cores that work off what has come in bursts: see burst-cores.ts. */
export interface BurstModel {
  readonly cores: number;
  /** At most so many inputs are taken at once. */
  readonly burst: number;
  /** For a packet that comes, and for one that goes. */
  readonly packetUs: number;
  /** For a message in it: one row, or none. */
  readonly messageUs: number;
  /** For each further row. */
  readonly rowUs: number;
}

export interface LinkModel {
  readonly bytesPerUs: number;
  /** Beside the payload of each packet. */
  readonly headerBytes: number;
  readonly payloadBytes: number;
  /** For each packet, where its bytes do not take longer. */
  readonly packetUs: number;
  /** From NIC to NIC, without the times of links and cores. */
  readonly hopUs: number;
}

/** The engine that moves data between a NIC and its host's memory (§3.5). */
export interface DmaModel {
  readonly queues: number;
  readonly vector: number;
  readonly submitUs: number;
  readonly readUs: number;
  readonly writeUs: number;
  /** One element at its queue. */
  readonly elementUs: number;
  readonly bytesPerUs: number;
}

export interface SmartNicModel {
  readonly link: LinkModel;
  readonly cores: BurstModel;
  readonly dma: DmaModel;
  /** The host's threads that begin transactions and hear of their ends. */
  readonly host: BurstModel;
  /** A message over the bus, one way. */
  readonly crossingUs: number;
}

export interface RdmaModel {
  readonly link: LinkModel;
  readonly host: HostModel;
}

export interface HostModel {
  readonly threads: number;
  /** A thread's time for a verb or a message: to post it, and to poll for its end. */
  readonly verbUs: number;
  /** For a message of another that it serves. */
  readonly serveUs: number;
  /** A thread's verbs enter the NIC one after the other: so much between two of them. */
  readonly gapUs: number;
}

/** Paper, §5: two links of 50 Gbps, one of 100. */
const BYTES_PER_US = 100_000 / 8;
/** Standard: preamble, header, checksum and gap of Ethernet (38), IP (20), UDP (8). */
const UDP_HEADER_BYTES = 38 + 20 + 8;
/** Standard: what an Ethernet frame carries behind IP and UDP. */
const UDP_PAYLOAD_BYTES = 1500 - 28;

/** Derived from §3.3: 71.8 M echo RPCs a second on 16 NIC threads, a packet in and one out for each. */
const NIC_PACKET_US = 16 / 71.8 / 2;
/**
 * Derived from §3.4: 22.2 times 9.0 to 10.4 M writes to NIC memory a second in batches, on at most 24 cores. The link was the limit, so an
 * operation takes a core less than this. How much less is fitted to Fig. 8d and Table 3: 16 NIC threads do 12.0 M SmallBank
 * transactions a second.
 */
const MOST_OPERATION_US = 24 / (22.2 * 9.7);
const NIC_OPERATION_US = 0.33 * MOST_OPERATION_US;
/** Derived: Table 3 and §5.6. Two host threads begin and end 12.0 M transactions a second: two messages each. */
const HOST_MESSAGE_US = 2 / 12.0 / 2;

/** Fitted to Fig. 9b, "combined operations": a round trip is 20 % of the baseline's latency. */
export const NIC_HOP_US = 1.4;
/** Fitted to Fig. 9b, "execution at the NIC": two crossings are 12 % of it. */
export const CROSSING_US = 1.0;

export const SMART_NIC: SmartNicModel = {
  link: {
    bytesPerUs: BYTES_PER_US,
    headerBytes: UDP_HEADER_BYTES,
    payloadBytes: UDP_PAYLOAD_BYTES,
    packetUs: 0,
    hopUs: NIC_HOP_US,
  },
  cores: {
    // Paper, §5.
    cores: 24,
    // Chosen: bursts of 64 are the paper's at hosts (§3.3).
    burst: 64,
    packetUs: NIC_PACKET_US,
    messageUs: NIC_OPERATION_US,
    rowUs: NIC_OPERATION_US,
  },
  dma: {
    // Paper, §3.5. That 8.7 M operations a second are a queue's is derived: papers' §3.4 has 70 M for the card.
    queues: 8,
    vector: 15,
    submitUs: 0.19,
    readUs: 1.295,
    writeUs: 0.57,
    elementUs: 1 / 8.7,
    // Standard: PCIe 3.0 x8, each way.
    bytesPerUs: 7_880,
  },
  host: {
    // Paper, §5: 32 threads.
    cores: 32,
    burst: 64,
    packetUs: 0,
    messageUs: HOST_MESSAGE_US,
    rowUs: 0,
  },
  crossingUs: CROSSING_US,
};

/** Standard: RoCE version 2 has Ethernet, IP, UDP, and then its own header (12) and checksum (4). */
const ROCE_HEADER_BYTES = UDP_HEADER_BYTES + 12 + 4;
/** Standard: where to read or write; what is compared and swapped; that it was done. */
export const RETH_BYTES = 16;
export const ATOMIC_BYTES = 28;
export const AETH_BYTES = 4;
/** Chosen: DrTM+H's lock and version of a row, one word of 8 bytes. */
export const ROW_HEADER_BYTES = 8;

/** Chosen: a small READ takes 1.75 µs without the threads, as on Connect-IB (../../fabric/hardware.ts); Fig. 2 has no figures. */
const ROUND_TRIP_US = 1.75;
/**
 * Derived: Table 3 has 20 threads for 95 % of SmallBank's peak, which is 12.0 M / 2.21 (§5.5): the time of a thread for one
 * transaction. It is divided by what its mix posts and serves on the average, counted by this very model.
 */
const SMALLBANK_OPERATIONS = 8.75;
const HOST_VERB_US = 20 / (0.95 * (12.0 / 2.21)) / SMALLBANK_OPERATIONS;
/** Fitted to Fig. 8a: New-Order's median at low load, where a transaction has 45 verbs and messages. */
const VERB_GAP_US = 0.46;
/** Fitted to Fig. 8d: DrTM+H's peak of 12.0 M / 2.21 SmallBank transactions a second. */
export const CX5_PACKET_US = 1 / 88;

export const RDMA_NIC: RdmaModel = {
  link: {
    bytesPerUs: BYTES_PER_US,
    headerBytes: ROCE_HEADER_BYTES,
    // Standard: the largest of RoCE's below an Ethernet frame.
    payloadBytes: 1024,
    packetUs: CX5_PACKET_US,
    hopUs: ROUND_TRIP_US / 2,
  },
  host: { threads: 32, verbUs: HOST_VERB_US, serveUs: HOST_VERB_US, gapUs: VERB_GAP_US },
};
