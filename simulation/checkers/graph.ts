/**
 * The dependency graph: first a growing list of edges, then, for one choice of edges, an adjacency
 * in compressed rows (`targets[offsets[n] .. offsets[n + 1]]` are the successors of n).
 *
 * Besides transactions there are *helper* nodes that stand for "all of these" and keep the number
 * of edges linear. An edge out of a transaction is one dependency; it may pass through helpers
 * until it reaches the next transaction, and those further edges add nothing: they do not count as
 * length, and they have the kind of the dependency that they continue.
 */

/** In the order in which the isolation levels admit them: a level uses all kinds up to its own. */
export const WW = 0;
export const WR = 1;
export const RW = 2;
export const REALTIME = 3;
export type EdgeKind = typeof WW | typeof WR | typeof RW | typeof REALTIME;

/** For edges that no single append explains. */
export const NO_APPEND = -1;

export class EdgeList {
  readonly transactionCount: number;
  nodeCount: number;
  count = 0;
  from = new Int32Array(1024);
  to = new Int32Array(1024);
  kind = new Uint8Array(1024);
  /** The append that the edge is about, for the explanation. */
  append = new Int32Array(1024);

  constructor(transactionCount: number) {
    this.transactionCount = transactionCount;
    this.nodeCount = transactionCount;
  }

  addHelper(): number {
    return this.nodeCount++;
  }

  add(from: number, to: number, kind: EdgeKind, append: number): void {
    // What a transaction does to itself is judged by reads.ts, and is no dependency.
    if (from === to) return;
    if (this.count === this.from.length) this.#grow();
    this.from[this.count] = from;
    this.to[this.count] = to;
    this.kind[this.count] = kind;
    this.append[this.count] = append;
    this.count++;
  }

  isHelper(node: number): boolean {
    return node >= this.transactionCount;
  }

  #grow(): void {
    const capacity = this.from.length * 2;
    const double = (array: Int32Array<ArrayBuffer>) => {
      const larger = new Int32Array(capacity);
      larger.set(array);
      return larger;
    };
    this.from = double(this.from);
    this.to = double(this.to);
    this.append = double(this.append);
    const kind = new Uint8Array(capacity);
    kind.set(this.kind);
    this.kind = kind;
  }
}

export interface Graph {
  readonly nodeCount: number;
  readonly offsets: Int32Array;
  readonly targets: Int32Array;
  /** For each entry of `targets`: the edge in the EdgeList that it came from. */
  readonly edges: Int32Array;
  /** For each node: its transaction, or -1 for a helper. */
  readonly transaction: Int32Array;
}

/** All edges up to a kind. */
export function buildGraph(list: EdgeList, highestKind: EdgeKind): Graph {
  const transaction = new Int32Array(list.nodeCount).fill(-1);
  for (let node = 0; node < list.transactionCount; node++) transaction[node] = node;
  return compress(list.nodeCount, transaction, (emit) => {
    for (let edge = 0; edge < list.count; edge++) {
      if (list.kind[edge] <= highestKind) emit(list.from[edge], list.to[edge], edge);
    }
  });
}

/**
 * The graph whose cycles are exactly what snapshot isolation forbids: those without two adjacent rw
 * edges. (Cerone and Gotsman, PODC 2016: a history is allowed under snapshot isolation if and only if
 * (wr ∪ ww) ; rw? is acyclic.)
 */
export function buildSnapshotGraph(list: EdgeList): Graph {
  return buildMomentsGraph(list, RW, () => false);
}

/**
 * The graph whose cycles are what a mixture of strict and of snapshot-isolated transactions forbids.
 *
 * Let every transaction T have a moment s(T) that its reads are of, and a moment c(T) at which it
 * commits. Under snapshot isolation s(T) <= c(T); a strict transaction validates what it has read
 * when it commits, so s(T) = c(T). Then
 *
 *     T -ww-> U, T -wr-> U, T ended before U began       c(T) <= s(U)
 *     T -rw-> U                                          s(T) <  c(U)
 *
 * (the first for U under snapshot isolation because the first committer wins, and because snapshots
 * are fresh). A history is allowed exactly if such moments exist: if the graph over all s and c has no
 * cycle.
 */
export function buildMixedGraph(list: EdgeList, isStrict: (transaction: number) => boolean): Graph {
  return buildMomentsGraph(list, REALTIME, isStrict);
}

/**
 * Every node exists twice: reached by an rw edge it is c(T), else s(T). The first of the two has no rw
 * edge going out, unless both are the same moment.
 */
function buildMomentsGraph(
  list: EdgeList,
  highestKind: EdgeKind,
  isStrict: (transaction: number) => boolean,
): Graph {
  const afterRw = list.nodeCount;
  const transaction = new Int32Array(list.nodeCount * 2).fill(-1);
  for (let node = 0; node < list.transactionCount; node++) {
    transaction[node] = node;
    transaction[afterRw + node] = node;
  }
  return compress(list.nodeCount * 2, transaction, (emit) => {
    for (let edge = 0; edge < list.count; edge++) {
      const kind = list.kind[edge];
      const from = list.from[edge];
      const to = list.to[edge];
      if (kind === RW && list.isHelper(from)) {
        emit(afterRw + from, afterRw + to, edge);
      } else if (kind === RW) {
        emit(from, afterRw + to, edge);
        if (isStrict(from)) emit(afterRw + from, afterRw + to, edge);
      } else if (kind <= highestKind) {
        emit(from, to, edge);
        emit(afterRw + from, to, edge);
      }
    }
  });
}

type Emit = (from: number, to: number, edge: number) => void;

/** Runs `emitAll` twice: once to count the edges of each node, once to place them. */
function compress(
  nodeCount: number,
  transaction: Int32Array,
  emitAll: (emit: Emit) => void,
): Graph {
  const offsets = new Int32Array(nodeCount + 1);
  emitAll((from) => {
    offsets[from + 1]++;
  });
  for (let node = 0; node < nodeCount; node++) offsets[node + 1] += offsets[node];

  const targets = new Int32Array(offsets[nodeCount]);
  const edges = new Int32Array(offsets[nodeCount]);
  const next = offsets.slice();
  emitAll((from, to, edge) => {
    const slot = next[from]++;
    targets[slot] = to;
    edges[slot] = edge;
  });
  return { nodeCount, offsets, targets, edges, transaction };
}
