/** Log lines: none is torn, lost or out of order on the way to standard output, up to the last. */
import { spawn, spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import type { Readable } from 'node:stream'
import t from 'tap'
import { until } from '../support/until.ts'

const logger = import.meta.resolve('../../src/services/logger.ts')

/** A program that logs by the gateway's logger. */
const program = (body: string, format = 'json') => [
  '--expose-gc',
  '--input-type=module',
  '-e',
  `import { createLogger } from '${logger}'
   const log = createLogger({ level: 'info', format: '${format}' })
   ${body}`
]

/** Lines of many lengths, some of them longer than what is written at once. */
const numbered = (count: number, end: string) =>
  program(`
    for (let number = 0; number < ${count}; number++) {
      const text = 'ä€😀\\u202e\\u009b'.repeat(number % 500 === 499 ? 30_000 : number % 40)
      log.info({ number, text })
    }
    ${end}
  `)

/** What a stream has said so far. */
function collect(stream: Readable): () => string {
  let text = ''
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  return () => text
}

const isWhole = (text: string, count: number) => {
  const lines = text.trimEnd().split('\n')
  return (
    lines.length === count &&
    lines.every((line, index) => (JSON.parse(line) as { number: number }).number === index)
  )
}

for (const end of ['', 'process.exit()', 'setImmediate(() => process.exit())']) {
  t.test(`every line comes, in order and whole: ${end || 'nothing left to do'}`, t => {
    const options = { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 } as const
    const { stdout, status } = spawnSync(process.execPath, numbered(2000, end), options)
    t.equal(status, 0)
    t.notMatch(stdout, /[\u202e\u009b]/, 'nothing that a terminal obeys')
    t.ok(isWhole(stdout, 2000))
    t.end()
  })
}

t.test('a line for people shows what a terminal would obey', t => {
  const words = program("log.info({ user: 'a\\u009b31m\\u202eb' })", 'pretty')
  const { stdout } = spawnSync(process.execPath, words, { encoding: 'utf8' })
  t.match(stdout, '"a\\u009b31m\\u202eb"')
  t.end()
})

t.test('every line comes where the reader is slow until the end of the process', async t => {
  const { stdout } = spawn(
    process.execPath,
    numbered(1500, 'setTimeout(() => process.exit(), 200)'),
    { stdio: ['ignore', 'pipe', 'inherit'] }
  )
  const output = collect(stdout)
  stdout.on('data', () => {
    stdout.pause()
    setTimeout(() => stdout.resume(), 5)
  })
  await until('its output has ended', () => stdout.readableEnded)
  t.ok(isWhole(output(), 1500))
})

/** Logs 40 MB while nothing reads, says that it holds far less, and goes on until its input ends. */
const flood = program(`
  const line = 'x'.repeat(9000)
  let left = 4400
  const more = () => {
    for (let count = 0; count < 10; count++) log.info(line)
    if ((left -= 10) > 0) setImmediate(more)
    else measure()
  }
  more()
  // Memory is freed some time after the collection.
  const measure = () => {
    gc()
    const { arrayBuffers, heapUsed } = process.memoryUsage()
    if (arrayBuffers + heapUsed < 40 * 1024 * 1024) process.stderr.write('bounded')
    else setTimeout(measure, 10)
  }
  process.stdin.resume().once('end', () => {
    log.info('last')
    process.exit()
  })
`)

t.test('a reader that stood still costs lines and bounded memory, and is told', async t => {
  const child = spawn(process.execPath, flood, { stdio: 'pipe' })
  t.teardown(() => child.kill('SIGKILL'))
  const said = collect(child.stderr)
  await until('all is logged, and little is held', () => said() === 'bounded')
  const output = collect(child.stdout)
  await until('the loss is told', () => output().includes('"event":"log.dropped"'))
  child.stdin.end()
  await until('the next lines come', () => output().includes('"msg":"last"}\n'))
  const lines = output().trimEnd().split('\n')
  const dropped = /"lines":(\d+)/.exec(output())?.[1]
  t.equal(lines.length - 2 + Number(dropped), 4400)
  t.doesNotThrow(() => lines.map(line => JSON.parse(line) as unknown))
})

/** Logs more than a pipe takes, once nothing reads it any more, and says that it goes on. */
const goingOn = program(`
  process.stdin.resume().once('end', () => {
    for (let line = 0; line < 1000; line++) log.info('x'.repeat(5000))
    log.flush()
    process.stderr.write('goes on')
    log.info('last')
    process.exit()
  })
`)

for (const fault of ['has no reader', 'has a reader that stands still', 'is a full disk']) {
  t.test(`a fatal line, and the end, wait for no output that ${fault}`, async t => {
    const full = fault === 'is a full disk' ? openSync('/dev/full', 'w') : undefined
    const child = spawn(process.execPath, goingOn, { stdio: ['pipe', full ?? 'pipe', 'pipe'] })
    t.teardown(() => child.kill('SIGKILL'))
    if (full !== undefined) closeSync(full)
    if (fault === 'has no reader') child.stdout?.destroy()
    const said = collect(child.stderr as Readable)
    child.stdin?.end()
    await until('the process has ended', () => child.exitCode !== null)
    t.same([child.exitCode, said()], [0, 'goes on'])
  })
}
