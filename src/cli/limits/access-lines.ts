/** Lines of an access log as requests of the past: the gateway's own, or nginx' Combined Log Format. */
import type { Config } from '../../config/schema/config.ts'
import { createCountedAddress } from '../../app/hooks/address.ts'
import { errorKinds } from '../../errors.ts'
import { unknownRoute } from '../../app/hooks/context.ts'
import type { PastRequest } from '../../limits/replay/replay.ts'
import { createPublicPaths } from './public-paths.ts'

export interface LineCounts {
  lines: number
  /** Lines about something else than a request, such as a sign-in. */
  others: number
  /** Neither JSON of the gateway nor Combined Log Format. */
  broken: number
  /** Requests that no limit looks at: the console's files, and preflights. */
  unlimited: number
  /** Requests of somebody signed in, but the log does not say who. */
  unattributed: number
  /** Of all, those in Combined Log Format. */
  combined: number
  /** Sign-ins that were refused for too many attempts: whether the password was right was not looked at. They count as wrong. */
  undecidedSignIns: number
  /** Requests with the cookie of a session that was over, if the line does not say which. */
  endedUnnamed: number
  /** Requests that got 401 then, in Combined Log Format: any of them may have had such a cookie. */
  endedUnknown: number
  /** Requests that got 429 then. */
  refusedThen: number
}

/** The codes of a 401 to the genuine cookie of a session that is over. */
const endedCodes: ReadonlySet<unknown> = new Set(
  Object.keys(errorKinds).filter(code => {
    return code.startsWith('session.') && code !== 'session.none' && code !== 'session.unavailable'
  })
)

type Fields = Readonly<Record<string, unknown>>
type Text = (name: string) => string | undefined

const combined =
  /^(\S+) \S+ (.+?) \[(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}:\d{2}:\d{2}) ([+-]\d{2})(\d{2})\] "([A-Z]+) (\S+)[^"]*" (\d{3})(?: |$)/
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
/** A line of our own stands behind this where a container's runtime kept it. */
const runtime = /^\S+ (?:stdout|stderr) [FP] (?=\{)/

export function createAccessLines(config: Config) {
  const counts: LineCounts = {
    lines: 0,
    others: 0,
    broken: 0,
    unlimited: 0,
    unattributed: 0,
    combined: 0,
    undecidedSignIns: 0,
    endedUnnamed: 0,
    endedUnknown: 0,
    refusedThen: 0
  }
  const countedAddress = createCountedAddress(config.limits.ipv6Prefix)
  const paths = createPublicPaths(config)
  /** By user name: as sign-ins tell them, else as the users files do. */
  const roles = new Map(
    Object.values(config.users).flatMap(({ users }) =>
      Object.entries(users).map(([name, user]) => [name, user.roles] as const)
    )
  )
  const withoutRoles = new Set<string>()
  /** The account that was tried and refused, by request id; until the line of the request comes. */
  const refusals = new Map<string, string>()
  const known = { second: '', ms: 0 }

  function callerOf(user: string, session: string): PastRequest['caller'] {
    const its = roles.get(user)
    if (its === undefined && withoutRoles.size < 100_000) withoutRoles.add(user)
    // A line says no credential source: equal names count as one user.
    return { id: session, source: 'log', identity: { id: user, roles: its ?? [] } }
  }

  function read(line: string): PastRequest | undefined {
    if (line === '' || line === '\r') return undefined
    counts.lines++
    return line.charCodeAt(0) === 123
      ? readOwn(line)
      : runtime.test(line)
        ? readOwn(line.replace(runtime, ''))
        : readCombined(line)
  }

  function readOwn(line: string): PastRequest | undefined {
    let fields: Fields
    try {
      fields = JSON.parse(line) as Fields
    } catch {
      counts.broken++
      return undefined
    }
    // As Docker keeps it.
    const { log } = fields
    if (typeof log === 'string' && log.startsWith('{') && fields['stream'] !== undefined)
      return readOwn(log)
    const text: Text = name => (typeof fields[name] === 'string' ? fields[name] : undefined)
    if (fields['msg'] === 'request') return readRequest(fields, text)
    counts.others++
    const [user, id] = [text('user'), text('requestId')]
    if (fields['event'] === 'login' && user !== undefined && Array.isArray(fields['roles']))
      roles.set(
        user,
        fields['roles'].filter(role => typeof role === 'string')
      )
    if (fields['event'] === 'login.refused' && user !== undefined && id !== undefined) {
      if (refusals.size >= 100_000) refusals.clear()
      refusals.set(id, user)
    }
    return undefined
  }

  function readRequest({ status, ms, time: at }: Fields, text: Text): PastRequest | undefined {
    const [route, method, address] = [text('route'), text('method'), text('address')]
    const endedAt = typeof at === 'number' ? at : timeOf(String(at))
    if (
      route === undefined ||
      method === undefined ||
      address === undefined ||
      typeof status !== 'number' ||
      !Number.isFinite(endedAt)
    )
      return void counts.broken++
    const [user, session] = [text('user'), text('session')]
    // The session store was away, so nobody knew who asked.
    if (status === 503 && session === undefined && paths.needsSession(route))
      return void counts.unattributed++
    const refusal = refusals.get(text('requestId') ?? '')
    if (refusal !== undefined) refusals.delete(text('requestId') ?? '')
    const isLogin = route === 'login'
    // Who signed in just now asked as nobody yet; who signed out was still somebody.
    const isSignedIn =
      user !== undefined &&
      (isLogin
        ? session !== undefined && (refusal !== undefined || status >= 400)
        : session !== undefined || route === 'logout')
    const tried = refusal ?? (isSignedIn ? undefined : user)
    return finish({
      at: endedAt - (typeof ms === 'number' ? ms : 0),
      endedAt,
      route,
      method,
      address,
      status,
      isRefused: refusal !== undefined,
      user: isSignedIn ? user : undefined,
      session: session ?? '',
      ended: session === undefined ? endedOf(route, address, text) : undefined,
      tried,
      isTried: isLogin && user !== undefined
    })
  }

  /** The session whose cookie a request had though it was over. @see app/hooks/limits.ts */
  function endedOf(route: string, address: string, text: Text): string | undefined {
    const named = text('endedSession')
    if (named !== undefined) return named
    if (!endedCodes.has(text('code')) || !paths.needsSession(route)) return undefined
    counts.endedUnnamed++
    return `of address ${countedAddress({ ip: address })}`
  }

  /** Of lines one after the other most are in the same second. */
  function timeOf(iso: string): number {
    if (iso.length !== 24 || !iso.endsWith('Z')) return Date.parse(iso)
    const second = iso.slice(0, 19)
    if (second !== known.second) Object.assign(known, { second, ms: Date.parse(`${second}Z`) })
    return known.ms + Number(iso.slice(20, 23))
  }

  function readCombined(line: string): PastRequest | undefined {
    const [
      ,
      address = '',
      remote,
      day,
      month = '',
      year,
      clock,
      hours,
      minutes,
      method = '',
      target = '',
      code
    ] = combined.exec(line) ?? []
    const endedAt = Date.parse(
      `${year}-${String(months.indexOf(month) + 1).padStart(2, '0')}-${day}T${clock}${hours}:${minutes}`
    )
    if (code === undefined || !Number.isFinite(endedAt)) return void counts.broken++
    counts.combined++
    const status = Number(code)
    const route = paths.routeOf(target)
    const user = remote === '-' ? undefined : remote
    if (user === undefined && status !== 401 && paths.needsSession(route))
      return void counts.unattributed++
    if (user === undefined && status === 401 && paths.needsSession(route)) counts.endedUnknown++
    return finish({
      at: endedAt,
      endedAt,
      route,
      method,
      address,
      status,
      isRefused: false,
      user: paths.isPublic(route) ? undefined : user,
      session: '',
      ended: undefined,
      tried: undefined,
      isTried: route === 'login' && method === 'POST' && status !== 400 && status !== 403
    })
  }

  interface Seen {
    readonly at: number
    readonly endedAt: number
    readonly route: string
    readonly method: string
    readonly address: string
    readonly status: number
    /** A line says that the password was wrong. */
    readonly isRefused: boolean
    readonly user: string | undefined
    readonly session: string
    readonly ended: string | undefined
    readonly tried: string | undefined
    /** Whether it is a sign-in that named an account. */
    readonly isTried: boolean
  }

  function finish(seen: Seen): PastRequest | undefined {
    const { at, endedAt, route, method, address, status, isRefused } = seen
    const { user, session, ended, tried, isTried } = seen
    if (route === 'console' || (route === unknownRoute && status < 400))
      return void counts.unlimited++
    if (status === 429) counts.refusedThen++
    if (isTried && status === 429) counts.undecidedSignIns++
    return {
      at,
      endedAt,
      route,
      method,
      address: countedAddress({ ip: address }),
      caller: user === undefined ? undefined : callerOf(user, session),
      ...(ended !== undefined && { ended }),
      ...(isTried && {
        signIn: { account: tried, accepted: !isRefused && status !== 401 && status !== 429 }
      })
    }
  }

  return { counts, withoutRoles, read }
}
