/**
 * Kinds of numbers that must not be mixed: nodes, slots, epochs, configurations. The kind exists for
 * the compiler only. A plain number can become any kind, so indexes and arithmetic need no casts, but
 * one kind never passes for another. Numbers that come from outside (a message, a file) go through
 * the checking function that stands beside each kind.
 */

declare const kind: unique symbol;

export type NumberOf<Kind extends string> = number & { readonly [kind]?: Kind };
