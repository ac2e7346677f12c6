/** What every credential source promises; run once for each adapter. */
import type { Test } from 'tap'
import type { SignInAttempt, PasswordSource } from '../../src/login/credential-source.ts'

/**
 * What the source under test has to know: `alice` with this password, named `Alice`, in the roles
 * admin and user.
 */
export const rightPassword = 'pä$$ “word” 🔑 & more'

export const attempt = (over: Partial<SignInAttempt> = {}): SignInAttempt => ({
  username: 'alice',
  password: rightPassword,
  extra: {},
  address: '192.0.2.7',
  requestId: 'req-1',
  ...over
})

/** @param near spellings of alice that are other users */
export function credentialSourceContract(
  t: Test,
  source: PasswordSource,
  near: readonly string[] = ['Alice', 'alice ']
): void {
  /** What it says, but for how sure it is. */
  const refusal = async (over: Partial<SignInAttempt>) => {
    const verdict = await source.verify(attempt(over))
    return { ...verdict, isFinal: undefined, isUnknown: undefined }
  }

  const refused = { vouched: false, isFinal: undefined, isUnknown: undefined }

  t.test('the right password gives the identity', async t => {
    const verdict = await source.verify(attempt())
    t.match(verdict, {
      vouched: true,
      identity: {
        id: '1',
        username: 'alice',
        name: 'Alice',
        roles: ['admin', 'user'],
        profile: { email: 'alice@example.com' }
      }
    })
  })

  t.test('a wrong password is refused, however near', async t => {
    const right = rightPassword
    const near = [` ${right}`, `${right} `, `${right}\u0000`, right.slice(0, -1)]
    near.push(right.toUpperCase(), right.normalize('NFD'))
    for (const password of [...near, 'wrong', '{password}', '\u0000', 'x'.repeat(1024)]) {
      t.same(await refusal({ password }), refused, JSON.stringify(password))
    }
  })

  t.test('an unknown user is refused in the same words, whatever the password', async t => {
    const born = ['__proto__', 'constructor', 'toString']
    const others = ['alice\u0000', 'nobody', '{username}', '*', '張偉', 'x'.repeat(255)]
    for (const username of [...near, ...born, ...others]) {
      t.same(await refusal({ username }), refused, JSON.stringify(username))
    }
  })

  t.test('attempts at once do not get each other’s verdict', async t => {
    const isRight = Array.from({ length: 20 }, (_, index) => index % 2 === 0)
    const verdicts = isRight.map(
      async right => await source.verify(attempt(right ? {} : { password: 'wrong' }))
    )
    t.same(
      (await Promise.all(verdicts)).map(({ vouched }) => vouched),
      isRight
    )
  })
}
