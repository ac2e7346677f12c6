/** Canary: one half of a cycle, which the gate must refuse. */
import { other } from './other.ts'

export const one = (): unknown => other
