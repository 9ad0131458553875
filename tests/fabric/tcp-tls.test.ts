import { afterEach, describe, expect, test } from "vitest";
import type { TcpEndpoint } from "../../src/fabric/tcp/endpoint.ts";
import type { TlsOptions } from "../../src/fabric/tcp/tcp-options.ts";
import { OTHER_TLS, TLS } from "../helpers/fabric-certificates.ts";
import { RawConnection } from "../helpers/fabric-raw.ts";
import { echo, TestService } from "../helpers/fabric-requests.ts";
import { eventually, openClient, openNode, tcpMaker } from "../helpers/fabric-tcp.ts";
import { testFabricContract } from "./contract.ts";

testFabricContract(tcpMaker("tcp with TLS", { tls: TLS }));

describe("TLS", () => {
  const endpoints: TcpEndpoint[] = [];

  afterEach(async () => {
    await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.close()));
  });

  const start = async (tls?: TlsOptions): Promise<TcpEndpoint> => {
    const secure = tls === undefined ? {} : { tls };
    const node = await openNode(0, {
      service: new TestService().serve,
      handshakeTimeoutMs: 500,
      ...secure,
    });
    endpoints.push(node);
    return node;
  };

  const ask = async (node: TcpEndpoint, tls?: TlsOptions): Promise<string[]> => {
    const client = await openClient([node], tls === undefined ? {} : { tls });
    endpoints.push(client);
    const request = echo(1);
    client.send(0, request);
    await eventually(() => request.isOver);
    return request.ends;
  };

  test("a node whose certificate is not trusted", async () => {
    expect(await ask(await start(OTHER_TLS), TLS)).toEqual(["SITU_SECRET"]);
  });

  test("clients need a certificate where the node asks for one", async () => {
    const node = await start({ ...TLS, requestCert: true });
    expect(await ask(node, TLS)).toEqual(["replied"]);
    expect(await ask(node, { ...OTHER_TLS, ca: TLS.ca ?? "" })).toEqual(["SITU_SECRET"]);
    expect(await ask(node, { ca: TLS.ca ?? "" })).toEqual(["SITU_SECRET"]);
    expect(node.counters.connections).toBe(1);
    expect(node.counters.refused).toEqual({ SITU_SECRET: 2 });
  });

  test("one end with TLS, the other without", async () => {
    expect(await ask(await start(), TLS)).toEqual(["SITU_PROTOCOL"]);
    const node = await start(TLS);
    // OpenSSL hangs up without a word; so this end cannot tell why.
    expect(await ask(node)).toEqual(["SITU_LOST"]);
    expect(node.counters.refused.SITU_PROTOCOL).toBeGreaterThan(0);
  });

  test("garbage, and silence, in place of a TLS handshake", async () => {
    const node = await start(TLS);
    const silent = new RawConnection(node.address().port);
    const garbage = new RawConnection(node.address().port);
    garbage.socket.write(Buffer.alloc(500, 7));
    await eventually(() => garbage.isClosed && silent.isClosed);
    expect(node.counters.refused.SITU_PROTOCOL).toBeGreaterThan(1);
    expect(await ask(node, TLS)).toEqual(["replied"]);
  });
});
