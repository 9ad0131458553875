/** How long calls wait that are meant to succeed: longer than any machine takes. For hangs only. */
export const PATIENCE_MS = 240_000;
