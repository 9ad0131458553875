/**
 * What a change of a row means to the successor of its table: nothing, because the copying has not come
 * near its place; that it is removed there, but not added; or that it is kept in step.
 */
export type RowMode = typeof IGNORED | typeof ANNOUNCED | typeof FOLLOWED;
export const IGNORED = 0;
export const ANNOUNCED = 1;
export const FOLLOWED = 2;
