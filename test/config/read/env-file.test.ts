import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readOpsSocket } from '../../../src/config/read/files.ts'
import { loadConfig } from '../../../src/config/read/load.ts'
import { ConfigError } from '../../../src/config/schema/faults.ts'
import { faultsOf, textFolder } from '../../support/config-files.ts'

const gateway =
  'session: { secrets: ["${SESSION_SECRET}"], cookie: { secure: false } }\nops: { secret: "${OPS_SECRET}", socket: "${OPS_SOCKET:-}" }\n'
const secret = 'a-secret-of-at-least-thirty-two-characters'

t.test('.env of the folder has values for what the environment lacks', async t => {
  const folder = textFolder(t.after, { 'gateway.yaml': gateway })
  const file = join(folder, '.env')
  t.match(faultsOf(folder)[0], /environment variable SESSION_SECRET is not set/)
  const own = `OPS_SECRET="${secret}-too"\nOPS_SOCKET=/run/cg\n`
  writeFileSync(file, `# Secrets\nSESSION_SECRET=${secret}\n${own}`)
  const config = loadConfig(folder, {})
  const values = { session: { secrets: [secret] }, ops: { secret: `${secret}-too` } }
  t.match(config.gateway, values)
  t.ok(Object.hasOwn(config.inputs, file), 'a change of it is seen')
  t.equal(readOpsSocket(folder, {}), '/run/cg', 'commands read it, too')
  const other = `${secret}-of-the-environment`
  t.same(loadConfig(folder, { SESSION_SECRET: other }).gateway.session.secrets, [other])
})

t.test('a byte order mark belongs to no name and no secret', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': gateway.replace('${OPS_SECRET}', 'file:secret'),
    '.env': `\ufeffSESSION_SECRET=${secret}\n`,
    'secret': `\ufeff${secret}-too\n`
  })
  const { session, ops } = loadConfig(folder, {}).gateway
  t.same([session.secrets, ops.secret], [[secret], `${secret}-too`])
})

t.test('a .env that comes later is seen, and one that cannot be read is one fault', async t => {
  const environment = { SESSION_SECRET: secret, OPS_SECRET: secret }
  const folder = textFolder(t.after, { 'gateway.yaml': gateway })
  t.match(loadConfig(folder, environment).inputs, { [join(folder, '.env')]: '' })
  for (const [env, fault] of [
    [{ '.env': '#'.repeat(1024 * 1024 + 1) }, '0 : the file is larger than 1 MiB'],
    [{ '.env/x': '' }, '0 : the file cannot be read (EISDIR)'],
    [{ '.env': Buffer.from('A=1\nB=\xfc\n', 'latin1') }, '2 : the file is not UTF-8 text: save it']
  ] as const) {
    const other = textFolder(t.after, { 'gateway.yaml': gateway, ...env })
    const [first, ...others] = faultsOf(other, environment)
    t.match(first, `.env:${fault}`)
    t.same(others, [])
    t.throws(() => readOpsSocket(other, environment), ConfigError)
  }
})
