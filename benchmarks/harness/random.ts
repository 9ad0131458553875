// Keys are drawn before anything is measured: a hot loop then pays one sequential load for a key,
// and every contestant the same. The loops keep their cursor and whatever they import in local
// constants, which V8 may treat as fixed; an imported binding it looks up again on each use.

/** So many that a walk over them meets nearly every one of a million rows. */
const drawn = 2 ** 22;

/** What a loop adds to its cursor stays inside the keys when masked with this. */
export const keyMask = drawn - 1;

/** Uniform in 0 .. limit - 1; `lane` separates streams of the same seed. */
export function randomKeys(limit: number, seed: number, lane = 0): Int32Array {
  const keys = new Int32Array(drawn);
  let state = startState(seed, lane);
  for (let index = 0; index < drawn; index++) {
    state = nextState(state);
    keys[index] = Math.floor(((state >>> 0) / 2 ** 32) * limit);
  }
  return keys;
}

/** The keys at 2n and 2n + 1 are different. */
export function randomPairs(limit: number, seed: number, lane = 0): Int32Array {
  const keys = randomKeys(limit, seed, lane);
  for (let index = 0; index < drawn; index += 2) {
    if (keys[index] === keys[index + 1]) keys[index + 1] = (keys[index] + 1) % limit;
  }
  return keys;
}

/** Never zero, where xorshift would stay. */
function startState(seed: number, lane: number): number {
  let state = Math.imul(seed ^ Math.imul(lane + 1, 0x9e3779b9), 0x85ebca6b);
  state ^= state >>> 15;
  state = Math.imul(state, 0xc2b2ae35) ^ 0x27d4eb2f;
  return state === 0 ? 1 : state;
}

/** Xorshift on 32 bits. */
function nextState(state: number): number {
  state ^= state << 13;
  state ^= state >>> 17;
  return state ^ (state << 5);
}

/** One number in [0, 1) after the other, for work that is not measured by the nanosecond. */
export function randomStream(seed: number, lane = 0): () => number {
  let state = startState(seed, lane);
  return () => {
    state = nextState(state);
    return (state >>> 0) / 2 ** 32;
  };
}
