/**
 * Byte arrays that a caller hands over. Whether something is one, and how long it is, is asked of
 * the object's internal slots and not of its properties: a subclass, a property `length` or a proxy
 * can make those say anything, and can run code of the caller's in the middle of an operation.
 */

const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;

function getterOf(name: string | symbol): () => unknown {
  return Object.getOwnPropertyDescriptor(typedArray, name)!.get!;
}

const nameOf = getterOf(Symbol.toStringTag);
const lengthIn = getterOf("length");
const NOTHING = new Uint8Array(0);

/** Also for one of another realm, such as a `vm` context, and for a Buffer. */
export function isBytes(value: unknown): value is Uint8Array {
  return Reflect.apply(nameOf, value, []) === "Uint8Array";
}

/** 0 for bytes whose buffer is gone: `isGone` tells. */
export function byteLength(bytes: Uint8Array): number {
  return Reflect.apply(lengthIn, bytes, []) as number;
}

/** Whether the buffer was transferred to somebody else, or has shrunk below these bytes. */
export function isGone(bytes: Uint8Array): boolean {
  if (byteLength(bytes) > 0) return false;
  try {
    NOTHING.set(bytes);
    return false;
  } catch {
    return true;
  }
}
