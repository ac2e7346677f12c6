/** `init` ends its searches before its requests run out, and the back-end's session in any case. */
import type { IncomingMessage } from 'node:http'
import t, { type Test } from 'tap'
import { run, type Ran } from '../../support/command.ts'
import { newFolder } from '../../support/init.ts'
import { type TestUpstream, testUpstream } from '../../support/upstream.ts'

const token = 'tok-0123456789abcdef'

interface Looked extends Ran {
  readonly backend: TestUpstream
}

/**
 * Looks at a back-end that answers 401 to all that does not have its token.
 * @param isDead whether it hangs up on a request
 */
async function look(
  t: Test,
  words: readonly string[],
  { header, isDead }: { header: string; isDead?: (request: IncomingMessage) => boolean }
): Promise<Looked> {
  const backend = await testUpstream(t.after, (request, response, { url, body }) => {
    if (isDead?.(request) === true) return void response.destroy()
    const isIn = String(request.headers[header]).includes(token)
    const isSignIn = url === '/auth/login' && !String(body).includes('nobody-')
    const value = isSignIn ? { token } : {}
    response
      .writeHead(isSignIn || isIn ? 200 : 401, { 'content-type': 'application/json' })
      .end(JSON.stringify(value))
  })
  const account = ['--login-path', '/auth/login', '--user', 'dora']
  const ran = await run(
    ['init', newFolder(t.after), '--backend-url', backend.url, ...account, ...words, '--yes'],
    { input: 'a long pass phrase' }
  )
  return { ...ran, backend }
}

const routes = (count: number) =>
  Array.from({ length: count }, (_, index) => ['--route', `/list-${index}`]).flat()

const signOuts = ({ backend }: Looked) => backend.seen.filter(({ url }) => url === '/auth/logout')

t.test('a back-end that takes its token nowhere where it is looked for', async t => {
  const looked = await look(t, routes(8), { header: 'x-shop-token' })
  t.match(looked.out, 'How it takes its token: no GET call proved it')
  t.match(looked.out, '250 requests were sent: further guesses were left out.')
  t.match(looked.out, 'GET /list-7: left out (status 401)')
  t.notMatch(looked.err, 'stops here')
  t.equal(signOuts(looked).length, 1)
  t.ok(looked.backend.seen.length < 300)
})

t.test('of very many routes the last are left out, and the sign-out is sent', async t => {
  const looked = await look(t, routes(450), { header: 'x-shop-token' })
  t.match(looked.out, 'GET /list-0: left out (status 401)')
  t.match(looked.out, 'GET /list-449: left out (not asked: init sends at most 400 requests)')
  t.equal(signOuts(looked).length, 1)
  t.ok(looked.backend.seen.length <= 400)
})

t.test('the session is ended, too, where a request fails', async t => {
  const looked = await look(t, routes(1), {
    header: 'authorization',
    isDead: ({ method }) => method === 'GET'
  })
  t.match(looked, { code: 1, err: / does not answer: / })
  t.match(signOuts(looked), [{ headers: { authorization: `Bearer ${token}` } }])
})
