/** Errors that the compiler tells: what is wrong stands in the name of the type that is expected. */

declare const message: unique symbol;

/** What nobody has. Whoever passes something else is told this name, and the message in it. */
export interface Invalid<Message extends string> {
  readonly [message]: Message;
}
