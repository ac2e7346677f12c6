import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import t, { type Test } from 'tap'
import { createBackend } from '../../../examples/backend/server.ts'
import { run } from '../../support/command.ts'
import { askedInit, gatewayOn, newFolder, runInit, signInAndGet } from '../../support/init.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { json, testUpstream } from '../../support/upstream.ts'

const password = 'ant.design'
const account = ['--login-path', '/auth/login', '--user', 'dora']

t.test('the example back-end: the folder is checked, started and signed in to', async t => {
  const backend = createBackend({ port: 0 })
  t.teardown(() => backend.close())
  const signIn = [...account, '--login-fields', 'login,secret']
  const routes = ['--route', '/orders', '--route', '/api/messages=/notices/list']
  const words = ['--backend-url', await backend.listen(), ...signIn, ...routes]
  const { code, out, err, folder, everything } = await runInit(t.after, words, password)
  t.same({ code, err }, { code: 0, err: '' })
  t.match(out, /Found:\n.*GET \/orders: rows at result\.rows, total at result\.total/s)
  t.equal(statSync(join(folder, '.env')).mode & 0o777, 0o600)
  t.match(readFileSync(join(folder, '.gitignore'), 'utf8'), /^\.env$/m)
  t.match(await run(['check', '--config', folder]), { code: 0, err: '' })
  const gateway = await gatewayOn(t.after, folder)
  const carol = { username: 'carol', password }
  const { status, list, cookie } = await signInAndGet(gateway, carol, '/api/orders')
  t.match({ status, list }, { status: 200, list: { total: 4, data: [{ orderNo: /^SO-/ }] } })
  const profile = await gateway.call('/api/account/profile', { cookie })
  t.match(profile.json.data, { id: '1003', username: 'carol', name: 'Carol Chen', access: 'user' })
  for (const value of [password, 'Dora', 'Carol', 'Northwind', 'SO-10427', '1004', 'Platform']) {
    t.notOk(everything.includes(value), value)
  }
})

/** A back-end without a sign-in, and options for it. */
async function withFile(t: Test, answer: unknown = [], ...more: readonly string[]) {
  const backend = await testUpstream(t.after, json(200, answer))
  return { backend, words: ['--backend-url', backend.url, '--sign-in', 'file', ...more] }
}

t.test('a back-end without sign-in: a users file vouches', async t => {
  const list = { data: [{ id: 7, title: 'Confidential' }], total: 1 }
  const answer = { items: list.data, total: 1 }
  const { backend, words } = await withFile(t, answer, '--user', 'root', '--route', '/news')
  const secret = 'a long pass phrase'
  const { code, err, folder, everything } = await runInit(t.after, words, secret)
  t.same({ code, err }, { code: 0, err: '' })
  t.ok(backend.seen.every(({ method }) => method === 'GET') && backend.begun() > 0)
  const gateway = await gatewayOn(t.after, folder)
  const root = { username: 'root', password: secret }
  t.match(await signInAndGet(gateway, root, '/api/news'), { status: 200, list })
  t.notMatch(everything, /Confidential|a long pass phrase/)
})

t.test('the password goes nowhere but to the sign-in that was named', async t => {
  const away = await testUpstream(t.after)
  const moved = await testUpstream(t.after, (_request, response) => {
    response.writeHead(307, { location: `${away.url}/auth/login` }).end()
  })
  const redirected = await runInit(t.after, ['--backend-url', moved.url, ...account], password)
  t.match(redirected, { code: 0, err: /redirects \(307\)/ })
  t.equal(away.begun(), 0, 'no redirect is followed')
  const missing = await testUpstream(t.after, json(404, {}))
  const ran = await runInit(t.after, ['--backend-url', missing.url, ...account], password)
  t.match(ran, { code: 0, err: /\/auth\/login is no sign-in.*has not been sent/ })
  for (const { body } of [...moved.seen, ...missing.seen]) t.notOk(body.includes(password))
  const asked = missing.seen.length
  for (const [words, code, err] of [
    [['--backend-url', 'http://backend.example', ...account], 1, /over plain http, readable/],
    [['--backend-url', missing.url], 2, /no terminal to ask: name it with --login-path/],
    [['--backend-url', 'ftp://x', ...account], 2, /--backend-url: an http:.. or https:.. address/],
    [
      ['--backend-url', 'http://a:b@127.0.0.1', ...account],
      2,
      /--backend-url: an http:.. or https:.. address/
    ],
    [['--backend-url', missing.url, ...account, '--header', 'X_Site: 1'], 1, /digits and dash/],
    [
      ['--backend-url', missing.url, ...account, '--user-path', 'me'],
      1,
      /from\.path: .*found "me"/
    ],
    [
      ['--backend-url', missing.url, ...account, '--logout-path', 'PUT /logout'],
      1,
      /logout\.method: .*found "PUT"/
    ],
    [
      ['--backend-url', missing.url, ...account, '--token-header', 'Cookie'],
      1,
      /credential: "cookie" is set by the gateway itself/
    ]
  ] as const) {
    const refused = await runInit(t.after, words, password)
    t.match(refused, { code, err })
    t.notOk(existsSync(refused.folder) || refused.everything.includes(password))
  }
  t.equal(missing.seen.length, asked, 'what no config can have is said before anything is asked')
  const words = ['--backend-url', missing.url, '--user', 'dora', '--login-path', '/graphql']
  t.match(await runInit(t.after, words, password), { code: 0, err: /by GraphQL is not found out/ })
  t.equal(missing.seen.length, asked)
})

t.test('a back-end that does not answer: the folder starts, and says what is left', async t => {
  const backend = await testUpstream(t.after)
  await backend.close()
  const words = ['--backend-url', backend.url, ...account, '--route', '/orders']
  const ran = await runInit(t.after, words, password)
  t.match(ran, {
    code: 0,
    err: /The sign-in \/auth\/login: no response \(ECONNREFUSED\)/,
    out: /TODO All of this, and shapes of routes: nobody could be signed in/
  })
  t.equal((await (await gatewayOn(t.after, ran.folder)).call('/api/orders')).status, 401)
})

t.test('what is there is not overwritten, and without --yes nothing is written', async t => {
  const { backend, words } = await withFile(t, [], '--route', '/x')
  const folder = newFolder(t.after)
  const init = async (place: string, ...more: readonly string[]) =>
    await run(['init', place, ...words, ...more], { input: password })
  const err = /Nothing was written\. Without a terminal, --yes writes\./
  t.match(await init(folder), { code: 1, err })
  t.notOk(existsSync(folder))
  const before = backend.seen.length
  mkdirSync(folder)
  for (const name of ['users.yaml', '.env', 'schema']) {
    const file = join(folder, name)
    writeFileSync(file, 'mine')
    t.match(await init(folder, '--yes'), { code: 1, err: name })
    t.equal(readFileSync(file, 'utf8'), 'mine')
    rmSync(file)
  }
  t.equal(backend.seen.length, before, 'nothing is asked before that is said')

  writeFileSync(join(folder, '.gitignore'), 'dist')
  t.match(await init(folder, '--yes'), { code: 0 })
  t.match(readFileSync(join(folder, '.gitignore'), 'utf8'), /^dist\n(.*\n)*\.env$/m)
  const nowhere = join(folder, '.env', 'config')
  t.match(await init(nowhere, '--yes'), {
    code: 1,
    err: `${nowhere}/gateway.yaml cannot be written (ENOTDIR).\n`
  })
})

t.test('a secret that would stand in a file is not written; a word is no secret', async t => {
  const { words } = await withFile(t, [], '--user', 'dora')
  const init = async (secret: string) =>
    await runInit(t.after, [...words, '--route', `/api/by-key=/by/${secret}`], secret)
  const secret = 'tok-0123456789abcdef'
  const refused = await init(secret)
  t.match(refused, { code: 1, err: 'routes.yaml would contain a password or a token.' })
  t.notOk(refused.everything.includes(secret) || existsSync(refused.folder))
  t.match(await init('admin'), { code: 0 })
})

t.test('a route that the config cannot have is left out, and the folder starts', async t => {
  const clash = ['/orders', '/orders/{id}', '/api/account/profile=/me']
  const { words } = await withFile(t, [], ...clash.flatMap(path => ['--route', path]))
  const { code, out, folder } = await runInit(t.after, words, password)
  t.match({ code, out }, { code: 0, out: /GET \/orders\/{id} is left out: .*GET \/me is left/s })
  t.equal((await (await gatewayOn(t.after, folder)).call('/api/orders')).status, 401)
})

t.test('at a terminal all is asked for, as the picture of getting started shows it', async t => {
  const backend = createBackend({ port: 0 })
  t.after(() => backend.close())
  const url = await backend.listen()
  // A long path would be broken.
  const place = temporaryFolder()
  cpSync('examples/console', join(place, 'dist'), { recursive: true })
  const answers = [
    ['The console: ', join(place, 'dist')],
    ['Its preset', ''],
    ['URL of the back-end', url],
    ['GET paths', '/orders'],
    ['Preset of the back-end', ''],
    ['Who vouches', ''],
    ['Path of its sign-in', '/auth/login'],
    ['Members of its body', 'login,secret'],
    ['Its format', ''],
    ['An account', 'dora'],
    ['Its password', password],
    ['Write the files', 'y']
  ] as const
  const { shown } = await askedInit(join(place, 'shop'), [], answers)
  t.notMatch(shown, password)
  const plain = (text: string) => stripVTControlCharacters(text).replaceAll(/\s+/g, ' ')
  let printed = plain(shown).replaceAll(url, 'http://127.0.0.1:9001').replaceAll(`${place}/`, '')
  const picture = readFileSync('docs/images/init.svg', 'utf8').matchAll(/<text .*>(.*)<\/text>/g)
  const [command, ...lines] = Array.from(picture, ([, text = '']) => plain(text))
  t.equal(command, '$ npx console-gateway init shop')
  t.equal(lines.filter(line => line.startsWith('◇')).length, answers.length)
  // What was typed is printed again and again before.
  for (const line of lines) {
    t.ok(printed.includes(line), line)
    printed = printed.slice(printed.indexOf(line) + line.length)
  }
})

t.test('after a wrong answer the others are kept; a header may be an option', async t => {
  const token = 'tok-0123456789abcdef'
  const backend = await testUpstream(t.after, (request, response, seen) => {
    const isSignIn = seen.url === '/in' && seen.body.includes('"who":"dora"')
    const isIn = isSignIn || request.headers['x-shop-key'] === token
    const value = isSignIn ? { token, user: { id: 1, role: 'x' } } : [{ id: 1 }]
    json(isIn ? 200 : 401, isIn ? value : { error: 'No.' })(request, response, seen)
  })
  const folder = newFolder(t.after)
  const options =
    '--backend unknown --sign-in backend --console none --route /list --login-path /in ' +
    '--user dora --token-header X-Shop-Key --yes'
  const words = ['--backend-url', backend.url, ...options.split(' ')]
  const { code, shown } = await askedInit(folder, words, [
    ['Members of its body', 'name,pass'],
    ['Its format', ''],
    ['Its password', password],
    ['Correct the answers?', 'y'],
    ['URL of the back-end', ''],
    ['Path of its sign-in', ''],
    ['Members of its body', 'who,pass'],
    ['Its format', ''],
    ['An account', ''],
    ['Its password', password]
  ])
  t.equal(code, 0, shown)
  t.match(readFileSync(join(folder, 'routes.yaml'), 'utf8'), /credential: header:x-shop-key/)
  t.match(readFileSync(join(folder, 'gateway.yaml'), 'utf8'), /body: \{ who: "\{username\}"/)
  t.notMatch(shown, password)
})
