/** Buffers for frames that go round: who has sent what was in one gives it back for others. */

import { FrameWriter } from "../frames.ts";

const SPARE_BUFFERS = 16;
/** Larger buffers are not kept: one long frame must not cost memory for good. */
const SPARE_BYTES = 256 * 1024;

export class SpareFrames {
  readonly #spare: FrameWriter[] = [];

  take(): FrameWriter {
    return this.#spare.pop() ?? new FrameWriter();
  }

  giveBack(frames: FrameWriter): void {
    frames.clear();
    if (this.#spare.length < SPARE_BUFFERS && frames.out.views.u8.length <= SPARE_BYTES) {
      this.#spare.push(frames);
    }
  }
}
