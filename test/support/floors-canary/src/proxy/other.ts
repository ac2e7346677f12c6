/** Canary: the other half of the cycle. */
import { one } from './one.ts'

export const other = (): unknown => one
