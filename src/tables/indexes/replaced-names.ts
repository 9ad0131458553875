/**
 * An index that gets another definition is built a second time, beside the first one, which serves until the second one
 * is complete. Meanwhile, and until nobody uses the first one any more, one of the two has a name of its own.
 */

const NEXT = "(next) ";
const FORMER = "(former) ";

/** Of the index that is to take the place of another one. */
export const nextName = (name: string): string => `${NEXT}${name}`;
/** Of the index whose place was taken. */
export const formerName = (name: string): string => `${FORMER}${name}`;

/** Whether it is one of the two: tables do not declare such names. */
export function isForChange(name: string): boolean {
  return name.startsWith(NEXT) || name.startsWith(FORMER);
}

/** The name that users know. */
export function publicName(name: string): string {
  if (name.startsWith(NEXT)) return name.slice(NEXT.length);
  return name.startsWith(FORMER) ? name.slice(FORMER.length) : name;
}
