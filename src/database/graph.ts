/** A graph of objects and typed edges, as its users see it: what `graph` returns. */

import type { Pointer } from "../memory/pointer.ts";
import type { AssociationOptions, ObjectKinds } from "../tables/graph/definition.ts";
import type { DeletedObject, EdgesOfDeleted } from "../tables/graph/operations.ts";
import type { Fields, InputRowOf, RowOf, Simplify } from "../tables/table.ts";
import type {
  AsyncTransaction,
  InteractiveTransaction,
  LocalTransaction,
} from "./async-transaction.ts";
import type { RemoteSnapshot, Snapshot } from "./snapshot.ts";
import type { Transaction } from "./transaction.ts";

/** What `graph` takes. */
export interface GraphOptions<O extends ObjectKinds, A> {
  /** Tells graphs of one store apart. Default: "graph". */
  readonly name?: string;
  /** The kinds of objects, with their fields. */
  readonly objects: O;
  /** The types of associations between them. */
  readonly associations: A &
    Readonly<Record<string, AssociationOptions<NoInfer<keyof O & string>>>>;
}

type InverseNames<A> = {
  [Name in keyof A]: A[Name] extends { readonly inverse: infer Inverse extends string }
    ? Inverse
    : never;
}[keyof A];

/** The names of all associations, inverses included. */
export type AssociationName<A> = (keyof A & string) | InverseNames<A>;

type DeclarationOf<A, T> = T extends keyof A
  ? A[T]
  : {
      [Name in keyof A]: A[Name] extends { readonly inverse: T } ? A[Name] : never;
    }[keyof A];
type DataFields<A, T> =
  DeclarationOf<A, T> extends { readonly data: infer F extends Fields } ? F : Record<never, never>;

/** The data of an edge, as it is read. */
export type EdgeData<A, T> = RowOf<DataFields<A, T>>;
/** What `assocAdd` takes behind the ends of an edge: its time, and its data if it has any. */
export type EdgeInput<A, T> = keyof DataFields<A, T> extends never
  ? [time?: number | undefined]
  : [time: number | undefined, data: InputRowOf<DataFields<A, T>>];
/** The associations that an edge can be changed to: those with the same data. */
type SameData<A, T> = {
  [Name in AssociationName<A>]: EdgeData<A, T> extends EdgeData<A, Name> ? Name : never;
}[AssociationName<A>];

/** An edge, as it is read. */
export interface Edge<Data = unknown> {
  /** The object that it leads to. */
  readonly id2: number;
  /** Its time: of two edges of a list, the later one comes first. */
  readonly time: number;
  readonly data: Data;
}

/** An object of whatever kind, as it is read. */
export type ObjectOf<O extends ObjectKinds> = {
  [Kind in keyof O & string]: {
    readonly id: number;
    readonly kind: Kind;
    readonly data: RowOf<O[Kind]>;
  };
}[keyof O & string];

/** What `objUpdate` takes: fields that are undefined stay as they are. */
export type ObjectChanges<F extends Fields> = Simplify<{
  [Name in keyof InputRowOf<F>]?: InputRowOf<F>[Name] | undefined;
}>;

/** What `objAdd` takes besides an object's data. */
export interface ObjAddOptions {
  /** The id, from 1 on. Default: a number that no other object of the graph has had. */
  readonly id?: number;
}

/** What `objDelete` takes. */
export interface ObjDeleteOptions {
  /**
   * What becomes of the edges from the object: they are removed with their inverses, which is the default, or stay.
   * Edges to it that have no inverse stay in any case.
   */
  readonly edges?: EdgesOfDeleted;
}

/** Reading a graph. */
export interface GraphReads<O extends ObjectKinds, A> {
  /** Reads an object; `undefined` if there is none of this kind with this id. */
  objGet<K extends keyof O & string>(kind: K, id: number): RowOf<O[K]> | undefined;
  /** Reads an object of whatever kind. */
  objGet(id: number): ObjectOf<O> | undefined;
  /** Reads the edge to one object; `undefined` if there is none. */
  assocGet<T extends AssociationName<A>>(
    id1: number,
    type: T,
    id2: number,
  ): Edge<EdgeData<A, T>> | undefined;
  /** Reads the edges to several objects, newest first; those that do not exist are left out. */
  assocGet<T extends AssociationName<A>>(
    id1: number,
    type: T,
    ids: Iterable<number>,
  ): Edge<EdgeData<A, T>>[];
  /** The number of edges of a type that an object has. */
  assocCount<T extends AssociationName<A>>(id1: number, type: T): number;
  /** The edges from a position on, newest first: up to `limit` of them, which is 10,000 at most. */
  assocRange<T extends AssociationName<A>>(
    id1: number,
    type: T,
    position: number,
    limit: number,
  ): Edge<EdgeData<A, T>>[];
  /** The edges with times from `high` down to `low`, both included, newest first. */
  assocTimeRange<T extends AssociationName<A>>(
    id1: number,
    type: T,
    high: number,
    low: number,
    limit: number,
  ): Edge<EdgeData<A, T>>[];
}

/** Reading and changing a graph inside of a transaction. */
export interface GraphTransaction<O extends ObjectKinds, A> extends GraphReads<O, A> {
  /** Adds an object and returns its id. Fails with SITU_EXISTS if the id is in use. */
  objAdd<K extends keyof O & string>(
    kind: K,
    data: InputRowOf<O[K]>,
    options?: ObjAddOptions,
  ): number;
  /** Changes fields of an object. Fails with SITU_MISSING if there is none. */
  objUpdate<K extends keyof O & string>(kind: K, id: number, changes: ObjectChanges<O[K]>): void;
  /**
   * Deletes an object and its edges. Fails with SITU_TOO_LARGE if it has more than 1,000: `objDelete` of the graph
   * takes several transactions for them.
   */
  objDelete<K extends keyof O & string>(
    kind: K,
    id: number,
    options?: ObjDeleteOptions,
  ): DeletedObject;
  /**
   * Adds an edge, or replaces the one that leads to the same object. Its time, in milliseconds, is that of the call
   * if it is left out. Returns whether the edge is new.
   */
  assocAdd<T extends AssociationName<A>>(
    id1: number,
    type: T,
    id2: number,
    ...edge: EdgeInput<A, T>
  ): boolean;
  /** Removes an edge. Returns whether there was one. */
  assocDelete<T extends AssociationName<A>>(id1: number, type: T, id2: number): boolean;
  /** Makes an edge one of another type, with its time and data. Returns whether there was one. */
  assocChangeType<T extends AssociationName<A>>(
    id1: number,
    type: T,
    id2: number,
    newType: SameData<A, T>,
  ): boolean;
}

/** The same inside of a transaction of `transact` or `begin`. */
export interface AsyncGraphTransaction<O extends ObjectKinds, A> {
  /** Reads an object; `undefined` if there is none of this kind with this id. */
  objGet<K extends keyof O & string>(kind: K, id: number): Promise<RowOf<O[K]> | undefined>;
  /** Reads an object of whatever kind. */
  objGet(id: number): Promise<ObjectOf<O> | undefined>;
  /** Reads the edge to one object; `undefined` if there is none. */
  assocGet<T extends AssociationName<A>>(
    id1: number,
    type: T,
    id2: number,
  ): Promise<Edge<EdgeData<A, T>> | undefined>;
  /** Reads the edges to several objects, newest first; those that do not exist are left out. */
  assocGet<T extends AssociationName<A>>(
    id1: number,
    type: T,
    ids: Iterable<number>,
  ): Promise<Edge<EdgeData<A, T>>[]>;
  /** The number of edges of a type that an object has. */
  assocCount<T extends AssociationName<A>>(id1: number, type: T): Promise<number>;
  /** The edges from a position on, newest first. */
  assocRange<T extends AssociationName<A>>(
    id1: number,
    type: T,
    position: number,
    limit: number,
  ): Promise<Edge<EdgeData<A, T>>[]>;
  /** The edges with times from `high` down to `low`, both included, newest first. */
  assocTimeRange<T extends AssociationName<A>>(
    id1: number,
    type: T,
    high: number,
    low: number,
    limit: number,
  ): Promise<Edge<EdgeData<A, T>>[]>;
  /** Adds an object and returns its id. */
  objAdd<K extends keyof O & string>(
    kind: K,
    data: InputRowOf<O[K]>,
    options?: ObjAddOptions,
  ): Promise<number>;
  /** Changes fields of an object. */
  objUpdate<K extends keyof O & string>(
    kind: K,
    id: number,
    changes: ObjectChanges<O[K]>,
  ): Promise<void>;
  /** Deletes an object and its edges, up to 1,000. */
  objDelete<K extends keyof O & string>(
    kind: K,
    id: number,
    options?: ObjDeleteOptions,
  ): Promise<DeletedObject>;
  /** Adds an edge, or replaces the one that leads to the same object. Returns whether it is new. */
  assocAdd<T extends AssociationName<A>>(
    id1: number,
    type: T,
    id2: number,
    ...edge: EdgeInput<A, T>
  ): Promise<boolean>;
  /** Removes an edge. Returns whether there was one. */
  assocDelete<T extends AssociationName<A>>(id1: number, type: T, id2: number): Promise<boolean>;
  /** Makes an edge one of another type. Returns whether there was one. */
  assocChangeType<T extends AssociationName<A>>(
    id1: number,
    type: T,
    id2: number,
    newType: SameData<A, T>,
  ): Promise<boolean>;
}

/**
 * A graph in a store. Its reads are lock-free, its changes transactions of one operation; `in` gives the same
 * calls inside of a transaction, beside tables of the store, or on a snapshot.
 */
export interface Graph<O extends ObjectKinds, A>
  extends GraphReads<O, A>,
    Omit<GraphTransaction<O, A>, "objDelete" | keyof GraphReads<O, A>> {
  readonly name: string;
  /**
   * Deletes an object and its edges. It is gone at once; if it has more than 1,000 edges, these are removed in
   * several transactions, and should the process end meanwhile, the next one that opens the graph goes on.
   */
  objDelete<K extends keyof O & string>(
    kind: K,
    id: number,
    options?: ObjDeleteOptions,
  ): Promise<DeletedObject>;
  /** The calls inside of a transaction of `transactSync`. */
  in(tx: Transaction): GraphTransaction<O, A>;
  /** The calls inside of a transaction of `transact` or `begin`. */
  in(tx: LocalTransaction | InteractiveTransaction<LocalTransaction>): AsyncGraphTransaction<O, A>;
  /** The reading calls on a snapshot. */
  in(snapshot: Snapshot): GraphReads<O, A>;
  /** The ids of all objects, in no particular order; all are of one state. */
  ids(): Iterable<number>;
  /**
   * A fat pointer to an object, for `readBy`; `undefined` if there is none. It names the object until that is
   * deleted, or moves because it has grown.
   */
  pointerTo(id: number): Pointer | undefined;
  /** Reads the object that a pointer leads to: one read, without a lookup. SITU_FREED if it is not there any more. */
  readBy(pointer: Pointer): ObjectOf<O> | undefined;
}

/** Reading a graph of a cluster. */
export type AsyncGraphReads<O extends ObjectKinds, A> = Pick<
  AsyncGraphTransaction<O, A>,
  keyof GraphReads<O, A>
>;

/**
 * A graph on a cluster. Reads look at one row, by verb where the protocol has verbs, and are linearizable; changes are
 * transactions of one operation. `objDelete` takes several for an object with more than 1,000 edges.
 */
export interface RemoteGraph<O extends ObjectKinds, A> extends AsyncGraphTransaction<O, A> {
  readonly name: string;
  /** The calls inside of a transaction of `transact` or `begin`. */
  in(tx: AsyncTransaction | InteractiveTransaction): AsyncGraphTransaction<O, A>;
  /** The reading calls on a snapshot of the cluster. */
  in(snapshot: RemoteSnapshot): AsyncGraphReads<O, A>;
  /** The ids of all objects, in no particular order. */
  ids(): AsyncIterable<number>;
}
