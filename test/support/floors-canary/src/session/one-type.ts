/** Canary: one half of a cycle of types, which the gate must refuse. */
import type { Other } from './other-type.ts'

export interface One {
  readonly other?: Other
}
