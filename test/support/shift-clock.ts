/** A preload (`--import`): shifts this process's wall clock by CLOCK_SHIFT_MS; monotonic clocks stay. */
const { now } = Date
const shifted = () => now() + Number(process.env['CLOCK_SHIFT_MS'])

class ShiftedDate extends Date {
  constructor(...given: unknown[]) {
    super(...((given.length === 0 ? [shifted()] : given) as [number]))
  }

  static override now = shifted
}

Object.assign(globalThis, { Date: ShiftedDate })
