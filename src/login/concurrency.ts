/** Bounds how much of a costly work runs at once. */
import { GatewayError } from '../errors/errors.ts'

/**
 * @returns runs each work when fewer than `maxRunning` others run; throws GatewayError `overloaded`
 *   where `maxWaiting` wait already
 */
export function createConcurrency(maxRunning: number, maxWaiting: number) {
  let running = 0
  const waiting: Array<() => void> = []

  return async function run<T>(work: () => Promise<T>): Promise<T> {
    if (running >= maxRunning) {
      if (waiting.length >= maxWaiting) throw new GatewayError('overloaded', { retryAfter: 2 })
      await new Promise<void>(resolve => {
        waiting.push(resolve)
      })
    }
    running++
    try {
      return await work()
    } finally {
      running--
      waiting.shift()?.()
    }
  }
}
