/** The state as operators see it never holds a secret. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { allSecrets } from '../../support/all-secrets.ts'
import { testGateway } from '../../support/gateway.ts'
import { temporaryFolder } from '../../support/temporary.ts'

t.test('no answer holds a secret, whatever changes about secrets', async t => {
  const sslFolder = temporaryFolder()
  const secrets = allSecrets(t.after, sslFolder, false)
  const { gateway: install, upstream, others, environment, values } = secrets
  const { server: _, ...withoutTls } = install
  const gateway = await testGateway(
    t.after,
    { gateway: { ...withoutTls, ops: {} }, routes: { upstreams: { b: upstream, ...others } } },
    environment
  )
  const change = (file: string, edit: (content: any) => void) => {
    const name = join(gateway.folder, file)
    const content = parse(readFileSync(name, 'utf8')) as unknown
    edit(content)
    writeFileSync(name, stringify(content))
  }
  const texts: string[] = []
  const look = async () => {
    const paths = ['status', 'plan', 'replicas', 'openapi.json']
    for (const path of paths) texts.push(await (await gateway.ops(`/ops/api/${path}`)).text())
  }
  await look()
  change('routes.yaml', content => {
    content.upstreams.b.headers['x-second'] = '${SESSION_2}'
    delete content.upstreams.b.headers['x-api-key']
    content.upstreams.b.tls.key = `file:${join(sslFolder, 'server.key')}`
    const { asked, shared, signed } = content.upstreams
    asked.credential.exchange.headers['x-key'] = '${SESSION_2}'
    shared.credential.jwt.secret = '${SESSION_2}'
    signed.credential.jwt.keys.unshift(`file:${join(sslFolder, 'client.key')}`)
  })
  change('gateway.yaml', content => {
    content.session.secrets = ['${SESSION_2}']
    content.ops.secret = '${OPS}'
  })
  await look()
  t.match(await gateway.reload('operator'), { outcome: 'reloaded' })
  await look()
  change('routes.yaml', content => {
    content.upstreams.b.headers['x-list'] = [values[1]]
    content.upstreams.b.tls.key = readFileSync(join(sslFolder, 'client.key'), 'utf8')
  })
  t.match(await gateway.reload('operator'), { outcome: 'refused' })
  await look()
  const all = texts.join('\n')
  const changed = ['session.secrets changed', 'shared.credential.jwt.secret changed']
  for (const what of ['headers.x-second set', ...changed]) t.ok(all.includes(what), what)
  const logged = JSON.stringify(gateway.log)
  for (const value of values) t.notOk((all + logged).includes(value), value.slice(0, 20))
})
