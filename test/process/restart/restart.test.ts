import t from 'tap'
import { Restart } from '../../../src/process/restart/restart.ts'
import type { Program } from '../../../src/process/restart/successor.ts'
import { Handover } from '../../../src/services/handover.ts'
import { createLogger } from '../../../src/services/services.ts'
import { isAlive } from '../../support/restartable.ts'
import { until } from '../../support/until.ts'

interface Setup {
  readonly words: Program['words']
  readonly isStopping?: () => boolean
}

function open({ words, isStopping = () => false }: Setup) {
  let replaced = 0
  const handover = new Handover()
  const { restart } = new Restart({
    program: { executable: process.execPath, words, folder: process.cwd(), refusal: undefined },
    listeners: () => [],
    handover,
    isStopping,
    onReplaced: () => replaced++,
    log: createLogger({ level: 'silent', format: 'json' })
  })
  return { restart, handover, replaced: () => replaced }
}

/** A program that does as a new gateway does. */
const successor = `
  process.on('message', ({ kind }) => kind === 'begin' && process.send({ kind: 'ready' }))
  process.send({ kind: 'prepared' })
`

t.test('a process that the system does not start leaves this one as it was', async t => {
  const tooLong = 'x'.repeat(1_000_000)
  const { restart, handover, replaced } = open({ words: [tooLong] })
  t.match(await restart(), { outcome: 'failed', reason: /E2BIG/ })
  t.match(await restart(), { outcome: 'failed', reason: /E2BIG/ }, 'and may be tried again')
  t.equal(handover.isAlone, true)
  t.equal(replaced(), 0)
})

t.test('told to stop before the new process takes over, the old one keeps its place', async t => {
  let asked = 0
  const { restart, replaced } = open({
    words: ['-e', successor],
    isStopping: () => ++asked > 1
  })
  t.match(await restart(), { outcome: 'failed', reason: 'the gateway is stopping' })
  t.equal(replaced(), 0)
})

t.test('told to stop while the new process takes over, both end', async t => {
  let asked = 0
  const { restart, replaced } = open({
    words: ['-e', successor],
    isStopping: () => ++asked > 2
  })
  const outcome = await restart()
  t.match(outcome, { outcome: 'restarted' })
  t.equal(replaced(), 1)
  const pid = 'pid' in outcome ? outcome.pid : 0
  await until('the new process has ended', () => !isAlive(pid))
})
