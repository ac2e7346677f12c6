import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readOpsSocket } from '../../../src/config/read/files.ts'
import { loadConfig } from '../../../src/config/read/load.ts'
import { ConfigError } from '../../../src/config/schema/faults.ts'
import { faultsOf, textFolder } from '../../support/config-files.ts'

const gateway =
  'session: { secrets: ["${SESSION_SECRET}"], cookie: { secure: false } }\nops: { secret: "${OPS_SECRET}", socket: "${OPS_SOCKET:-}" }\n'
const secret = 'a-secret-of-at-least-thirty-two-characters'

t.test('.env of the folder has values for what the environment lacks', t => {
  const folder = textFolder(t.after, { 'gateway.yaml': gateway })
  t.match(faultsOf(folder)[0], /environment variable SESSION_SECRET is not set/)
  writeFileSync(
    join(folder, '.env'),
    `# Secrets\nSESSION_SECRET=${secret}\nOPS_SECRET="${secret}-too"\nOPS_SOCKET=/run/cg\n`
  )
  const config = loadConfig(folder, {})
  t.same(config.gateway.session.secrets, [secret])
  t.ok(Object.keys(config.inputs).includes(join(folder, '.env')), 'a change of it is seen')
  t.equal(config.gateway.ops.secret, `${secret}-too`)
  t.equal(readOpsSocket(folder, {}), '/run/cg', 'commands read it, too')
  const other = `${secret}-of-the-environment`
  t.same(loadConfig(folder, { SESSION_SECRET: other }).gateway.session.secrets, [other])
  t.end()
})

t.test('a byte order mark belongs to no name and no secret', t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': gateway.replace('${OPS_SECRET}', 'file:secret'),
    '.env': `\ufeffSESSION_SECRET=${secret}\n`,
    'secret': `\ufeff${secret}-too\n`
  })
  t.match(loadConfig(folder, {}).gateway, {
    session: { secrets: [secret] },
    ops: { secret: `${secret}-too` }
  })
  t.end()
})

t.test('a .env that comes later is seen, and one that cannot be read is one fault', t => {
  const folder = textFolder(t.after, { 'gateway.yaml': gateway })
  const file = join(folder, '.env')
  const environment = { SESSION_SECRET: secret, OPS_SECRET: secret }
  t.match(loadConfig(folder, environment).inputs, { [file]: '' })
  writeFileSync(file, '#'.repeat(1024 * 1024 + 1))
  t.same(faultsOf(folder, environment), ['.env:0 : the file is larger than 1 MiB'])
  const other = textFolder(t.after, { 'gateway.yaml': gateway })
  mkdirSync(join(other, '.env'))
  t.same(faultsOf(other, environment), ['.env:0 : the file cannot be read (EISDIR)'])
  const latin = textFolder(t.after, { '.env': Buffer.from('A=1\nB=\xfc\n', 'latin1') })
  t.same(faultsOf(latin), ['.env:2 : the file is not UTF-8 text: save it as UTF-8'])
  t.throws(() => readOpsSocket(other, environment), ConfigError)
  t.end()
})
