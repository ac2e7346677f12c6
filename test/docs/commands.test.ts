/** The commands of the documentation, followed to the letter. Other blocks: blocks.test.ts. */
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { callOnce } from '../support/call.ts'
import { run, runningLine } from '../support/command.ts'
import { type Block, blocksOf, exchangesOf, isAsWritten } from '../support/doc-blocks.ts'
import { freePorts } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const execute = promisify(execFile)
const started = 'docs/getting-started.md'
const operations = 'docs/operations.md'
const program = resolve('bin/console-gateway.js')
const password = 'ant.design'
const env = { SESSION_SECRET: 'a secret of at least thirty-two characters' }

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

t.test('README: the demo starts, and its calls are answered as getting started says', async t => {
  const [demoPort, demoOpsPort, backendPort] = await freePorts(3)
  const [demo] = of('README.md', 'sh')
  // This checkout is installed: what is left is the second command of the line.
  const command = demo?.text.replace('npm ci && ', '') ?? ''
  t.equal(command, 'npx console-gateway demo')
  const ports = {
    LISTEN: `127.0.0.1:${demoPort}`,
    OPS_LISTEN: `127.0.0.1:${demoOpsPort}`,
    BACKEND_PORT: String(backendPort)
  }
  await runningLine(t.teardown, `exec ${command}`, { env: environment(ports) }).says('The console:')
  const elsewhere = temporaryFolder()
  for (const { place: where, text } of of(started, 'console')) {
    for (const { command: call, expected } of exchangesOf(text)) {
      const here = call.replaceAll('127.0.0.1:8080', `127.0.0.1:${demoPort}`)
      const { stdout } = await execute('bash', ['-c', here], { cwd: elsewhere })
      const written: unknown = JSON.parse(expected.replaceAll(',…]', ',"…"]'))
      t.ok(isAsWritten(written, JSON.parse(stdout)), `${where}: ${call}\nprints ${stdout}`)
    }
  }
})

/** A folder that holds what the YAML blocks say, with addresses of this machine. */
const place = temporaryFolder()
const folder = join(place, 'config')
const [port = 0, opsPort = 0] = await freePorts(2)

const redis = await testRedis(t.after, ['--requirepass', 'redis-password'])
const shop = await testUpstream(t.after, json(200, { data: { items: [{ id: 1 }] } }))
mkdirSync(folder)
writeFileSync(join(place, 'redis-password'), 'redis-password')
const ops = stringify({ ops: { listen: `127.0.0.1:${opsPort}` } })
const files = { upstreams: 'routes.yaml', server: 'gateway.yaml', users: 'users.yaml' }
for (const { place: where, text } of of(started, 'yaml')) {
  const name = Object.entries(files).find(([key]) => key in (parse(text) as object))?.[1]
  if (name === undefined) throw new Error(`${where}: of which file is it?`)
  const here = text
    .replace('http://shop.internal:8080', shop.url)
    .replace('0.0.0.0:8080', `127.0.0.1:${port}`)
    .replace('redis://redis:6379', redis.url)
    .replace('/run/secrets/redis-password', join(place, 'redis-password'))
  writeFileSync(join(folder, name), name === 'gateway.yaml' ? `${here}\n${ops}` : here)
}
copyFileSync('config/limits.yaml', join(folder, 'limits.yaml'))

/**
 * The command lines of a block, ready to run: placeholders filled, options that may be left out in,
 * their brackets gone.
 */
function commandLines({ text }: Block): string[] {
  return text
    .replaceAll(/\s*\\\n\s*/g, ' ')
    .split('\n')
    .filter(line => line.trim() !== '')
    .map(line =>
      line
        .replace(/\s+#.*$/, '')
        .replaceAll(/ \[[A-Z-]+\]/g, '')
        .replaceAll(/\[(-[^\]]*)\]/g, '$1')
        .replaceAll(/\bDIR\b/g, folder)
        .replaceAll('--source NAME', '--source users-file')
        .replaceAll(/\bIP\b/g, '192.0.2.7')
        .replaceAll(/\b(?:USER-ID|USER|NAME|ID|CALLER)\b/g, 'alice')
        .replace(/^(?:npx )?console-gateway /, `${process.execPath} ${program} `)
    )
}

const signIn = async () =>
  await callOnce(`http://127.0.0.1:${port}/api/auth/admin/login`, {
    headers: { host: 'console.example.com' },
    json: { username: 'alice', password }
  })

t.test('the commands of getting started and operations do what they say', async t => {
  const shell = [started, operations].flatMap(file => of(file, 'sh'))
  for (const block of shell) {
    for (const line of commandLines(block)) {
      if (line.startsWith('npm start')) {
        const gateway = runningLine(t.teardown, `exec ${line}`, { env: environment(env) })
        await gateway.says('listening on')
        await until('alice is signed in', async () => (await signIn()).status === 200)
        continue
      }
      if (line.includes(' reload')) {
        // What an operator does before.
        const file = join(folder, 'limits.yaml')
        writeFileSync(file, readFileSync(file, 'utf8').replace('max: 600', 'max: 500'))
      }
      if (line.includes(' sessions ')) await signIn()
      const words = ['-c', `printf ${password} | ${line}`]
      const ran = execute('bash', words, { cwd: place, env: environment(env) })
      await t.resolves(ran, `${block.place}: ${line}`)
    }
  }
})

t.test('what the config of operations expects of itself holds', async t => {
  const own = `
upstreams: { backend: { url: http://127.0.0.1:1 } }
endpoints: { profile: { upstream: backend, rewrite: /accounts/me } }
aliases: { /api/currentUser: /api/account/profile }
routes:
  notices: { path: /api/notices, upstream: backend }
  orders:
    path: /api/orders
    methods: [GET, POST]
    access: { roles: [admin] }
    upstream: backend
`
  const [{ place: where, text } = { place: '', text: '' }] = of(operations, 'yaml')
  writeFileSync(join(folder, 'routes.yaml'), own + text)
  t.match(await run(['check', '--config', folder], { env }), { code: 0 }, where)
})

t.end()
