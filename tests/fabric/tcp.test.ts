import { tcpMaker } from "../helpers/fabric-tcp.ts";
import { testFabricContract } from "./contract.ts";

testFabricContract(tcpMaker("tcp"));
testFabricContract(
  tcpMaker("tcp with a secret", { secret: "open sesame", nodeSecret: "sesame street" }),
);
