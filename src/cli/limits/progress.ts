/** Progress of a long task on a terminal: one line on standard error, removed at the end. */
import type { Output } from '../command.ts'

const everyMs = 100
const width = 30

export interface Progress {
  readonly show: (done: number, lines: number) => void
  readonly end: () => void
}

/** @param whole undefined when the total is unknown */
export function createProgress(whole: number | undefined, output: Output): Progress {
  if (!output.isTTY) return { show: () => {}, end: () => {} }
  let shown = 0
  return {
    show: (done, lines) => {
      const now = performance.now()
      if (now - shown < everyMs) return
      shown = now
      const part = whole === undefined || whole === 0 ? undefined : Math.min(1, done / whole)
      const bar =
        part === undefined
          ? ''
          : `${'█'.repeat(Math.round(part * width)).padEnd(width, '░')} ${String(Math.floor(part * 100)).padStart(3)} %  `
      output.write(`\r\u001b[K${bar}${lines} lines`)
    },
    end: () => {
      output.write('\r\u001b[K')
    }
  }
}
