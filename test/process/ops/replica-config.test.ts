/** Status, reload and rollback of several real replicas: all take part in a rollback, or none. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { start } from '../../support/command.ts'
import { configFolder, noLockout, testGateway } from '../../support/gateway.ts'
import { askOps } from '../../support/ops.ts'
import { secret as sessionSecret, testMember } from '../../support/ops-services.ts'
import { freePort } from '../../support/ports.ts'
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const environment = { SESSION_SECRET: sessionSecret }
const limits = (max: number) => ({
  lockout: noLockout,
  limits: { login: { by: 'address', max, window: '1m', routes: ['login'] } }
})
const shared = (url: string) => ({
  redis: { url, commandTimeout: '5s' },
  session: { secrets: ['${SESSION_SECRET}'] }
})

interface Replica {
  readonly opsUrl: string
  readonly folder: string
}

const ask = async ({ opsUrl }: Replica, path: string, json?: object) =>
  (await (
    await askOps(opsUrl, `/ops/api/${path}`, json === undefined ? {} : { json })
  ).json()) as any
const write = ({ folder }: Replica, max: number) =>
  writeFileSync(join(folder, 'limits.yaml'), stringify(limits(max)))
const hashOf = async (replica: Replica): Promise<string> => (await ask(replica, 'config')).hash

/** A replica within this process. */
const single = async (t: Test, url: string, max = 5) =>
  await testGateway(
    t.after,
    await configFolder({ gateway: shared(url), limits: limits(max) }),
    environment
  )

/** A replica as a process of its own, which signals can reach. */
async function apart(t: Test, url: string) {
  const opsPort = await freePort()
  const folder = await configFolder({
    gateway: {
      ...shared(url),
      server: { listen: '127.0.0.1:0' },
      ops: { listen: `127.0.0.1:${opsPort}` }
    },
    limits: limits(5)
  })
  const running = start(t.after, folder, environment)
  await running.says('for operators on')
  return { ...running, folder, opsUrl: `http://127.0.0.1:${opsPort}` }
}

async function inTouch(replicas: readonly Replica[], count = replicas.length) {
  await until('all replicas hear each other', async () => {
    for (const replica of replicas) {
      if ((await ask(replica, 'replicas')).replicas.length !== count) return false
    }
    return true
  })
}

t.test('status, reload and rollback of all', async t => {
  const { url } = await testRedis(t.after)
  const a = await single(t, url)
  const b = await single(t, url)
  const c = await apart(t, url)
  const all = [a, b, c]
  await inTouch(all)
  const first = await hashOf(a)
  const { replicas, silent, info } = await ask(c, 'replicas')
  t.same([silent, info], [[], undefined])
  t.equal(replicas[0].id, (await ask(c, 'now')).replica, 'the one that was asked first')
  for (const replica of replicas) {
    t.match(replica, { ready: true, generation: 1, configHash: first, files: 'running' })
  }

  for (const replica of all) write(replica, 10)
  const previewed = async () => await ask(a, 'reload', { all: true, preview: true })
  // On a busy machine Redis may answer one question too late: the replica then counts itself only.
  await until('all are counted', async () => (await previewed()).effect?.replicas === 3)
  t.match(await previewed(), { act: 'config.reload', effect: { changes: 1 } })
  const reloaded = await ask(a, 'reload', { all: true })
  t.equal(reloaded.outcome, 'done')
  t.same(
    reloaded.replicas.map(({ outcome, generation }: any) => [outcome, generation]),
    [1, 2, 3].map(() => ['reloaded', 2])
  )
  const second = await hashOf(a)
  t.not(second, first)
  for (const replica of all) t.equal(await hashOf(replica), second)

  const act = { hash: first, all: true }
  t.match(await ask(b, 'rollback', { ...act, preview: true }), {
    act: 'config.rollback',
    effect: { replicas: 3, changes: 1, sessions: 0, missing: undefined, silent: undefined }
  })
  t.equal(await hashOf(a), second, 'a preview changes nothing')
  const rolledBack = await ask(b, 'rollback', act)
  t.match(rolledBack, { outcome: 'rolled back', hash: first, reasons: [] })
  t.same(
    rolledBack.replicas.map(({ outcome }: any) => outcome),
    ['rolled back', 'rolled back', 'rolled back']
  )
  for (const replica of all) t.equal(await hashOf(replica), first)
  t.match((await ask(c, 'replicas')).replicas[2], { files: 'rolled back', generation: 3 })
  t.match(await ask(a, 'rollback', { hash: second }), { outcome: 'rolled back' }, 'this one alone')
  t.equal(await hashOf(b), first)

  write(b, 20)
  writeFileSync(join(c.folder, 'limits.yaml'), 'limits: no\n')
  const mixed = await ask(a, 'reload', { all: true })
  t.equal(mixed.outcome, 'refused')
  const outcomes = mixed.replicas.map(({ outcome }: any) => outcome)
  t.same(outcomes.toSorted(), ['refused', 'reloaded', 'unchanged'], 'each for itself')
  t.match(mixed.reasons, [/limits\.yaml:1/])
  const now = (await ask(a, 'replicas')).replicas
  t.match(
    now.find(({ files }: any) => files === 'refused'),
    { fault: /limits\.yaml:1/ }
  )
})

t.test('if one replica has no such config, none changes', async t => {
  const { url } = await testRedis(t.after)
  const a = await single(t, url)
  const b = await single(t, url)
  const late = await single(t, url, 10)
  const first = await hashOf(a)
  for (const replica of [a, b]) {
    write(replica, 10)
    await ask(replica, 'reload', {})
  }
  await inTouch([a, b, late])
  const second = await hashOf(late)
  t.equal(await hashOf(a), second)

  const act = { hash: first, all: true }
  const { effect } = await ask(a, 'rollback', { ...act, preview: true })
  t.match(effect, { replicas: 2 })
  t.equal(effect.missing.length, 1)
  const refused = await ask(a, 'rollback', act)
  t.equal(refused.outcome, 'refused')
  t.match(refused.reasons, [/: There is no revision with the hash [0-9a-f]{16} here\.$/])
  t.ok(refused.reasons[0].startsWith(effect.missing[0]), 'it is named')
  t.same(
    refused.replicas.map(({ outcome }: any) => outcome),
    ['kept', 'kept', 'refused']
  )
  for (const replica of [a, b, late]) t.equal(await hashOf(replica), second)
  t.equal((await a.reload('operator')).outcome, 'unchanged', 'nothing is held any more')
  t.equal((await b.reload('operator')).outcome, 'unchanged')
})

t.test('if one replica is silent, none changes, and it is named', async t => {
  const { url } = await testRedis(t.after)
  const a = await single(t, url)
  const b = await apart(t, url)
  await inTouch([a, b])
  const first = await hashOf(a)
  for (const replica of [a, b]) write(replica, 10)
  await ask(a, 'reload', { all: true })
  const second = await hashOf(b)
  const { id } = (await ask(b, 'replicas')).replicas[0]

  b.signal('SIGSTOP')
  t.match(await ask(a, 'replicas'), { replicas: { length: 1 }, silent: [{ id }] })
  const refused = await ask(a, 'rollback', { hash: first, all: true })
  t.match(refused, { outcome: 'refused', reasons: [`${id}: it did not answer in time`] })
  t.match(refused.replicas, [{ outcome: 'kept' }, { replica: id, outcome: 'not confirmed' }])
  t.equal(await hashOf(a), second)

  b.signal('SIGCONT')
  await inTouch([a, b])
  t.equal(await hashOf(b), second, 'also when it goes on')
  t.match(await ask(b, 'rollback', { hash: first, all: true }), { outcome: 'rolled back' })
})

t.test('one that dies before it has confirmed is named; it starts with its files', async t => {
  const { url } = await testRedis(t.after)
  const a = await single(t, url)
  const b = await apart(t, url)
  const first = await hashOf(a)
  for (const replica of [a, b]) write(replica, 10)
  await inTouch([a, b])
  await ask(a, 'reload', { all: true })
  const { id } = (await ask(b, 'replicas')).replicas[0]
  /** It has prepared only when the other is dead. */
  const member = await testMember(t.after, shared(url).redis)
  member.bus.serve('rollback.prepare', async () => {
    await b.says('config.rollback-held')
    t.match(await ask(a, 'rollback', {}), { code: 'ops.held' }, 'meanwhile no other is taken')
    t.match(await ask(a, 'reload', {}), { code: 'ops.held' })
    b.signal('SIGKILL')
    await b.ended
  })
  member.bus.serve('rollback.commit', () => ({ outcome: 'rolled back', generation: 3 }))
  await until('it is heard', async () => (await ask(a, 'now')).replicas.length === 3)

  const result = await ask(a, 'rollback', { hash: first, all: true })
  t.equal(result.outcome, 'incomplete')
  t.match(result.reasons, [`${id}: it did not answer; if it starts again, it runs the config of`])
  t.match(
    result.replicas.find(({ replica }: any) => replica === id),
    { outcome: 'not confirmed' }
  )
  t.equal(await hashOf(a), first)
  const again = start(t.after, b.folder, environment)
  await again.says('for operators on')
  t.not(await hashOf(b), first)
  t.match(await ask(a, 'reload', {}), { outcome: 'reloaded' }, 'nothing is held any more')
})
