export declare const TYPESCRIPTS: readonly string[];
/** The compiler of one version, installed or not: a script for Node.js. */
export declare function compiler(version: string): string;
/** The folder of esbuild's package. */
export declare const esbuild: string;
