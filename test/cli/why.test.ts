/** `why` of requests with strange ids, names and codes; the rest stands in why.transcript.yaml. */
import { PassThrough } from 'node:stream'
import t from 'tap'
import { storyText } from '../../src/cli/why.ts'
import { run } from '../support/command.ts'
import { type Called, testGateway } from '../support/gateway.ts'

const gateway = await testGateway(t.after, {
  gateway: { server: { trustedProxies: ['127.0.0.1'] } }
})
const why = async (...words: string[]) => await run(['why', ...words, '-c', gateway.folder])
const idOf = ({ headers }: Called) => headers.get('x-request-id') ?? ''
const isKept = async (path: string, id: string) =>
  await gateway.logged(line => line['requestId'] === id && line['path'] === path)

t.test('an id that was used twice names both requests; one of 64 characters is found', async t => {
  const id = `${'a'.repeat(62)}.-`
  for (const path of ['/api/account/profile', '/api/nowhere']) {
    t.equal(idOf(await gateway.call(path, { headers: { 'x-request-id': id } })), id)
    await isKept(path, id)
  }
  const { out } = await why(id)
  t.match(out, /^The id was used by 2 requests\./)
  t.match(out, /GET \/api\/nowhere → 404[^]*GET \/api\/account\/profile → 401/)
})

t.test('names and paths of clients reach no terminal', async t => {
  const username = 'eve\u001b]0;owned\u0007\u202e\n  error  none'
  const id = idOf(await gateway.attempt(username))
  await isKept('/api/auth/admin/login', id)
  await gateway.call(`/api/${encodeURI('\u001b[2J')}`)
  for (const words of [[id], ['--last', '5'], ['--last', '500']]) {
    const { out } = await why(...words)
    t.match(out, 'owned')
    t.notMatch(out, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]|^ {2}error +none/m)
  }
})

t.test('an error code of another version is shown as it is', async t => {
  for (const code of ['upstream.of-tomorrow', 'constructor']) {
    const at = '2026-01-01T00:00:00.000Z'
    const request = { requestId: 'x', at, method: 'GET', path: '/', ms: 1, status: 502, code }
    const text = storyText(request as unknown as Parameters<typeof storyText>[0], new PassThrough())
    t.match(text, new RegExp(`error +${code}\n`))
    t.notMatch(text, 'to do')
  }
})

t.end()
