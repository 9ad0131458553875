/** What can go wrong at a call to a simulated disk, and when. */

export type OperationKind =
  | "create"
  | "open"
  | "write"
  | "read"
  | "sync"
  | "truncate"
  | "list"
  | "makeFolder"
  | "rename"
  | "remove"
  | "syncFolder";

export interface Operation {
  /** Counted from 1. */
  readonly number: number;
  readonly kind: OperationKind;
  /** Of the file or folder. */
  readonly name: string;
}

/**
 * One failure. `short`: a write takes only some of its bytes. `ENOSPC`, `EIO`: the call fails; a sync
 * that fails with any error loses what it was to write. `power`: the call is the last that the disk
 * sees, and what it has done may be lost.
 */
export interface Fault {
  readonly kind: "short" | "ENOSPC" | "EIO" | "power";
  /** The operation from which on it lies in wait; 1, the first, unless told. */
  readonly at?: number;
  /** Only calls of this kind are met. */
  readonly on?: OperationKind;
  /** Only calls for this file or folder are met. */
  readonly name?: string;
  /** How many calls are met; one unless told. */
  readonly times?: number;
}

/** The machine is off: what the program would do next, it does not. */
export class PowerLost extends Error {
  override readonly name = "PowerLost";

  constructor(operation: number) {
    super(`the power was lost at operation ${operation}`);
  }
}

/** Faults that lie in wait for the operations to come. */
export class FaultPlan {
  #faults: { readonly fault: Fault; left: number }[] = [];

  add(fault: Fault): void {
    this.#faults.push({ fault, left: fault.times ?? 1 });
  }

  clear(): void {
    this.#faults = [];
  }

  /** The fault that this operation meets. */
  take({ number, kind, name }: Operation): Fault | undefined {
    for (const waiting of this.#faults) {
      const { fault } = waiting;
      if (number < (fault.at ?? 1) || (fault.on ?? kind) !== kind) continue;
      if ((fault.name ?? name) !== name || (fault.kind === "short" && kind !== "write")) continue;
      waiting.left--;
      this.#faults = this.#faults.filter(({ left }) => left > 0);
      return fault;
    }
    return undefined;
  }
}

const ERRORS = {
  EBADF: [9, "bad file descriptor"],
  EEXIST: [17, "file already exists"],
  EIO: [5, "i/o error"],
  ENOENT: [2, "no such file or directory"],
  ENOSPC: [28, "no space left on device"],
} as const;

export function systemError(
  code: keyof typeof ERRORS,
  call: string,
  name: string,
): NodeJS.ErrnoException {
  const [errno, what] = ERRORS[code];
  const error = new Error(`${code}: ${what}, ${call} '${name}'`);
  return Object.assign(error, { code, errno: -errno, syscall: call, path: name });
}
