// A process that sends back what it gets: over Situ's fabric, and over bare sockets.
import { type AddressInfo, createServer } from "node:net";
import { openTcp } from "../../src/fabric/tcp/endpoint.ts";
import type { TcpOptions } from "../../src/fabric/tcp/tcp-options.ts";
import { serve } from "../harness/process-side.ts";
import { echoCluster, echoSecret } from "./messages.ts";

export interface EchoPorts {
  readonly situ: number;
  readonly authenticated: number;
  readonly bare: number;
}

const options: TcpOptions = {
  self: 0,
  nodes: new Map(),
  configurationId: 1,
  cluster: echoCluster,
  listen: { host: "127.0.0.1", port: 0 },
  service: (incoming) => {
    const { body } = incoming;
    const count = body.left;
    incoming.reply().words(body.views.i32, body.skip(count), count);
  },
};
const situ = await openTcp(options);
const authenticated = await openTcp({ ...options, secret: echoSecret });

const bare = createServer({ noDelay: true }, (socket) => {
  socket.on("error", () => {});
  socket.on("data", (chunk) => socket.write(chunk));
});
await new Promise<void>((resolve) => bare.listen(0, "127.0.0.1", resolve));

serve<"ports", EchoPorts>({
  handle: (_order, answer) =>
    answer({
      situ: situ.address().port,
      authenticated: authenticated.address().port,
      bare: (bare.address() as AddressInfo).port,
    }),
  close: async () => {
    bare.close();
    await situ.close();
    await authenticated.close();
  },
});
