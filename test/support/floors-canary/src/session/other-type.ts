/** Canary: the other half of the cycle of types. */
import type { One } from './one-type.ts'

export interface Other {
  readonly one?: One
}
