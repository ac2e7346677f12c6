/** Callers of limits for people. */

/** Undefined: the limit does not count by it. */
export interface Caller {
  readonly account?: string
  /** The id, with the credential source. */
  readonly user?: string
  readonly source?: string
  readonly session?: string
  readonly address?: string
}

/** Reads a key of counters (plan.ts, app/hooks/rate-limit-adapter.ts). */
export function callersOf(
  name: string,
  kind: string,
  by: readonly string[]
): (key: string) => Caller {
  if (kind === 'attempts') {
    return key => {
      const who = key.slice(name.length + 1)
      if (!by.includes('account')) return { address: who }
      if (!by.includes('address')) return { account: who }
      const blank = who.lastIndexOf(' ')
      return { account: who.slice(0, blank), address: who.slice(blank + 1) }
    }
  }
  const tail = `}${name}.${kind}`
  return key => {
    const end = key.indexOf(tail)
    if (key.startsWith('{a:')) return { address: key.slice(3, end) }
    const more = key.slice(end + tail.length + 1)
    const [session = ''] = by.includes('session') ? more.split('.', 1) : []
    const address = by.includes('address')
      ? more.slice(by.includes('session') ? session.length + 1 : 0)
      : ''
    const who = key.slice(3, end)
    const slash = who.indexOf('/')
    return {
      user: who.slice(slash + 1),
      source: who.slice(0, slash),
      ...(session !== '' && { session }),
      ...(address !== '' && { address })
    }
  }
}

export function whomOf({ account, user, source, session, address }: Caller): string {
  const parts = [
    account !== undefined && `account ${account}`,
    user !== undefined && `user ${user} of ${source}`,
    session !== undefined && `session ${session}`,
    address !== undefined && `address ${address}`
  ]
  return parts.filter(part => part !== false).join(', ')
}
