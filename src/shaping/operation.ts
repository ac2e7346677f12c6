/** What operations of shapes are, and what they are given. */
import type { Json, JsonRecord } from '../json/values.ts'
import type { User } from './own-code.d.ts'

/** The request that a shape is used for. */
export interface ShapeUse {
  /** Path and query as the console sent them. */
  readonly target: string
  /** Name of the route. */
  readonly route: string
  readonly user?: User | undefined
}

export type Operation = (value: Json, use: ShapeUse) => Json
/** Puts data into the console's success envelope. */
export type Wrap = (data: Json, extra?: JsonRecord, placement?: 'data' | 'flat') => Json
