/** Canary: an import upward of a type alone, which the gate must refuse. */
import type { App } from '../app/app.ts'

export const nameOf = ({ name }: App): string => name
