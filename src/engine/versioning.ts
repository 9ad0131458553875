/**
 * Whether commits keep old versions for snapshots. Always; but a second build with `false` here
 * shows what the possibility costs those who take none (`npm run bench -- snapshots`).
 */
export const VERSIONING = true;
