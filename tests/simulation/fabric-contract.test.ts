/** The contract of fabrics over the simulated one, with and without times of hardware. */

import { SimulatedFabric } from "../../simulation/fabric/fabric.ts";
import { FARM_2XCX3, FASST_CX3, type Hardware } from "../../simulation/fabric/hardware.ts";
import { testFabricContract } from "../fabric/contract.ts";
import type { FabricMaker } from "../helpers/fabric-maker.ts";

function simulatedMaker(name: string, hardware?: Hardware): FabricMaker {
  return {
    name,
    async make({ nodes, clients = 1, clientConfigurationId = 1 }) {
      const model = hardware === undefined ? {} : { hardware };
      const fabric = new SimulatedFabric({ seed: 1, ...model });
      const made = nodes.map((node, self) =>
        fabric.endpoint({ configurationId: 1, ...node, self }),
      );
      const others = Array.from({ length: clients }, (_, i) =>
        fabric.endpoint({ self: -1 - i, configurationId: clientConfigurationId }),
      );
      return {
        nodes: made,
        clients: others,
        async until(done) {
          if (!(await fabric.settle(done))) throw new Error(`it does not happen: ${done}`);
        },
        async close() {
          for (const endpoint of [...made, ...others]) await endpoint.close();
        },
      };
    },
  };
}

testFabricContract(simulatedMaker("simulated"));
testFabricContract(simulatedMaker("simulated, FaSST's machines", FASST_CX3));
testFabricContract(simulatedMaker("simulated, FaRM's machines", FARM_2XCX3));
