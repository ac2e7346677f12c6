/** What operations of shapes are, and what they are given. */
import type { Json, JsonRecord } from '../json/values.ts'
import type { User } from './own-code.d.ts'

/** The request as the console sent it. */
export interface Sent {
  /** Path and query. */
  readonly target: string
  /** Where it is small enough to be collected. */
  readonly body?: Buffer | undefined
}

/** What a shape is used for. */
export interface ShapeUse extends Sent {
  /** Name of the route. */
  readonly route: string
  readonly user?: User | undefined
}

export type Operation = (value: Json, use: ShapeUse) => Json
/** Puts data into the console's success envelope. */
export type Wrap = (data: Json, extra?: JsonRecord, placement?: 'data' | 'flat') => Json
