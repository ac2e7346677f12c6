/** The time in log lines. */
import t from 'tap'
import { isoTime } from '../src/log-output.ts'

t.test('a line’s time is the date as ISO 8601 has it, across seconds, days and years, and when the clock is set back', async t => {
  let time = 0
  const written = isoTime(() => time)
  const moments = [0, 1, 10, 999, 1000, 59_999, 60_000, Date.UTC(2026, 11, 31, 23, 59, 59, 999), Date.UTC(2027, 0, 1), Date.UTC(2028, 1, 29, 12, 0, 0, 7), 5]
  for (const moment of [...moments, ...moments.toReversed()]) {
    time = moment
    t.equal(written(), `,"time":"${new Date(moment).toISOString()}"`)
  }
})
