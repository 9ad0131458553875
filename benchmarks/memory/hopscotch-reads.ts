// Counts the contiguous reads that one lookup needs; a bucket and its neighbour are one read.

export function readsPerLookup(occupancy: number): number {
  throw new Error(`reads per lookup at occupancy ${occupancy}: not yet wired`);
}
