/** The programs of examples/check-token check the gateway’s tokens, in each language here. */
import { execFile, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, globSync, mkdirSync, symlinkSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { parse } from 'yaml'
import { wallClock } from '../support/clock.ts'
import { blocksOf } from '../support/doc-blocks.ts'
import { testGateway } from '../support/gateway.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { testUpstream } from '../support/upstream.ts'

const execute = promisify(execFile)
const blocks = blocksOf('docs/sign-in.md')
const secret = 'secret-of-the-back-end-and-gateway'
const folder = temporaryFolder()
// For the program in Node, which imports a library.
mkdirSync(join(folder, 'node_modules'))

interface Upstreams {
  readonly upstreams: Record<string, object>
}

/** The config of the page, its upstream on this machine. */
const configOf = (url: string) => {
  const { text } = blocks.find(block => block.text.includes('jwt: { secret:')) ?? { text: '' }
  const routes = parse(text) as Upstreams
  const orders = { ...routes.upstreams['orders'], url }
  return { routes: { ...routes, upstreams: { orders } } }
}

const environment = { ORDERS_JWT_SECRET: secret }

/** Jackson, where Maven has fetched it. */
const jackson = () => {
  const at = join(homedir(), '.m2/repository/com/fasterxml/jackson/core')
  const versions = globSync(join(at, 'jackson-databind/2.*')).map(each => each.split('/').at(-1))
  const jarsOf = (version = '') =>
    ['databind', 'core', 'annotations'].map(
      name => globSync(join(at, `jackson-${name}/${version}/*.jar`))[0] ?? ''
    )
  return versions
    .map(jarsOf)
    .find(jars => jars.every(existsSync))
    ?.join(':')
}

const languages = [
  { language: 'js', file: 'check.mjs', command: process.execPath, before: [] },
  { language: 'python', file: 'check.py', command: 'python3', before: [] },
  { language: 'java', file: 'Check.java', command: 'java', before: ['-cp', jackson()] },
  { language: 'go', file: 'check.go', command: 'go', before: ['run'] }
] as const

t.test('each program prints the user of a right token, and refuses others', async t => {
  const pass = wallClock(t.after)
  const backEnd = await testUpstream(t.after)
  const given = configOf(backEnd.url)
  const other = structuredClone(given)
  Object.assign(other.routes.upstreams.orders, {
    credential: { jwt: { secret: '${ORDERS_JWT_SECRET}', claims: { aud: 'stock' } } }
  })
  const gateway = await testGateway(t.after, given, environment)
  const elsewhere = await testGateway(t.after, other, environment)
  const tokenOf = async ({ call, signIn } = gateway): Promise<string> => {
    await call('/api/orders', { cookie: await signIn() })
    return backEnd.seen.at(-1)?.headers.authorization?.replace('Bearer ', '') ?? ''
  }
  pass(-120_000)
  const expired = await tokenOf()
  pass(120_000)
  const ofOther = await tokenOf(elsewhere)
  symlinkSync(resolve('node_modules/jose'), join(folder, 'node_modules/jose'))

  for (const { language, file, command, before } of languages) {
    const isThere = spawnSync(command, [language === 'go' ? 'version' : '--version']).status === 0
    const skip = !isThere || before.some(each => each === undefined)
    t.test(
      language,
      { skip: skip && `${command} or its library is not on this machine` },
      async t => {
        copyFileSync(join('examples/check-token', file), join(folder, file))
        const run = async (token: string, JWT_SECRET = secret) => {
          const words = [...before.map(String), join(folder, file), token]
          const { stdout } = await execute(command, words, { env: { ...process.env, JWT_SECRET } })
          return stdout.trim()
        }
        const right = await tokenOf()
        t.equal(await run(right), 'alice')
        const [header, payload = '', signature] = right.split('.')
        const forged = Buffer.from(payload, 'base64url').toString().replace('alice', 'admin')
        const unsigned = Buffer.from('{"alg":"none"}').toString('base64url')
        const wrong = [
          expired,
          ofOther,
          `${header}.${Buffer.from(forged).toString('base64url')}.${signature}`,
          `${unsigned}.${payload}.`
        ]
        for (const token of wrong) await t.rejects(run(token))
        await t.rejects(run(right, 'another-secret-of-32-characters-xx'))
      }
    )
  }
})
