// What the nodes of the suite's clusters are started with: the workloads' transactions, for those that call them.
export * from "../../../workloads/objects/procedures.ts";
export * from "../../../workloads/smallbank/procedures.ts";
