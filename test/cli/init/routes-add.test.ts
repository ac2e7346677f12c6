/** `routes add`: one call with a configured sign-in; what is printed serves the console. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { yudao } from '../../consoles/backends/yudao.ts'
import { admin, startBackend } from '../../consoles/server.ts'
import { run } from '../../support/command.ts'
import { gatewayOn, runInit, signInAndGet } from '../../support/init.ts'
import { testUpstream } from '../../support/upstream.ts'

const { username, password } = admin

t.test('a route for a configured back-end: once in the file, it serves rows', async t => {
  const backend = await startBackend(t.after, yudao)
  const more = ['--header', 'tenant-id: 1', '--user', username]
  const paths = ['--login-path', '/admin-api/system/auth/login', '--route', yudao.list.path]
  const user = ['--user-path', '/admin-api/system/auth/get-permission-info']
  const words = ['--backend-url', backend.url, ...more, ...paths, ...user]
  const { folder } = await runInit(t.after, words, password)
  const file = join(folder, 'routes.yaml')
  const before = readFileSync(file, 'utf8')
  const known = backend.calls.length
  const add = ['routes', 'add', 'GET', `/api/more=${yudao.list.path}`, '--user', username]
  const printed = await run([...add, '-c', folder], { input: password })
  t.match(printed, { code: 0, err: /^$/, out: /rows at data\.list, total at data\.total/ })
  t.match(printed.out, /routes:\n.*path: \/api\/more\n.*rewrite: \/admin-api/s)
  t.notMatch(printed.out, 'Notice 1', 'no value is shown')
  const made = backend.calls
    .slice(known)
    .map(({ method, path }) => method + path.replace(/.*\//, ' '))
  t.same(made, ['POST login', 'GET get-permission-info', 'GET page', 'POST logout'])
  t.equal(readFileSync(file, 'utf8'), before)
  const wrong = await run([...add, '-c', folder], { input: 'wrong' })
  t.match(wrong, { code: 1, err: /The sign-in was refused\. / })
  const [, route = '', shape = ''] = printed.out.split(/^(?:routes|shapes):\n/m)
  const withRoute = before.replace(/^routes:\n/m, `routes:\n${route}`)
  writeFileSync(file, withRoute.replace(/^shapes:\n/m, `shapes:\n${shape}`))
  const gateway = await gatewayOn(t.after, folder)
  const { list } = await signInAndGet(gateway, { username, password }, '/api/more')
  t.match(list, { success: true, total: 25 })
})

t.test('a list of 1 MB, with its total in a header; no data and a wrong call', async t => {
  const rows = Array.from({ length: 1000 }, (_, id) => ({ id, text: 'x'.repeat(1000) }))
  const backend = await testUpstream(t.after, (_request, response, { url }) => {
    response.statusCode = url === '/long' ? 200 : 404
    response.setHeader('X-Total-Count', 2500).end(JSON.stringify(rows))
  })
  const words = ['--backend-url', backend.url, '--sign-in', 'file', '--user', 'root']
  const { folder } = await runInit(t.after, words, 'a long pass phrase')
  const add = async (...more: string[]) => await run(['routes', 'add', ...more, '-c', folder])
  const added = await add('GET', '/long')
  t.match(added, { code: 0, out: '# a bare list, total in the header x-total-count' })
  t.match(added.out, /countHeader: x-total-count/)
  t.match(await add('GET', '/x'), { code: 1, err: 'GET /x gave no data: status 404.' })
  t.match(await add('POST', '/x'), { code: 2, err: /Only GET/ })
  t.match(await add('GET', 'x'), { code: 2, err: /a path such as/ })
  t.match(await add('GET', '/x', '--upstream', 'none'), { code: 2, err: /--upstream: backend/ })
  await backend.close()
  const err = /GET \/x gave no data: no response \(ECONNREFUSED\)/
  t.match(await add('GET', '/x'), { code: 1, err })
})

t.test('an answer under status 200 whose code is not that of a success is no data', async t => {
  const user = { id: 5, username }
  const backend = await testUpstream(t.after, (_request, response, { url, body }) => {
    const isIn = url === '/login' && body.includes(username)
    const value = isIn ? { code: '0000', user } : { code: 'E4010', msg: 'Sign in.', data: [] }
    response.end(JSON.stringify(value))
  })
  const words = ['--backend-url', backend.url, '--login-path', '/login', '--user', username]
  const { folder } = await runInit(t.after, words, password)
  const add = ['routes', 'add', 'GET', '/orders', '--user', username, '-c', folder]
  t.match(await run(add, { input: password }), {
    code: 1,
    err: 'GET /orders gave no data: status 200, code E4010.'
  })
})
