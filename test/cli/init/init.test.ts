import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createBackend } from '../../../examples/backend/server.ts'
import { run, running, start } from '../../support/command.ts'
import { filesIn, newFolder, signInAndGet } from '../../support/init.ts'
import { json, testUpstream } from '../../support/upstream.ts'

const password = 'ant.design'
const env = { LISTEN: '127.0.0.1:0', OPS_LISTEN: '127.0.0.1:0' }
const account = ['--login-path', '/auth/login', '--user', 'dora']

async function exampleBackend(cleanUp: (undo: () => unknown) => void): Promise<string> {
  const backend = createBackend({ port: 0 })
  cleanUp(() => backend.close())
  return await backend.listen()
}

async function listeningUrl(gateway: ReturnType<typeof start>): Promise<string> {
  const text = await gateway.says('for operators on')
  return /listening on (http:\S+?),? /.exec(text)?.[1] ?? ''
}

t.test('the example back-end: the folder is checked, started and signed in to', async t => {
  const url = await exampleBackend(t.after)
  const folder = newFolder(t.after)
  const words = ['init', folder, '--backend-url', url, ...account, '--login-fields', 'login,secret']
  const routes = ['--route', '/orders', '--route', '/api/messages=/notices/list']
  const { code, out, err } = await run([...words, ...routes, '--yes'], { input: `${password}\n` })
  t.same({ code, err }, { code: 0, err: '' })
  t.match(out, /THE BACK-END SAID +THE CONSOLE WILL GET\n +code: number +data\[\]/)
  t.match(out, /rows\[\] +customer: text/)
  t.match(out, /Not found out:\n.*names of paging/s)
  t.match(readdirSync(folder), ['.env', '.gitignore', 'contracts', 'gateway.yaml', 'limits.yaml'])
  t.equal(statSync(join(folder, '.env')).mode & 0o777, 0o600)
  t.match(readFileSync(join(folder, '.gitignore'), 'utf8'), /^\.env$/m)
  t.match(await run(['check', '--config', folder]), { code: 0, err: '' })
  const gateway = start(t.after, folder, env)
  const credentials = { username: 'carol', password }
  const { status, list, profile } = await signInAndGet(
    await listeningUrl(gateway),
    credentials,
    '/api/orders'
  )
  t.equal(status, 200)
  t.match(list, { success: true, total: 4, data: [{ orderNo: /^SO-/ }] })
  t.match(profile, { data: { id: '1003', username: 'carol', name: 'Carol Chen', access: 'user' } })
  const everything = [out, ...filesIn(folder)].join('\n')
  for (const value of [password, 'Dora', 'Carol', 'Northwind', 'SO-10427', '1004', 'Platform']) {
    t.notOk(everything.includes(value), value)
  }
})

t.test('a back-end without sign-in: a users file vouches', async t => {
  const rows = [{ id: 7, title: 'Confidential' }]
  const backend = await testUpstream(t.after, json(200, { items: rows, total: 1 }))
  const folder = newFolder(t.after)
  const words = ['--sign-in', 'file', '--user', 'root', '--route', '/news', '--yes']
  const { code, out, err } = await run(['init', folder, '--backend-url', backend.url, ...words], {
    input: 'a long pass phrase'
  })
  t.same({ code, err }, { code: 0, err: '' })
  t.same([...new Set(backend.seen.map(({ method }) => method))], ['GET'])
  t.match(await run(['check', '--config', folder]), { code: 0 })
  const gateway = start(t.after, folder, env)
  const credentials = { username: 'root', password: 'a long pass phrase' }
  const url = await listeningUrl(gateway)
  const { status, list } = await signInAndGet(url, credentials, '/api/news')
  t.equal(status, 200)
  t.match(list, { data: rows, total: 1 })
  t.notMatch([out, ...filesIn(folder)].join('\n'), /Confidential|a long pass phrase/)
})

t.test('cookies of a sign-in are the credential where it has no token', async t => {
  const secret = 'c00kie-of-the-back-end'
  const backend = await testUpstream(t.after, (request, response, { body, url }) => {
    const isIn = request.headers.cookie === `sid=${secret}`
    if (url === '/session') {
      const isRight = new URLSearchParams(body.toString()).get('pass') === password
      response.writeHead(isRight ? 200 : 403, {
        'content-type': 'application/json',
        ...(isRight && { 'set-cookie': `sid=${secret}; Path=/; HttpOnly` })
      })
      return void response.end(JSON.stringify({ user: { id: 5, name: 'Di', login: 'di' } }))
    }
    json(isIn ? 200 : 401, isIn ? [{ id: 1 }, { id: 2 }] : {})(request, response, { body } as never)
  })
  const folder = newFolder(t.after)
  const { code, out } = await run(
    [
      'init',
      folder,
      ...['--backend-url', backend.url, '--login-path', '/session', '--login-format', 'form'],
      ...['--login-fields', 'who,pass', '--user', 'di', '--password-env', 'PW'],
      ...['--route', '/list', '--yes']
    ],
    { env: { PW: password } }
  )
  t.equal(code, 0)
  t.match(out, 'It takes its credential as "cookies" (seen at /list)')
  const url = await listeningUrl(start(t.after, folder, env))
  const { list } = await signInAndGet(url, { username: 'di', password }, '/api/list')
  t.match(list, { data: [{ id: 1 }, { id: 2 }], total: 2 })
  t.notMatch([out, ...filesIn(folder)].join('\n'), secret)
})

t.test('the password goes nowhere but to the sign-in that was named', async t => {
  const folder = newFolder(t.after)
  const refused = async (words: readonly string[], message: RegExp, code = 1) => {
    const ran = await run(['init', folder, ...words, '--route', '/x', '--yes'], { input: password })
    t.match(ran, { code, err: message })
    t.notOk(existsSync(folder), 'nothing is written')
    t.notOk((ran.out + ran.err).includes(password))
  }
  const away = await testUpstream(t.after)
  const moved = await testUpstream(t.after, (_request, response) => {
    response.writeHead(307, { location: `${away.url}/auth/login` }).end()
  })
  await refused(['--backend-url', moved.url, ...account], /redirects \(307\)/)
  t.equal(away.begun(), 0, 'no redirect is followed')
  t.equal(
    moved.seen.some(({ body }) => body.includes(password)),
    false
  )
  const plain = ['--backend-url', 'http://backend.example', ...account]
  await refused(plain, /over plain http, readable on the way.*--allow-plain-http/)
  const url = await exampleBackend(t.after)
  const elsewhere = ['--backend-url', url, '--login-path', '/login', '--user', 'dora']
  await refused(elsewhere, /\/login is no sign-in: POST is answered 404.*has not been sent/)
  await refused(['--backend-url', url, ...account], /refused the sign-in \(200, code 401\)/)
  await refused(['--backend-url', url], /no terminal to ask: name it with --login-path/, 2)
  await refused(['--backend-url', 'ftp://x', ...account], /is not a URL such as/, 2)
  await refused(['--backend-url', 'http://a:b@127.0.0.1', ...account], /has no user, password/, 2)
})

t.test(
  'the wrong password ends it, and a refusal was asked for once, under a made-up name',
  async t => {
    const backend = await testUpstream(t.after, json(200, { code: 401, msg: 'no' }))
    const folder = newFolder(t.after)
    const { code, err } = await run(
      ['init', folder, '--backend-url', backend.url, ...account, '--yes'],
      { input: 'wrong but secret' }
    )
    t.equal(code, 1)
    t.match(err, /refused the sign-in \(200, code 401\):\n {2}code: number\n {2}msg: text/)
    const posts = backend.seen.filter(({ method }) => method === 'POST')
    const names = posts.map(
      ({ body }) => (JSON.parse(String(body)) as { username: string }).username
    )
    t.ok(backend.seen.every(({ method }) => method === 'GET' || method === 'POST'))
    t.match(names, [/^nobody-/, 'dora'])
    t.equal(names.length, 2)
  }
)

t.test(
  'a config is not overwritten, and without --yes or a terminal nothing is written',
  async t => {
    const folder = newFolder(t.after)
    mkdirSync(folder)
    writeFileSync(join(folder, 'gateway.yaml'), '{}')
    t.match(await run(['init', folder]), {
      code: 1,
      err: /has gateway\.yaml already: .* Name another folder\./
    })
    const backend = await testUpstream(t.after, json(200, []))
    const other = newFolder(t.after)
    const words = ['--backend-url', backend.url, '--sign-in', 'file', '--route', '/x']
    t.match(await run(['init', other, ...words], { input: password }), {
      code: 1,
      err: /Nothing was written\. Without a terminal, --yes writes\./
    })
    t.notOk(existsSync(other))
  }
)

t.test('no file of a folder is replaced, and nothing is asked before that is said', async t => {
  const backend = await testUpstream(t.after, json(200, []))
  const words = ['--backend-url', backend.url, '--sign-in', 'file', '--route', '/x', '--yes']
  const init = async (texts: Readonly<Record<string, string>>) => {
    const folder = newFolder(t.after)
    mkdirSync(folder)
    for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text)
    return { folder, ...(await run(['init', folder, ...words], { input: password })) }
  }
  const mine = { '.env': 'A=1\n', '.gitignore': 'dist', 'users.yaml': 'users: {}\n', 'README': '' }
  for (const [texts, names] of [
    [mine, 'users.yaml, .env'],
    [{ schema: 'a file' }, 'schema']
  ] as const) {
    const { folder, code, err } = await init(texts)
    t.equal(code, 1)
    t.match(err, `has ${names} already: init replaces no file.`)
    t.notMatch(err, / at .*:\d+/, 'no stack')
    const kept = readdirSync(folder).map(name => [name, readFileSync(join(folder, name), 'utf8')])
    t.same(Object.fromEntries(kept), texts)
  }
  t.equal(backend.begun(), 0)

  const { folder, code } = await init({ '.gitignore': 'dist', 'README': 'mine' })
  t.equal(code, 0)
  t.equal(
    readFileSync(join(folder, '.gitignore'), 'utf8'),
    'dist\n# Secrets stay on this machine.\n.env\n'
  )
  t.equal(readFileSync(join(folder, 'README'), 'utf8'), 'mine')
  t.equal(statSync(join(folder, '.env')).mode & 0o777, 0o600)
})

t.test('a folder that cannot be made is said in one line', async t => {
  const backend = await testUpstream(t.after, json(200, []))
  const folder = newFolder(t.after)
  writeFileSync(folder, 'a file')
  const words = ['--backend-url', backend.url, '--sign-in', 'file', '--route', '/x', '--yes']
  const { code, err } = await run(['init', join(folder, 'config'), ...words], { input: password })
  t.same([code, err], [1, `${folder}/config/gateway.yaml cannot be written (ENOTDIR).\n`])
})

t.test('at a terminal everything is asked for, and the password is not shown', async t => {
  const url = await exampleBackend(t.after)
  const folder = newFolder(t.after)
  const terminal = running(t.after, 'script', [
    '-qec',
    `${process.execPath} src/launch.js init ${folder}`,
    '/dev/null'
  ])
  const type = async (question: string, line: string) => {
    await terminal.says(question)
    terminal.type(`${line}\r`)
  }
  await type('Console: the folder', '')
  await type('URL of the back-end', url)
  await type('Who vouches', '')
  await type('Path of its sign-in', '/auth/login')
  await type('Members of its body', 'login, secret')
  await type('user name: ', 'dora')
  await type('Its password: ', password)
  await type('GET paths', '/orders /notices/list')
  await type('[y/N]', 'y')
  const written = await terminal.says('Next:')
  t.same(await terminal.ended, { code: 0, signal: null })
  t.notOk(written.includes(password))
  t.match(await run(['check', '--config', folder]), { code: 0 })
})

t.test('rows and their total below a member `rows` are both kept', async t => {
  const list = [{ id: 7, title: 'a' }]
  const backend = await testUpstream(t.after, json(200, { code: 0, rows: { list, total: 57 } }))
  const folder = newFolder(t.after)
  const words = ['--sign-in', 'file', '--user', 'root', '--route', '/news', '--yes']
  const { code, err } = await run(['init', folder, '--backend-url', backend.url, ...words], {
    input: 'a long pass phrase'
  })
  t.same({ code, err }, { code: 0, err: '' })
  const gateway = start(t.after, folder, env)
  const credentials = { username: 'root', password: 'a long pass phrase' }
  const url = await listeningUrl(gateway)
  const response = await signInAndGet(url, credentials, '/api/news')
  t.match(response.list, { data: list, total: 57 })
})

t.test('a header that the config cannot hold is refused before anything is asked', async t => {
  const backend = await testUpstream(t.after, json(200, []))
  const words = ['init', newFolder(t.after), '--backend-url', backend.url, '--yes']
  t.match(await run([...words, '--header', 'X_Site: 1']), { code: 2, err: /digits and dashes/ })
  t.equal(backend.seen.length, 0)
})
