/** What clients of tests need to sign in. */
export const password = 'correct horse battery'

/** `login` of a gateway whose users sign in at the back-end `b`. */
export const signInAtBackend = (source: object = {}) => ({
  sources: {
    b: { kind: 'upstream-login', upstream: 'b', path: '/login', user: { id: 'id' }, ...source }
  }
})

/** The `name=value` of the session cookie among the Set-Cookie fields of an answer. */
export function cookieIn(setCookies: readonly string[] | string | undefined): string {
  const found = [setCookies ?? []].flat().find(cookie => /^(?:__Host-)?console_sid=/.test(cookie))
  return found?.split(';', 1)[0] ?? ''
}
