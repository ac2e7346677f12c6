/** Callers of limits for people. */

/** A key of counters (plan.ts, app/hooks/rate-limit-adapter.ts), for people. */
export function whomOf(name: string, kind: string, by: readonly string[]): (key: string) => string {
  if (kind === 'attempts') {
    return key => {
      const who = key.slice(name.length + 1)
      const blank = who.lastIndexOf(' ')
      if (by.includes('account') && by.includes('address')) {
        return `account ${who.slice(0, blank)}, address ${who.slice(blank + 1)}`
      }
      return `${by.includes('account') ? 'account' : 'address'} ${who}`
    }
  }
  const tail = `}${name}.${kind}`
  return key => {
    const end = key.indexOf(tail)
    if (key.startsWith('{a:')) return `address ${key.slice(3, end)}`
    const more = key.slice(end + tail.length + 1)
    const [session = ''] = by.includes('session') ? more.split('.', 1) : []
    const address = by.includes('address')
      ? more.slice(by.includes('session') ? session.length + 1 : 0)
      : ''
    const who = key.slice(3, end)
    const slash = who.indexOf('/')
    const user = `${who.slice(slash + 1)} of ${who.slice(0, slash)}`
    const withSession = session === '' ? '' : `, session ${session}`
    return `user ${user}${withSession}${address === '' ? '' : `, address ${address}`}`
  }
}
