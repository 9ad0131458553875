/** Types of fresh.mjs, for the tests. */

export declare function isInstalled(folder: string, options?: { readonly abi?: string }): boolean;
export declare function noteAbi(folder: string, abi: string): void;
export declare function isBuilt(root: string): boolean;
export declare function buildOnce(root: string, build: () => void): void;
export declare function removeOrphans(root: string): void;
