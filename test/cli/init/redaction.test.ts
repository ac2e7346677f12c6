/** What `init` takes for a secret: it refuses to write one, and ordinary words are none. */
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { Redaction } from '../../../src/cli/init/redaction.ts'
import { run, type Ran } from '../../support/command.ts'
import { newFolder } from '../../support/init.ts'
import { testUpstream } from '../../support/upstream.ts'

type Header = readonly [name: string, value: string]

interface Row {
  readonly words: readonly string[]
  readonly password: string
  readonly headers?: (url: string) => { request?: readonly Header[]; response?: readonly Header[] }
  readonly cookies?: readonly Header[]
}

const pairs = (list: readonly Header[] = []) => list.map(([name, value]) => ({ name, value }))

/** Runs `init` against a back-end whose list is public, unless its sign-in vouches for users. */
async function init(t: Test, { words, password, headers, cookies }: Row) {
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
  const har = join(dirname(folder), 'traffic.har')
  const { request, response } = headers?.(backend.url) ?? {}
  const entry = {
    request: {
      method: 'GET',
      url: `${backend.url}/admin/items`,
      headers: pairs(request),
      cookies: pairs(cookies)
    },
    response: { headers: pairs(response), content: { text: '[{"id":1}]' } }
  }
  writeFileSync(har, JSON.stringify({ log: { entries: [entry] } }))
  const ran = await run(
    ['init', folder, '--backend-url', backend.url, '--har', har, ...words, '--yes'],
    { input: password }
  )
  return { folder, ...ran }
}

const atFile = { words: ['--sign-in', 'file', '--user', 'dora'], password: 'a long pass phrase' }
const atBackend = ['--login-path', '/admin/login', '--user', 'dora', '--user-path', '/me']

const ordinary: Readonly<Record<string, Row>> = {
  'the host of the back-end': {
    ...atFile,
    headers: url => ({ request: [[':authority', new URL(url).host]] })
  },
  'the value of a cookie that is a word': {
    ...atFile,
    headers: () => ({ request: [['cookie', 'sidebarCollapsed=false; theme=contract']] }),
    cookies: [
      ['sidebarCollapsed', 'false'],
      ['theme', 'contract']
    ]
  },
  'the name of a cookie': {
    ...atFile,
    words: [...atFile.words, '--route', '/connect.sid'],
    headers: () => ({
      request: [['cookie', 'a=b; connect.sid=0123456789']],
      response: [['set-cookie', 'connect.sid=0123456789']]
    })
  },
  'attributes of a cookie': {
    ...atFile,
    headers: () => ({
      response: [['set-cookie', 'sid=0123456789; Path=/admin/items; HttpOnly; SameSite=Strict']]
    })
  },
  'a password of the back-end that is a word': { words: atBackend, password: 'admin' },
  'a password of a users file that is a word': { ...atFile, password: 'password' }
}

for (const [name, row] of Object.entries(ordinary)) {
  t.test(`${name} is no secret`, async t => {
    const { code, err, out } = await init(t, row)
    t.same({ code, err }, { code: 0, err: '' }, out)
    t.match(out, /GET \/admin\/items/)
  })
}

t.test('a credential of a recording is not written, and its value is not printed', async t => {
  const token = 'tok-0123456789abcdef'
  const refused = ({ folder, code, err, out }: Ran & { readonly folder: string }) => {
    t.equal(code, 1)
    t.match(
      err,
      /^routes\.yaml would contain a credential of the recording\. Nothing was written\.$/m
    )
    t.notMatch(err, / at .*:\d+/, 'no stack')
    t.notOk((err + out).includes(token))
    t.notOk(existsSync(folder))
  }
  const words = [...atFile.words, '--route', `/api/by-key=/by/${token}`]
  for (const headers of [
    () => ({ request: [['authorization', `Bearer ${token}`] as const] }),
    () => ({ request: [['cookie', `a=b; sid=${token}`] as const] }),
    () => ({ response: [['set-cookie', `a=b; Path=/\nsid=${token}; Path=/`] as const] })
  ]) {
    refused(await init(t, { ...atFile, words, headers }))
  }
  refused(await init(t, { ...atFile, words, cookies: [['sid', token]] }))
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
