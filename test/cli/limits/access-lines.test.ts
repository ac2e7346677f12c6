import t, { type Test } from 'tap'
import { createAccessLines } from '../../../src/cli/limits/access-lines.ts'
import { loadConfig } from '../../../src/config/load/load.ts'
import { textFolder } from '../../support/config-files.ts'

const reader = (t: Test) => createAccessLines(loadConfig(textFolder(t.after), {}))

const own = (fields: object) =>
  JSON.stringify({
    time: '2026-11-21T08:00:00.000Z',
    route: 'login',
    method: 'POST',
    address: '192.0.2.1',
    status: 200,
    ms: 1,
    ...fields,
    msg: 'request'
  })

t.test('a line whose time no calendar has is broken', t => {
  const lines = reader(t)
  t.match(lines.read(own({})), { endedAt: Date.UTC(2026, 10, 21, 8) })
  const broken = [{ time: 1767225600000000000 }, { time: -1e300 }, { ms: 1e300 }, { time: 'now' }]
  for (const fields of broken) t.equal(lines.read(own(fields)), undefined)
  t.equal(lines.counts.broken, broken.length)
  t.end()
})

const combined = (request: string) =>
  `192.0.2.1 - - [21/Nov/2026:08:00:00 +0000] "${request}" 404 12 "-" "Mozilla/5.0"`

t.test('requests of Combined Log Format, with and without a protocol', t => {
  const lines = reader(t)
  for (const request of ['GET /x HTTP/1.1', 'GET /x', 'GET /x\\"y HTTP/1.1', 'GET /x y HTTP/1.1']) {
    t.match(lines.read(combined(request)), { method: 'GET', route: 'unknown' }, request)
  }
  for (const request of ['-', 'GET', 'GET  HTTP/1.1']) {
    t.equal(lines.read(combined(request)), undefined, request)
  }
  t.equal(lines.counts.broken, 3)
  t.end()
})

t.test('the longest line is read in linear time, whatever it lacks', t => {
  const lines = reader(t)
  const long = 'a'.repeat(1024 * 1024)
  const start = combined('GET /').slice(0, -'" 404 12 "-" "Mozilla/5.0"'.length)
  const broken = [
    start + long,
    `${start}${long} ${long}`,
    `${start}${long}" 2000`,
    start.repeat(10_000),
    long,
    `${long} - `,
    `${long} - ${long} [`,
    `a - ${'a ['.repeat(300_000)}`
  ]
  for (const line of broken) t.equal(lines.read(line), undefined)
  t.equal(lines.counts.broken, broken.length)
  t.end()
})
