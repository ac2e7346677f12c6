/** What `init` takes for a secret: it refuses to write one, and ordinary words are none. */
import { existsSync } from 'node:fs'
import t, { type Test } from 'tap'
import { Redaction } from '../../../src/cli/init/redaction.ts'
import { run } from '../../support/command.ts'
import { newFolder } from '../../support/init.ts'
import { testUpstream } from '../../support/upstream.ts'

/** Runs `init` against a back-end whose list is public, unless its sign-in vouches for users. */
async function init(t: Test, words: readonly string[], password: string) {
  const isOpen = words.includes('file')
  const backend = await testUpstream(t.after, (request, response, { method, url, body }) => {
    const isIn = isOpen || request.headers.authorization === 'Bearer 0123456789'
    const isRefused = method === 'GET' ? !isIn : String(body).includes('nobody-')
    const user = { id: 1, username: 'dora', roles: ['admin'] }
    const data = url === '/me' ? user : [{ id: 1 }]
    const value = method === 'GET' ? data : { token: '0123456789' }
    response
      .writeHead(isRefused ? 401 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(isRefused ? {} : value))
  })
  const folder = newFolder(t.after)
  const route = ['--route', '/admin/items', '--yes']
  const ran = await run(['init', folder, '--backend-url', backend.url, ...words, ...route], {
    input: password
  })
  return { folder, ...ran }
}

const atFile = ['--sign-in', 'file', '--user', 'dora']
const atBackend = ['--login-path', '/admin/login', '--user', 'dora', '--user-path', '/me']

t.test('a password that is a word is no secret', async t => {
  for (const [words, password] of [
    [atBackend, 'admin'],
    [atFile, 'password']
  ] as const) {
    const { code, err, out } = await init(t, words, password)
    t.same({ code, err }, { code: 0, err: '' }, out)
    t.match(out, /GET \/api\/admin\/items/)
  }
})

t.test('a password is not written, and not printed', async t => {
  const password = 'tok-0123456789abcdef'
  const words = [...atFile, '--route', `/api/by-key=/by/${password}`]
  const { folder, code, err, out } = await init(t, words, password)
  t.equal(code, 1)
  t.match(err, /^routes\.yaml would contain the password\. Nothing was written\.$/m)
  t.notMatch(err, / at .*:\d+/, 'no stack')
  t.notOk((err + out).includes(password))
  t.notOk(existsSync(folder))
})

t.test('words are no secrets, and other texts of five characters are', t => {
  const redaction = new Redaction()
  for (const word of ['admin', 'confidential', 'x-access-token', 'ok 1', '']) {
    redaction.add(word, 'the password')
    t.equal(redaction.clean(` ${word} `), ` ${word} `)
  }
  for (const secret of ['x7!kq', 'correct horse', 'lettersWithoutEnd']) {
    redaction.add(secret, 'the password')
    t.equal(redaction.clean(` ${secret} `), ' … ')
  }
  t.end()
})
