// One line on stderr that is overwritten: stdout stays clean for the report.

export interface Progress {
  show(text: string): void;
  clear(): void;
}

export function createProgress(stream: NodeJS.WriteStream = process.stderr): Progress {
  // A log file gets nothing: hundreds of half lines help nobody there.
  if (!stream.isTTY) return { show: () => {}, clear: () => {} };
  return {
    show(text) {
      stream.write(`\r\x1b[K${text.slice(0, Math.max(20, stream.columns - 1))}`);
    },
    clear() {
      stream.write("\r\x1b[K");
    },
  };
}
