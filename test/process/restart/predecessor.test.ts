/** A process that a restart has started, and all that the one before tells it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { adopt } from '../../../src/observability/emitters.ts'
import { listenersVariable } from '../../../src/process/restart/messages.ts'
import { until } from '../../support/until.ts'

const source = (file: string) => new URL(`../../../src/${file}`, import.meta.url).href

const program = (steps: string) => `
  import { fstatSync } from 'node:fs'
  import { findPredecessor, TakeOverError } from '${source('process/restart/predecessor.ts')}'
  import { movableStore } from '${source('services/handover.ts')}'
  const tell = (what, value) => process.connected
    ? process.send({ kind: 'test', what, value })
    : process.stdout.write(JSON.stringify({ kind: 'test', what, value }) + '\\n')
  const thrown = async step => {
    try {
      await step
      return 'nothing'
    } catch (error) {
      return (error instanceof TakeOverError ? 'TakeOverError: ' : 'another: ') + error.message
    }
  }
  const predecessor = findPredecessor()
  ${steps}
`

type Message = Readonly<Record<string, any>>

interface Setup {
  readonly listeners?: readonly object[]
  readonly pipes?: number
}

/** Runs a successor; `messages` has what it says, by its channel or its output. */
function start(t: Test, steps: string, { listeners = [], pipes = 0 }: Setup = {}) {
  const child: ChildProcess = adopt(
    spawn(process.execPath, ['--input-type=module', '-e', program(steps)], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc', ...Array<'pipe'>(pipes).fill('pipe')],
      env: { ...process.env, [listenersVariable]: JSON.stringify(listeners) }
    })
  )
  for (const stream of child.stdio) if (stream) adopt(stream)
  t.after(() => child.kill('SIGKILL'))
  const messages: Message[] = []
  child.on('message', message => void messages.push(message as Message))
  let output = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  const heard = async (fits: (message: Message) => boolean) => {
    const all = () => [
      ...messages,
      ...output.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line) as Message]))
    ]
    await until('it is heard', () => all().some(fits))
    return all().find(fits) as Message
  }
  const test = async (what: string) => (await heard(message => message['what'] === what))['value']
  return { child, messages, heard, test, tell: (message: object) => child.send(message) }
}

t.test('a process that no restart has started has no predecessor', async t => {
  const steps = `tell('found', [predecessor === undefined, process.env.${listenersVariable} ?? null])`
  const run = async (variable: object, ipc: boolean) => {
    const child: ChildProcess = adopt(
      spawn(process.execPath, ['--input-type=module', '-e', program(steps)], {
        stdio: ['ignore', 'pipe', 'inherit', ...(ipc ? (['ipc'] as const) : [])],
        env: { ...process.env, ...variable }
      })
    )
    const output = adopt(child.stdout as Readable)
    let text = ''
    output.setEncoding('utf8').on('data', (part: string) => {
      text += part
    })
    let value: unknown
    child.on('message', message => {
      value = (message as Message)['value']
      child.disconnect()
    })
    await Promise.all([once(child, 'exit'), once(output, 'end')])
    return value ?? (JSON.parse(text) as Message)['value']
  }
  t.same(await run({ [listenersVariable]: undefined }, true), [true, null])
  t.same(await run({ [listenersVariable]: '[]' }, false), [true, null], 'nobody would talk to it')
  t.same(await run({ [listenersVariable]: '[]' }, true), [false, null], 'its programs inherit none')
})

const handover = `
  const handover = await predecessor.handover()
  const store = movableStore(handover, 'sessions')
  tell('secrets', [handover.secrets, handover.isAlone])
`

t.test('it gets secrets and state, serves calls, and takes over once it may', async t => {
  const { messages, heard, test, tell } = start(
    t,
    `${handover}
    let asked = 0
    await predecessor.takeOver(async () => ({ ready: ++asked > 2, parts: {} }))
    tell('asked', asked)
    tell('record', (await store.read('key'))?.record)
    await predecessor.ready()
    predecessor.ended.then(() => tell('alone', handover.isAlone))
    `
  )
  tell({ kind: 'secrets', secrets: { session: 'made up' } })
  t.same(await test('secrets'), [{ session: 'made up' }, false])
  await heard(({ kind }) => kind === 'prepared')
  const waits = () => !messages.some(({ what }) => what === 'asked')
  t.ok(waits(), 'it waits until it may')
  const record = { record: 'kept', endsAt: Date.now() + 60_000, isUsed: true }
  tell({ kind: 'state', entries: [['sessions', ['records', 'key', record]]] })
  tell({ kind: 'call', id: 4, store: 'sessions', method: 'read', parameters: ['key'] })
  t.match(await heard(({ id }) => id === 4), { kind: 'result', value: { record: 'kept' } })
  t.ok(waits(), 'more state may come')
  tell({ kind: 'begin' })
  t.equal(await test('asked'), 3, 'it was ready only then')
  t.equal(await test('record'), 'kept')
  await heard(({ kind }) => kind === 'ready')
  tell({ kind: 'call', id: 5, store: 'sessions', method: 'read', parameters: ['key'] })
  t.match(await heard(({ id }) => id === 5), { kind: 'result', value: { record: 'kept' } })
  tell({ kind: 'call', id: 6, store: 'sessions', method: 'never', parameters: [] })
  const refused = await heard(({ id }) => id === 6)
  t.match(refused, { kind: 'result', error: String })
  t.notOk('value' in refused)
})

t.test('where the process before ends, this one is told whatever it waits for', async t => {
  const early = start(t, "tell('end', await thrown(predecessor.handover()))")
  const late = start(
    t,
    `${handover}
    tell('end', await thrown(predecessor.takeOver(async () => ({ ready: true, parts: {} }))))
    await predecessor.ended
    tell('alone', handover.isAlone)
    await predecessor.ready()
    await predecessor.fail('nobody hears it')
    tell('after', 'it goes on')
    `
  )
  late.tell({ kind: 'secrets', secrets: {} })
  await late.heard(({ kind }) => kind === 'prepared')
  const gone = 'TakeOverError: the process that this one was to replace has ended'
  for (const { child, test } of [early, late]) {
    child.disconnect()
    t.equal(await test('end'), gone)
  }
  t.equal(await late.test('alone'), true)
  t.equal(await late.test('after'), 'it goes on')
})

t.test('why it fails is told', async t => {
  const { heard } = start(t, "await predecessor.fail('a file is missing')")
  t.match(await heard(({ kind }) => kind === 'failed'), { reason: 'a file is missing' })
})

t.test('it keeps the listeners that config still has, and closes the others', async t => {
  const listeners = [
    { name: 'public', listen: '127.0.0.1:80', fd: 4 },
    { name: 'redirect', listen: '127.0.0.1:81', fd: 5 },
    { name: 'ops', listen: '127.0.0.1:82', fd: 6 }
  ]
  const steps = (server: object, ops: string) => `
    const isOpen = fd => {
      try {
        return fstatSync(fd) !== undefined
      } catch {
        return false
      }
    }
    const config = { gateway: { server: ${JSON.stringify(server)}, ops: { listen: '${ops}' } } }
    tell('kept', [predecessor.descriptors(config), [4, 5, 6].map(isOpen)])
  `
  const kept = async (server: object, ops: string) =>
    await start(t, steps(server, ops), { listeners, pipes: 3 }).test('kept')
  const redirect = { listen: '127.0.0.1:80', tls: { redirect: '127.0.0.1:81' } }
  t.same(await kept(redirect, '127.0.0.1:82'), [
    { public: 4, redirect: 5, ops: 6 },
    [true, true, true]
  ])
  t.same(await kept({ listen: '127.0.0.1:80' }, '127.0.0.1:83'), [
    { public: 4 },
    [true, false, false]
  ])
  t.same(await kept({ listen: '127.0.0.1:81' }, '127.0.0.1:80'), [{}, [false, false, false]])
})
