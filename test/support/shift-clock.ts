/**
 * A preload (`--import`): shifts this process's wall clock by CLOCK_SHIFT_MS, or by what the file CLOCK_SHIFT_FILE
 * says at the moment; monotonic clocks stay.
 */
import { readFileSync } from 'node:fs'

const { CLOCK_SHIFT_MS = 0, CLOCK_SHIFT_FILE } = process.env
const shift = () =>
  Number(CLOCK_SHIFT_FILE === undefined ? CLOCK_SHIFT_MS : readFileSync(CLOCK_SHIFT_FILE, 'utf8'))
const { now } = Date

class ShiftedDate extends Date {
  constructor(...given: unknown[]) {
    super(...((given.length === 0 ? [now() + shift()] : given) as [number]))
  }

  static override now = () => now() + shift()
}

Object.assign(globalThis, { Date: ShiftedDate })
