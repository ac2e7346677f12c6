import t from 'tap'
import type { ListenerFd } from '../../../src/process/server/listeners.ts'
import { Restart } from '../../../src/process/restart/restart.ts'
import type { Program } from '../../../src/process/restart/successor.ts'
import { Handover, movableStore } from '../../../src/services/handover.ts'
import { createLogger } from '../../../src/services/services.ts'
import { isAlive } from '../../support/restartable.ts'
import { until } from '../../support/until.ts'

interface Setup {
  readonly words: Program['words']
  readonly isStopping?: () => boolean
  readonly listeners?: readonly ListenerFd[]
}

function open({ words, isStopping = () => false, listeners = [] }: Setup) {
  let replaced = 0
  let kept = 0
  let keepsSecretFile: boolean | undefined
  const handover = new Handover()
  const { restart } = new Restart({
    program: { executable: process.execPath, words, folder: process.cwd(), refusal: undefined },
    listeners: () => listeners,
    handover,
    isStopping,
    onReplaced: keeps => {
      replaced++
      keepsSecretFile = keeps
    },
    onKept: () => kept++,
    log: createLogger({ level: 'silent', format: 'json' })
  })
  return {
    restart,
    handover,
    replaced: () => replaced,
    kept: () => kept,
    keepsSecretFile: () => keepsSecretFile
  }
}

/** A program that does as a new gateway does. */
const successor = `
  process.on('message', ({ kind }) => kind === 'begin' && process.send({ kind: 'ready' }))
  process.send({ kind: 'prepared' })
`

t.test('a process that the system does not start leaves this one as it was', async t => {
  const tooLong = 'x'.repeat(1_000_000)
  const { restart, handover, replaced, kept } = open({ words: [tooLong] })
  t.match(await restart(), { outcome: 'failed', reason: /E2BIG/ })
  t.match(await restart(), { outcome: 'failed', reason: /E2BIG/ }, 'and may be tried again')
  t.equal(handover.isAlone, true)
  t.equal(replaced(), 0)
  t.equal(kept(), 2)
})

t.test('after a failed restart the process before this one still shares the limits', async t => {
  const { restart, handover } = open({ words: ['x'.repeat(1_000_000)] })
  handover.joined('predecessor')
  t.match(await restart(), { outcome: 'failed' })
  t.equal(handover.isAlone, false)
  handover.left('predecessor')
  t.equal(handover.isAlone, true)
})

t.test('told to stop before the new process takes over, the old one keeps its place', async t => {
  let asked = 0
  const { restart, replaced, kept } = open({
    words: ['-e', successor],
    isStopping: () => ++asked > 1
  })
  t.match(await restart(), { outcome: 'failed', reason: 'the gateway is stopping' })
  t.equal(replaced(), 0)
  t.equal(kept(), 0, 'it ends')
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

t.test('a process that fails with the state in its hands is ended, and gives it back', async t => {
  const failing = `
    process.on('message', ({ kind }) => {
      if (kind === 'begin') process.send({ kind: 'failed', reason: String(process.pid) })
    })
    process.send({ kind: 'prepared' })
  `
  const { restart, handover, replaced } = open({ words: ['-e', failing] })
  const store = movableStore(handover, 'sessions')
  t.teardown(() => store.close())
  await store.create('key', 'kept', 60_000)
  const outcome = await restart()
  t.match(outcome, { outcome: 'failed', reason: /^\d+$/ })
  t.notOk(isAlive(Number('reason' in outcome && outcome.reason)), 'it takes no requests')
  t.match(await store.read('key'), { record: 'kept' })
  t.equal(handover.isAlone, true)
  t.match(await restart(), { outcome: 'failed' }, 'and it may be tried again')
  t.equal(replaced(), 0)
})

t.test('the new process gets all state, and answers what this one asks while it lives', async t => {
  const counting = `
    let count = 0
    process.on('message', message => {
      if (message.kind === 'state') {
        count += message.entries.filter(([, [, key]]) => key.startsWith('key-')).length
      }
      if (message.kind === 'begin') process.send({ kind: 'ready' })
      if (message.kind !== 'call') return
      const { id, method, parameters } = message
      if (method === 'touch') process.exit()
      if (method === 'end') return process.send({ kind: 'result', id, error: 'it cannot' })
      const record = JSON.stringify({ count, method, parameters })
      process.send({ kind: 'result', id, value: { record, ttlMs: 1 } })
    })
    process.send({ kind: 'prepared' })
  `
  const { restart, handover, replaced } = open({ words: ['-e', counting] })
  const store = movableStore(handover, 'sessions')
  t.teardown(() => store.close())
  for (let index = 0; index < 450; index++) await store.create(`key-${index}`, '{}', 60_000)
  const first = restart()
  t.match(await restart(), { outcome: 'refused', reason: 'another restart is under way' })
  t.match(await first, { outcome: 'restarted' })
  t.equal(handover.isAlone, false)
  t.equal(replaced(), 1)
  t.match(await restart(), { outcome: 'refused', reason: /has replaced this one/ })
  const { record = '' } = (await store.read('key-1')) ?? {}
  t.match(JSON.parse(record), { count: 450, method: 'read', parameters: ['key-1'] })
  const away = { code: 'session.unavailable' }
  await t.rejects(store.end('key-1', 'revoked', 1), away)
  await t.rejects(store.touch('key-1', 1, 0), away, 'it ended meanwhile')
  await t.rejects(store.read('key-1'), away, 'and is gone')
})

t.test('a new process of a former version may need the file with the secret', async t => {
  for (const [ready, keeps] of [
    ["{ kind: 'ready' }", true],
    ["{ kind: 'ready', keepsSecretFile: false }", false]
  ] as const) {
    const words = ['-e', successor.replace("{ kind: 'ready' }", ready)]
    const { restart, keepsSecretFile } = open({ words })
    const outcome = await restart()
    if ('pid' in outcome) process.kill(outcome.pid)
    t.equal(keepsSecretFile(), keeps)
  }
})

t.test('no new process is started while a listener is closed', async t => {
  const listeners = [{ name: 'public', listen: '127.0.0.1:0', fd: -1 }] as const
  const { restart, handover } = open({ words: ['-e', successor], listeners } as Setup)
  t.match(await restart(), { outcome: 'refused', reason: /not all listeners are open/ })
  t.equal(handover.isAlone, true)
})
