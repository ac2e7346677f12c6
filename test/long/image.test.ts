/** What the image and the compose file run, with the same words, on this machine. */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { running } from '../support/command.ts'
import { askOps } from '../support/ops.ts'
import { freePort } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

interface Service {
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

const dockerfile = readFileSync('Dockerfile', 'utf8').replaceAll('\\\n', ' ')
const { services } = parse(readFileSync('docker-compose.yml', 'utf8'), { merge: true }) as {
  services: Readonly<Record<string, Service>>
}
const environmentOf = (name: string) => services[name]?.environment ?? {}

/** The words of the last such instruction of the Dockerfile. */
function wordsOf(instruction: RegExp): string[] {
  const found = [...dockerfile.matchAll(new RegExp(`^${instruction.source}(\\[.*\\])$`, 'gm'))].at(
    -1
  )?.[1]
  if (found === undefined) throw new Error(`the Dockerfile has no ${instruction.source}`)
  return JSON.parse(found) as string[]
}

const entry = wordsOf(/ENTRYPOINT /)
const defaults = wordsOf(/CMD /)
const healthCheck = wordsOf(/HEALTHCHECK .*CMD /)

/** Paths of the image in the place of this machine's. */
function onThisMachine(word: string, volume: string): string {
  return word
    .replace('/var/lib/console-gateway', volume)
    .replace('/app', process.cwd())
    .replace('dist/launch.js', process.env['PROGRAM'] ?? 'src/launch.js')
}

function container(
  t: Test,
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
  volume: string
): ReturnType<typeof running> {
  const [program = '', ...rest] = words.map(word => onThisMachine(word, volume))
  t.equal(program, 'node')
  return running(t.after, process.execPath, rest, environment)
}

function volumes(t: Test): { readonly volume: string; readonly TMPDIR: string } {
  const folder = mkdtempSync(join(tmpdir(), 'container-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return { volume: folder, TMPDIR: folder }
}

t.test(
  'what `docker compose up` runs starts, is healthy, and refuses operators without the secret',
  async t => {
    const { volume, TMPDIR } = volumes(t)
    const redis = await testRedis(t.after)
    const made = container(
      t,
      [...entry, ...(services['session-secret']?.command ?? [])],
      environmentOf('session-secret'),
      volume
    )
    t.same(await made.ended, { code: 0, signal: null })
    t.equal(statSync(join(volume, 'session-secret')).mode & 0o777, 0o600)

    const given = environmentOf('gateway')
    t.match(given, { REDIS_URL: 'redis://redis:6379' })
    t.match(dockerfile, 'ENV LISTEN=0.0.0.0:8080 OPS_LISTEN=0.0.0.0:9090')
    const environment = {
      ...given,
      TMPDIR,
      LISTEN: `0.0.0.0:${await freePort()}`,
      OPS_LISTEN: `0.0.0.0:${await freePort()}`,
      REDIS_URL: redis.url,
      SESSION_SECRET: onThisMachine(given['SESSION_SECRET'] ?? '', volume)
    }
    const gateway = container(
      t,
      [...entry, ...(services['gateway']?.command ?? defaults)],
      environment,
      volume
    )
    await gateway.says('listening on')
    const ops = `http://${environment.OPS_LISTEN}`
    await until('ready', async () => (await fetch(`${ops}/readyz`)).ok)
    t.same(
      await container(t, healthCheck, environment, volume).ended,
      { code: 0, signal: null },
      'HEALTHCHECK'
    )
    t.equal((await fetch(`${ops}/ops/api/status`)).status, 401)
    const status = container(t, [...entry, 'status', ...defaults.slice(1)], environment, volume)
    t.same(await status.ended, { code: 0, signal: null }, await status.says(''))
    t.match(
      await status.says(''),
      /^redis +up$/m,
      '`docker compose exec` asks the gateway by its socket'
    )
    gateway.signal('SIGTERM')
    t.same(await gateway.ended, { code: 0, signal: null })
    t.match(
      await container(t, healthCheck, environment, volume).ended,
      { code: 1 },
      'HEALTHCHECK can fail'
    )
  }
)

t.test('with OPS_SECRET the same image takes that one', async t => {
  const { volume, TMPDIR } = volumes(t)
  const secret = 'an-operators-secret-of-32-letters'
  const environment = {
    TMPDIR,
    OPS_SECRET: secret,
    LISTEN: `127.0.0.1:${await freePort()}`,
    OPS_LISTEN: `127.0.0.1:${await freePort()}`
  }
  const gateway = container(t, [...entry, ...defaults], environment, volume)
  await gateway.says('listening on')
  const headers = { authorization: `Bearer ${secret}` }
  t.equal(
    (await askOps(`http://${environment.OPS_LISTEN}`, '/ops/api/status', { headers })).status,
    200
  )
  t.same(await container(t, healthCheck, environment, volume).ended, { code: 0, signal: null })
  gateway.signal('SIGTERM')
  t.same(await gateway.ended, { code: 0, signal: null })
})
