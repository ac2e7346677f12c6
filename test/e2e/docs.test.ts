/**
 * The commands of the documentation, followed to the letter; test/docs/blocks.test.ts has the other
 * blocks.
 */
import { execFile, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { adopt } from '../../src/observability/emitters.ts'
import { type Block, blocksOf, exchangesOf, isAsWritten } from '../support/doc-blocks.ts'
import { freePorts } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const execute = promisify(execFile)
const started = 'docs/getting-started.md'
const operations = 'docs/operations.md'
const program = resolve('bin/console-gateway.js')
const password = 'ant.design'

const toRun = ['README.md', started, operations]
  .flatMap(blocksOf)
  .filter(block => block.notRun === undefined)
const of = (file: string, language: string) =>
  toRun.filter(block => block.language === language && block.place.startsWith(file))

/** The Node that runs the tests comes first, as npm has it. */
const environment = (more: Record<string, string> = {}) => ({
  ...process.env,
  PATH: `${dirname(process.execPath)}:${resolve('node_modules/.bin')}:${process.env['PATH'] ?? ''}`,
  ...more
})

/** Starts what serves, and ends it with all that it started. @returns once it has printed `ready` */
async function serve(
  t: Test,
  command: string,
  ready: string,
  env: Record<string, string>
): Promise<void> {
  const child = adopt(
    spawn('sh', ['-c', `exec ${command}`], { env: environment(env), detached: true })
  )
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    adopt(stream).on('data', chunk => {
      printed += String(chunk)
    })
  }
  let isOver = false
  child.once('close', () => {
    isOver = true
  })
  t.teardown(async () => {
    if (!isOver && child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
    await until(`"${command}" ends`, () => isOver)
  })
  await until(`"${command}" prints "${ready}"`, () => printed.includes(ready) || isOver)
  if (!printed.includes(ready)) throw new Error(`"${command}" ended:\n${printed}`)
}

t.test(
  'README: the demo starts, and its calls are answered as getting started shows them',
  async t => {
    const [port, opsPort, backendPort] = await freePorts(3)
    const [demo] = of('README.md', 'sh')
    // This checkout is installed: what is left is the second command of the line.
    const command = demo?.text.replace('npm ci && ', '') ?? ''
    t.equal(command, 'npx console-gateway demo')
    await serve(t, command, 'The console:', {
      LISTEN: `127.0.0.1:${port}`,
      OPS_LISTEN: `127.0.0.1:${opsPort}`,
      BACKEND_PORT: String(backendPort)
    })
    const folder = mkdtempSync(join(tmpdir(), 'gateway-docs-'))
    t.teardown(() => rmSync(folder, { recursive: true }))
    for (const { place, text } of of(started, 'console')) {
      for (const { command: call, expected } of exchangesOf(text)) {
        const here = call.replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)
        const { stdout } = await execute('bash', ['-c', here], { cwd: folder })
        const written: unknown = JSON.parse(expected.replaceAll(',…]', ',"…"]'))
        t.ok(isAsWritten(written, JSON.parse(stdout)), `${place}: ${call}\nprints ${stdout}`)
      }
    }
  }
)

/** A folder that holds what the YAML blocks say, with addresses of this machine. */
async function configOfGettingStarted(t: Test) {
  const redis = await testRedis(t.after, ['--requirepass', 'redis-password'])
  const shop = await testUpstream(t.after, json(200, { data: { items: [{ id: 1 }] } }))
  const [port = 0, opsPort = 0] = await freePorts(2)
  const place = mkdtempSync(join(tmpdir(), 'gateway-docs-'))
  t.teardown(() => rmSync(place, { recursive: true }))
  const folder = join(place, 'config')
  mkdirSync(folder)
  writeFileSync(join(place, 'redis-password'), 'redis-password')
  const files = { upstreams: 'routes.yaml', server: 'gateway.yaml', users: 'users.yaml' }
  for (const { place: where, text } of of(started, 'yaml')) {
    const name = Object.entries(files).find(([key]) => key in (parse(text) as object))?.[1]
    if (name === undefined) throw new Error(`${where}: of which file is it?`)
    writeFileSync(
      join(folder, name),
      text
        .replace('http://shop.internal:8080', shop.url)
        .replace('0.0.0.0:8080', `127.0.0.1:${port}`)
        .replace('redis://redis:6379', redis.url)
        .replace('/run/secrets/redis-password', join(place, 'redis-password'))
    )
  }
  const gateway = join(folder, 'gateway.yaml')
  const ops = { ops: { listen: `127.0.0.1:${opsPort}` } }
  writeFileSync(gateway, `${readFileSync(gateway, 'utf8')}\n${stringify(ops)}`)
  copyFileSync('config/limits.yaml', join(folder, 'limits.yaml'))
  return { place, folder, port }
}

const placeholders: Readonly<Record<string, string>> = {
  'USER-ID': 'alice',
  'USER': 'alice',
  'NAME': 'alice',
  'ID': 'alice',
  'IP': '192.0.2.7',
  'CALLER': 'alice'
}

/**
 * The command lines of a block, ready to run: placeholders filled, options that may be left out in,
 * their brackets gone.
 */
function commandLines({ text }: Block, folder: string): string[] {
  return text
    .split('\n')
    .filter(line => line.trim() !== '')
    .map(line =>
      line
        .replace(/\s+#.*$/, '')
        .replaceAll(/ \[[A-Z-]+\]/g, '')
        .replaceAll(/\[(-[^\]]*)\]/g, '$1')
        .replaceAll(/\bDIR\b/g, folder)
        .replaceAll('--source NAME', '--source users-file')
        .replaceAll(/\b(USER-ID|USER|NAME|ID|IP|CALLER)\b/g, name => placeholders[name] ?? name)
        .replace(/^(?:npx )?console-gateway /, `${process.execPath} ${program} `)
    )
}

/** What an operator does before a reload. */
function editLimits(folder: string): void {
  const file = join(folder, 'limits.yaml')
  writeFileSync(file, readFileSync(file, 'utf8').replace('max: 600', 'max: 500'))
}

async function signIn(port: number): Promise<number> {
  return await new Promise((fulfil, reject) => {
    const headers = { 'host': 'console.example.com', 'content-type': 'application/json' }
    const path = '/api/auth/admin/login'
    const call = request({ port, host: '127.0.0.1', method: 'POST', path, headers }, response => {
      response.resume()
      fulfil(response.statusCode ?? 0)
    })
    adopt(call, reject)
    call.end(JSON.stringify({ username: 'alice', password }))
  })
}

t.test('the commands of getting started and operations do what they say', async t => {
  const { place, folder, port } = await configOfGettingStarted(t)
  const env = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
  const shell = [started, operations].flatMap(file => of(file, 'sh'))
  for (const block of shell) {
    for (const line of commandLines(block, folder)) {
      if (line.startsWith('npm start')) {
        await serve(t, line, 'listening on', env)
        await until('alice is signed in', async () => (await signIn(port)) === 200)
        continue
      }
      if (line.includes(' reload')) editLimits(folder)
      if (line.includes(' sessions ')) await signIn(port)
      const what = `${block.place}: ${line}`
      const run = execute('bash', ['-c', `printf ${password} | ${line}`], {
        cwd: place,
        env: environment(env)
      })
      const failed = await run.then(
        () => undefined,
        (error: { stderr: string }) => error.stderr
      )
      t.equal(failed, undefined, what)
    }
  }
})

t.test('the YAML of operations is sound', async t => {
  const { folder } = await configOfGettingStarted(t)
  const routes = join(folder, 'routes.yaml')
  const own = {
    upstreams: { backend: { url: 'http://127.0.0.1:1' } },
    endpoints: { profile: { upstream: 'backend', rewrite: '/accounts/me' } },
    aliases: { '/api/currentUser': '/api/account/profile' },
    routes: {
      notices: { path: '/api/notices', upstream: 'backend' },
      orders: {
        path: '/api/orders',
        methods: ['GET', 'POST'],
        access: { roles: ['admin'] },
        upstream: 'backend'
      }
    }
  }
  for (const { place, text } of of(operations, 'yaml')) {
    const isInstall = 'server' in (parse(text) as object)
    writeFileSync(routes, `${stringify(own)}\n${isInstall ? '' : text}\n`)
    if (isInstall) writeFileSync(join(folder, 'gateway.yaml'), text)
    const env = environment({ SESSION_SECRET: 'a secret of at least thirty-two characters' })
    const checked = execute(process.execPath, [program, 'check', '--config', folder], { env })
    t.equal(
      await checked.then(
        () => '',
        (error: { stderr: string }) => error.stderr
      ),
      '',
      place
    )
  }
})
