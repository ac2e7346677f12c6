/** Log lines: their time, and that none is lost on the way to standard output. */
import { spawn, spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { isoTime } from '../../src/observability/log.ts'
import { escapeInJson, printable, showInJson } from '../../src/observability/unprintable.ts'
import { until } from '../support/until.ts'

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

/** Logs 40 MB while nothing reads, says that it holds far less, and goes on until its input ends. */
const flooding = (url: string) => `
  import { standardOutput } from '${url}'
  process.stdout.isTTY
  const output = standardOutput()
  const line = 'x'.repeat(9000)
  let left = 4400
  const log = () => {
    for (let count = 0; count < 10; count++) output.write(line + '\\n')
    if ((left -= 10) > 0) setImmediate(log)
    else measure()
  }
  log()
  // Buffers are freed some time after the collection.
  const measure = () => {
    gc()
    const held = process.memoryUsage().arrayBuffers
    if (held < 24 * 1024 * 1024) process.stderr.write('bounded')
    else setTimeout(measure, 10)
  }
  process.stdin.resume().once('end', () => {
    output.write('last\\n')
    process.exit()
  })
`

t.test('a reader that stood still costs lines and bounded memory, and is told', async t => {
  const url = import.meta.resolve('../../src/observability/log.ts')
  const words = ['--expose-gc', '--input-type=module', '-e', flooding(url)]
  const child = spawn(process.execPath, words, { stdio: 'pipe' })
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  await until('all is logged, and little is held', () => said === 'bounded')
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  await until('the loss is told', () => output.includes('"event":"log.dropped"'))
  child.stdin.end()
  await until('the process has ended', () => child.exitCode !== null)
  await until('the next lines come', () => output.endsWith('last\n'))
  const dropped = /"bytes":(\d+)/.exec(output)?.[1]
  t.equal(Number(dropped), 4400 * 9001 - output.lastIndexOf('{"level"'))
})

/** Logs more than a pipe takes, once nothing reads it any more, and says that it goes on. */
const logging = (url: string) => `
  import { standardOutput } from '${url}'
  // As the logger does, which makes it a pipe that does not wait for its reader.
  process.stdout.isTTY
  process.stdin.resume().once('end', () => {
    const output = standardOutput()
    for (let line = 0; line < 1000; line++) output.write('x'.repeat(5000) + '\\n')
    output.flushSync()
    process.stderr.write('goes on')
    output.write('last')
    process.exit()
  })
`

for (const fault of ['has no reader', 'has a reader that stands still', 'is a full disk']) {
  t.test(`a fatal line, and the end, wait for no output that ${fault}`, async t => {
    const full = fault === 'is a full disk' ? openSync('/dev/full', 'w') : undefined
    const url = import.meta.resolve('../../src/observability/log.ts')
    const child = spawn(process.execPath, ['--input-type=module', '-e', logging(url)], {
      stdio: ['pipe', full ?? 'pipe', 'pipe']
    })
    t.teardown(() => child.kill('SIGKILL'))
    if (full !== undefined) closeSync(full)
    if (fault === 'has no reader') child.stdout?.destroy()
    let said = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    child.stdin?.end()
    await until('the process has ended', () => child.exitCode !== null)
    t.equal(child.exitCode, 0)
    t.equal(said, 'goes on')
  })
}
