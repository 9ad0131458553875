/** Types of nodes.mjs, for the tests. */

export declare const VERSIONS: readonly string[];
export declare function nodeProgram(version: string): string;
