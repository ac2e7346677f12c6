/** The example of README: exactly its config, in front of the RuoYi back-end of test/consoles. */
import t from 'tap'
import { ruoyi } from '../consoles/backends/ruoyi.ts'
import { admin, startBackend } from '../consoles/server.ts'
import { textFolder } from '../support/config-files.ts'
import { blocksOf, isAsWritten } from '../support/doc-blocks.ts'
import { cookieOf, testGateway } from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'

const blocks = blocksOf('README.md')
const fileOf = (name: string) =>
  blocks.find(({ text }) => text.startsWith(`# ${name}\n`))?.text ?? ''
const lines = blocks.flatMap(({ text }) => text.split('\n'))
const lineOf = (begin: string) => {
  const line = lines.find(each => each.startsWith(begin)) ?? ''
  return line.slice(begin.length).trim()
}
/** JSON in which `…` stands for members that are left out. */
const written = (text: string) => JSON.parse(text.replaceAll(',…}', '}')) as unknown
const pruned = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (key, member) => (leftOut.has(key) ? undefined : member)))
const leftOut = new Set(['noticeType', 'status'])

t.test('the config of README turns the request and the answer as README shows them', async t => {
  const redis = await testRedis(t.after)
  const backend = await startBackend(t.after, ruoyi)
  const folder = textFolder(t.after, {
    // On ports of its own.
    'gateway.yaml': `${fileOf('gateway.yaml').replace('redis://redis:6379', redis.url)}
server: { listen: 127.0.0.1:0 }
ops: { listen: 127.0.0.1:0 }`,
    'routes.yaml': fileOf('routes.yaml').replace('http://ruoyi:8080', backend.url),
    'limits.yaml': fileOf('limits.yaml')
  })
  const gateway = await testGateway(t.after, folder, {
    SESSION_SECRET: 'a secret of at least thirty-two characters'
  })
  const { username, password } = admin
  const signedIn = await gateway.call('/api/login/account', { json: { username, password } })
  const [, method, path = ''] = /^(GET) (\S+)/.exec(lineOf('the console asks')) ?? []
  const got = await gateway.call(path, { method: method ?? '', cookie: cookieOf(signedIn) })
  t.match(cookieOf(signedIn), /^__Host-console_sid=/)

  const call = backend.calls.findLast(({ path: called }) => called.endsWith('/list'))
  const target = `${call?.path}?${call?.query.toString()}`
  const { authorization = '', 'x-user-name': name } = call?.headers ?? {}
  t.match(authorization, /^Bearer ./)
  t.equal(
    `${call?.method} ${target}   Authorization: Bearer …   X-User-Name: ${String(name)}`,
    lineOf('the back-end gets')
  )
  const direct = await fetch(backend.url + target, { headers: { authorization } })
  t.ok(isAsWritten(written(lineOf('it answers')), pruned(await direct.json())))
  t.ok(isAsWritten(written(lineOf('the console gets')), pruned(got.json)), got.text)
})
