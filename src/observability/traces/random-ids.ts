/**
 * Random ids of traces and spans, from a pool.
 * perf: below 0.16 µs for both ids of a request; with `randomBytes` for each of them 2.8 µs.
 */
import { randomFillSync } from 'node:crypto'

/** 16 for the trace, 8 for the span. */
const bytes = 24
const pool = Buffer.allocUnsafeSlow(bytes * 340)
let next = pool.length

/** @returns 48 hexadecimal digits: a trace's id, then a span's */
export function takeIds(): string {
  if (next === pool.length) {
    randomFillSync(pool)
    next = 0
  }
  const from = next
  next += bytes
  return pool.toString('hex', from, next)
}
