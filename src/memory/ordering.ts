/**
 * Ordered access to shared words. `Atomics` gives sequential consistency on every machine, at the
 * price of a call into a builtin (7 to 8 ns here, where a plain access takes 1 ns). Most steps of
 * the protocols need less: that a load is not done after later ones (acquire), or a store not
 * before earlier ones (release). On x64 the hardware gives just that to plain accesses of aligned
 * words, and V8 neither reorders, merges nor drops accesses to typed arrays. So there these are
 * plain, and `Atomics` elsewhere. See docs/decisions/0005 for what was measured.
 *
 * Where a step needs more, a store that everybody sees before the next load, or a
 * compare-and-swap, the protocols call `Atomics` by name. So does the second look of a seqlock:
 * a call that the compiler cannot see through stands between the two looks.
 *
 * Outside x64, and for arm64 in particular, `Atomics.load` is an acquire (ldar) and `Atomics.store` a
 * release (stlr), also against each other; plain accesses have no order. Two things follow that are
 * easily overlooked. A release does not keep *later* stores behind it: where a store must be seen
 * before later ones, an atomic load has to stand between them. And an acquire does not keep *earlier*
 * loads before it: that takes `loadAfterLoads`. docs/decisions/0027 goes through the protocols.
 *
 * SITU_ATOMICS=all uses `Atomics` for everything: the crash tests stop a process at each of them.
 */

const ORDERED = process.arch === "x64";
const PLAIN = ORDERED && process.env.SITU_ATOMICS !== "all";

// Up to 27 bytes of bytecode V8 inlines a function whatever the caller has inlined already, and these
// stand in every lookup. So what is not plain is a function of its own.
export function loadAcquire(i32: Int32Array, at: number): number {
  return PLAIN ? i32[at] : atomicLoad(i32, at);
}

export function storeRelease(i32: Int32Array, at: number, value: number): void {
  if (PLAIN) i32[at] = value;
  else atomicStore(i32, at, value);
}

/** The same where a test need not stop: plain on x64, whatever SITU_ATOMICS says. */
export function storeReleaseQuietly(i32: Int32Array, at: number, value: number): void {
  if (ORDERED) i32[at] = value;
  else atomicStore(i32, at, value);
}

function atomicLoad(i32: Int32Array, at: number): number {
  return Atomics.load(i32, at);
}

function atomicStore(i32: Int32Array, at: number, value: number): void {
  Atomics.store(i32, at, value);
}

/**
 * A load that comes after all earlier loads, which takes a read-modify-write where loads drift. It
 * works for a word that others change by a read-modify-write of their own, or whose new value is
 * acquired by whoever then overwrites what the earlier loads have read.
 */
export function loadAfterLoads(i32: Int32Array, at: number): number {
  return ORDERED ? Atomics.load(i32, at) : readModifyWrite(i32, at);
}

function readModifyWrite(i32: Int32Array, at: number): number {
  return Atomics.add(i32, at, 0);
}

/** Makes a word at least so large. */
export function raiseTo(i32: Int32Array, at: number, least: number): void {
  for (let seen = Atomics.load(i32, at); seen < least; seen = Atomics.load(i32, at)) {
    Atomics.compareExchange(i32, at, seen, least);
  }
}
