/** What is shipped: what is built, what npm packs, what the image and the compose file run. */
import { cpSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { run, running } from '../support/command.ts'
import { clientOf, configFolder } from '../support/gateway.ts'
import { askOps } from '../support/ops.ts'
import { freePort } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

/** Runs a program of Node to its end, which is a good one. @returns what it printed */
async function printed(t: Test, words: readonly string[], program = process.execPath) {
  const ran = running(t.after, program, words)
  t.same(await ran.ended, well, ran.written())
  return ran.written()
}

const ready = async (ops: string) =>
  await until('ready', async () => (await fetch(`${ops}/readyz`)).ok)

const well = { code: 0, signal: null }

t.test('what was built signs in, shapes, serves console and operators, and ends well', async t => {
  await printed(t, ['build.js'])
  const backend = await testUpstream(t.after, json(200, { list: ['a', 'b', 'c'] }))
  const redis = await testRedis(t.after)
  for (const format of ['json', 'pretty'] as const) {
    const routes = (name: string) => ({
      upstreams: { b: { url: backend.url } },
      routes: { shaped: { path: '/api/shaped', upstream: 'b', shape: 'counted' } },
      shapes: {
        counted: [{ unwrap: 'list' }, { nest: { as: 'list', count: name } }, { wrap: 'envelope' }]
      }
    })
    const folder = await configFolder({
      gateway: {
        redis: { url: redis.url, prefix: `${format}:`, commandTimeout: '20s' },
        console: { root: 'console' },
        log: { format }
      },
      routes: routes('before'),
      code: { 'console/index.html': '<!doctype html><title>Console</title>' }
    })
    const words = ['dist/launch.js', 'start', '--config', folder]
    const gateway = running(t.after, process.execPath, words)
    const said = await gateway.says('for operators on http://')
    const [, url = '', opsUrl = ''] =
      /listening on (http:\S+?),? .*for operators on (http:\/\/[\d.:]+)/.exec(said) ?? []
    const client = clientOf({ url, opsUrl })
    await client.ready()
    const page = await client.call('/', { headers: { accept: 'text/html' } })
    t.match(page.text, '<title>Console</title>')
    const cookie = await client.signIn()
    const shaped = async () => (await client.call('/api/shaped', { cookie })).json
    t.match(await shaped(), { data: { before: 3 } })
    writeFileSync(join(folder, 'routes.yaml'), stringify(routes('after')))
    gateway.signal('SIGHUP')
    await gateway.says('config reloaded')
    t.match(await shaped(), { data: { after: 3 } })
    t.match(await client.metrics(), /^console_gateway_requests_total\{.*route="shaped".*\} \d/m)
    const text = await (await fetch(`${opsUrl}/ops/`)).text()
    t.match(text, /<script type="module" src="[^"]+\/live\.js"/)
    for (const [, path = ''] of text.matchAll(/(?:src|href)="([^"]+)"/g)) {
      t.equal((await fetch(opsUrl + path)).status, 200, path)
    }
    t.same(await gateway.stop(), well)
  }
})

t.test('its commands are those of the sources', async t => {
  t.equal(await printed(t, ['dist/launch.js', 'help']), (await run(['help'])).out)
})

/** A folder has the presets, where its program shows one. */
async function hasPresets(t: Test, folder: string): Promise<void> {
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  const program = join(folder, 'bin/console-gateway.js')
  const text = readFileSync('presets/backend/drf.yaml', 'utf8')
  t.equal(await printed(t, [program, 'presets', 'show', 'drf']), text)
}

t.test('what npm packs has the presets', async t => {
  const folder = t.testdir({})
  await printed(t, ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], 'npm')
  const [tarball = ''] = readdirSync(folder)
  await printed(t, ['-xzf', join(folder, tarball), '-C', folder], 'tar')
  await hasPresets(t, join(folder, 'package'))
  const files = readdirSync(join(folder, 'package/dist'))
  t.ok(['page.css', 'live.js', 'icon.svg'].every(name => files.includes(name)))
})

const dockerfile = readFileSync('Dockerfile', 'utf8').replaceAll('\\\n', ' ')

t.test('what the image copies has the presets', async t => {
  const context = readFileSync('.dockerignore', 'utf8').split('\n')
  const folder = t.testdir({})
  const copied = [...dockerfile.matchAll(/^COPY (?:--from=(\w+) )?(.+) (\S+)$/gm)]
  const lastStage = copied.slice(copied.findIndex(([, stage]) => stage === 'dependencies'))
  for (const [, stage, sources = '', target = ''] of lastStage) {
    for (const source of sources.split(' ').map(each => each.replace('/app/', ''))) {
      if (source === 'node_modules') continue
      t.ok(stage !== undefined || context.includes(`!${source}`), `.dockerignore: ${source}`)
      cpSync(source, join(folder, target.endsWith('/') ? source : target), { recursive: true })
    }
  }
  await hasPresets(t, folder)
})

interface Service {
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

const { services } = parse(readFileSync('docker-compose.yml', 'utf8'), { merge: true }) as {
  services: Readonly<Record<string, Service>>
}

/** The words of the last such instruction of the Dockerfile. */
function wordsOf(instruction: string): string[] {
  const found = [...dockerfile.matchAll(new RegExp(`^${instruction}(\\[.*\\])$`, 'gm'))].at(-1)
  if (found === undefined) throw new Error(`the Dockerfile has no ${instruction}`)
  return JSON.parse(found[1] ?? '') as string[]
}

const entry = wordsOf('ENTRYPOINT ')
const defaults = wordsOf('CMD ')
const healthCheck = wordsOf('HEALTHCHECK .*CMD ')

/** A machine of one volume that runs containers with the same environment. */
async function machine(given: Readonly<Record<string, string>> = {}) {
  const volume = temporaryFolder()
  /** Paths of the image in the place of this machine's. */
  const here = (word: string) =>
    word
      .replace('/var/lib/console-gateway', volume)
      .replace('/app', process.cwd())
      .replace('dist/launch.js', process.env['PROGRAM'] ?? 'src/launch.js')
  const listens = {
    LISTEN: `0.0.0.0:${await freePort()}`,
    OPS_LISTEN: `0.0.0.0:${await freePort()}`
  }
  const known = Object.entries(given).map(([name, value]) => [name, here(value)])
  const environment = { ...Object.fromEntries(known), ...listens, TMPDIR: volume }
  const container = (t: Test, words: readonly string[]) => {
    t.equal(words[0], 'node')
    return running(t.after, process.execPath, words.slice(1).map(here), environment)
  }
  return { volume, container, ops: `http://${listens.OPS_LISTEN}` }
}

t.test('what `docker compose up` runs is healthy, and wants a secret of operators', async t => {
  const given = services['gateway']?.environment
  t.match(given, { REDIS_URL: 'redis://redis:6379' })
  t.match(dockerfile, 'ENV LISTEN=0.0.0.0:8080 OPS_LISTEN=0.0.0.0:9090')
  const { url } = await testRedis(t.after)
  const { volume, container, ops } = await machine({ ...given, REDIS_URL: url })
  const of = (name: string) => [...entry, ...(services[name]?.command ?? defaults)]
  const made = await container(t, of('session-secret')).ended
  t.same(made, well)
  t.equal(statSync(join(volume, 'session-secret')).mode & 0o777, 0o600)

  const gateway = container(t, of('gateway'))
  await gateway.says('listening on')
  await ready(ops)
  t.match(await container(t, healthCheck).ended, { code: 0 }, 'HEALTHCHECK')
  t.equal((await fetch(`${ops}/ops/api/status`)).status, 401)
  const status = container(t, [...entry, 'status', ...defaults.slice(1)])
  t.match(await status.ended, { code: 0 }, '`docker compose exec` asks the gateway by its socket')
  t.match(status.written(), /^redis +up$/m)
  t.same(await gateway.stop(), well)
  t.match(await container(t, healthCheck).ended, { code: 1 }, 'HEALTHCHECK can fail')
})

t.test('with OPS_SECRET the same image takes that one', async t => {
  const secret = 'an-operators-secret-of-32-letters'
  const { container, ops } = await machine({ OPS_SECRET: secret })
  const gateway = container(t, [...entry, ...defaults])
  await gateway.says('listening on')
  const headers = { authorization: `Bearer ${secret}` }
  t.equal((await askOps(ops, '/ops/api/status', { headers })).status, 200)
  t.match(await container(t, healthCheck).ended, { code: 0 })
  t.same(await gateway.stop(), well)
})
