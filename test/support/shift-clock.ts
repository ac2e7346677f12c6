/** A preload (`--import`): shifts this process's wall clock by CLOCK_SHIFT_MS; monotonic clocks stay. */
const shift = Number(process.env['CLOCK_SHIFT_MS'] ?? 0)
const { now } = Date

class ShiftedDate extends Date {
  constructor(...given: unknown[]) {
    super(...((given.length === 0 ? [now() + shift] : given) as [number]))
  }

  static override now = () => now() + shift
}

Object.assign(globalThis, { Date: ShiftedDate })
