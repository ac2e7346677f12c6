/** Log lines: their time, and that none is lost on the way to standard output. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { isoTime } from '../../src/observability/log.ts'
import { escapeInJson, printable, showInJson } from '../../src/observability/unprintable.ts'

t.test(
  'a line’s time is the date as ISO 8601 has it, across seconds, days and years, and when the clock is set back',
  async t => {
    let time = 0
    const written = isoTime(() => time)
    const moments = [
      0,
      1,
      10,
      999,
      1000,
      59_999,
      60_000,
      Date.UTC(2026, 11, 31, 23, 59, 59, 999),
      Date.UTC(2027, 0, 1),
      Date.UTC(2028, 1, 29, 12, 0, 0, 7),
      5
    ]
    for (const moment of [...moments, ...moments.toReversed()]) {
      time = moment
      t.equal(written(), `,"time":"${new Date(moment).toISOString()}"`)
    }
  }
)

t.test('what a terminal would obey is escaped in lines, and means the same', t => {
  const name = 'a\u009b31m\u202eb\u2066é'
  const escaped = escapeInJson(JSON.stringify({ name }))
  t.equal(escaped, '{"name":"a\\u009b31m\\u202eb\\u2066é"}')
  t.same(JSON.parse(escaped), { name })
  t.same(JSON.parse(showInJson(JSON.stringify({ name }))), { name: 'a\\u009b31m\\u202eb\\u2066é' })
  t.equal(printable('a\u001b[31m\u202e'), 'a\\u001b[31m\\u202e')
  t.end()
})

for (const end of ['nothing left to do', 'process.exit()']) {
  t.test(`every line reaches standard output, in order and whole: ${end}`, async t => {
    const { stdout, status } = spawnSync(
      process.execPath,
      [fileURLToPath(import.meta.resolve('../support/log-lines.ts')), end],
      { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }
    )
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as { number: number; text: string })
    t.equal(status, 0)
    t.notMatch(stdout, '\u202e')
    t.same(
      lines.map(({ number }) => number),
      Array.from({ length: 2000 }, (_, number) => number)
    )
    t.ok(
      lines.every(
        ({ number, text }) =>
          text === 'ä€😀\u202e'.repeat(number % 500 === 499 ? 30_000 : number % 40)
      )
    )
  })
}
