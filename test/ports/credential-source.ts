/** What every credential source promises at the sign-in; run once for each kind. */
import type { Test } from 'tap'
import { type Called, cookieOf, type TestGateway } from '../support/gateway.ts'

/** Of `alice`, named `Alice`, in the roles admin and user. */
export const rightPassword = 'pä$$ “word” 🔑 & more'

/** @param near spellings of alice that are other users */
export function credentialSourceContract(
  t: Test,
  { call, attempt }: Pick<TestGateway, 'call' | 'attempt'>,
  near: readonly string[] = ['Alice', 'alice ']
): void {
  const signIn = async (username = 'alice', password = rightPassword) =>
    await attempt(username, { password })
  const refusal = ({ status, json }: Called) => `${status} ${json.errorCode}`
  const refused = '401 login.refused'

  t.test('the right password gives the identity', async t => {
    const cookie = cookieOf(await signIn())
    const { json: session } = await call('/api/session', { cookie })
    const user = { id: '1', username: 'alice', name: 'Alice' }
    t.match(session.data, { user, roles: ['admin', 'user'] })
    const { json: profile } = await call('/api/account/profile', { cookie })
    t.match(profile.data, { email: 'alice@example.com' })
  })

  t.test('a wrong password is refused, however near', async t => {
    const right = rightPassword
    const wrong = [` ${right}`, `${right} `, `${right}\u0000`, right.slice(0, -1)]
    wrong.push(right.toUpperCase(), right.normalize('NFD'))
    for (const password of [...wrong, 'wrong', '{password}', '\u0000', 'x'.repeat(1024)]) {
      t.equal(refusal(await signIn('alice', password)), refused, JSON.stringify(password))
    }
  })

  t.test('an unknown user is refused in the same words, whatever the password', async t => {
    const born = ['__proto__', 'constructor', 'toString']
    const others = ['alice\u0000', 'nobody', '{username}', '*', '張偉', 'x'.repeat(255)]
    for (const username of [...near, ...born, ...others]) {
      t.equal(refusal(await signIn(username)), refused, JSON.stringify(username))
    }
  })

  t.test('attempts at once do not get each other’s verdict', async t => {
    const typed = Array.from({ length: 20 }, (_, index) => (index % 2 ? 'wrong' : rightPassword))
    const answers = await Promise.all(typed.map(async password => await signIn('alice', password)))
    const right = answers.map(({ status }, index) => status === (index % 2 ? 401 : 200))
    t.same(new Set(right), new Set([true]))
  })
}
