import { afterTurn } from "../../runtime/clock.ts";
import type { SituError } from "../../runtime/errors.ts";
import type { Request } from "../fabric.ts";

/**
 * Requests that have failed before they left. They are told when the turn is over: nobody is called
 * back by a `send` that has not returned yet.
 */
export class Endings {
  #failed: { request: Request; why: SituError }[] = [];
  readonly #tell = (): void => this.tell();

  fail(request: Request, why: SituError): void {
    if (this.#failed.length === 0) afterTurn(this.#tell);
    this.#failed.push({ request, why });
  }

  tell(): void {
    const failed = this.#failed;
    this.#failed = [];
    for (const { request, why } of failed) request.failed(why);
  }
}
