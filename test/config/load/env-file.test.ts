import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { opsAccess } from '../../../src/config/load/admin-access.ts'
import { loadConfig } from '../../../src/config/load/load.ts'
import { faultsOf, textFolder } from '../../support/config-files.ts'

const gateway =
  'session: { secrets: ["${SESSION_SECRET}"], cookie: { secure: false } }\nops: { secret: "${OPS_SECRET}" }\n'
const secret = 'a-secret-of-at-least-thirty-two-characters'

t.test('.env of the folder has values for what the environment lacks', t => {
  const folder = textFolder(t.after, { 'gateway.yaml': gateway })
  t.match(faultsOf(folder)[0], /environment variable SESSION_SECRET is not set/)
  writeFileSync(
    join(folder, '.env'),
    `# Secrets\nSESSION_SECRET=${secret}\nOPS_SECRET="${secret}-too"\n`
  )
  const config = loadConfig(folder, {})
  t.same(config.gateway.session.secrets, [secret])
  t.ok(Object.keys(config.inputs).includes(join(folder, '.env')), 'a change of it is seen')
  t.match(opsAccess(folder, {}), { secret: `${secret}-too` })
  const other = `${secret}-of-the-environment`
  t.same(loadConfig(folder, { SESSION_SECRET: other }).gateway.session.secrets, [other])
  t.end()
})
