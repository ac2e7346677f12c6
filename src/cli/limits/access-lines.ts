/** Parses an access log into past requests: the gateway's own, or nginx' Combined Log Format. */
import { BoundedMap } from '../../bounded-map.ts'
import type { Config } from '../../config/schema/config.ts'
import { createCountedAddress } from '../../app/hooks/address.ts'
import { errorKinds } from '../../errors.ts'
import { unknownRoute } from '../../app/hooks/context.ts'
import type { PastRequest } from '../../limits/replay/replay.ts'
import type { LineCounts } from './line-counts.ts'
import { createPublicPaths, type PublicPaths } from './public-paths.ts'

/** The codes of a 401 to the genuine cookie of an ended session. */
const endedCodes: ReadonlySet<unknown> = new Set(
  Object.keys(errorKinds).filter(code => {
    return code.startsWith('session.') && code !== 'session.none' && code !== 'session.unavailable'
  })
)

type Fields = Readonly<Record<string, unknown>>
type Text = (name: string) => string | undefined

/** Linear for every line: the lazy target ends at its first blank. */
const combined =
  /^(\S+) \S+ (.+?) \[(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}:\d{2}:\d{2}) ([+-]\d{2})(\d{2})\] "([A-Z]+) (\S+?)(?: [^"]*)?" (\d{3})(?: |$)/
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
/** The prefix of a container runtime before a line of the gateway. */
const runtime = /^\S+ (?:stdout|stderr) [FP] (?=\{)/

/** A request as one log line describes it. */
interface LoggedRequest {
  readonly at: number
  readonly endedAt: number
  readonly route: string
  readonly method: string
  readonly address: string
  readonly status: number
  /** Whether a line of the log reports a wrong password. */
  readonly isRefused: boolean
  readonly user: string | undefined
  readonly session: string
  readonly ended: string | undefined
  readonly tried: string | undefined
  /** Whether the request is a sign-in that named an account. */
  readonly isTried: boolean
}

const maxUsers = 100_000
const maxRefusals = 100_000
const openBrace = 123

export interface AccessLines {
  readonly counts: LineCounts
  /** Users whose roles are unknown: in no sign-in of the log and in no users file. */
  readonly withoutRoles: ReadonlySet<string>
  /** @returns undefined for a line about something else, or one that cannot be parsed */
  readonly read: (line: string) => PastRequest | undefined
}

export function createAccessLines(config: Config): AccessLines {
  return new LineReader(config)
}

class LineReader implements AccessLines {
  readonly counts: LineCounts = {
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
  readonly withoutRoles = new Set<string>()
  readonly #countedAddress: ReturnType<typeof createCountedAddress>
  readonly #paths: PublicPaths
  readonly #timeOf = createTimeReader()
  /** By user name: from sign-ins of the log, else from the users files. */
  readonly #roles: Map<string, readonly string[]>
  /** The account of a refused sign-in, by request id; kept until the line of the request comes. */
  readonly #refusals = new BoundedMap<string>(maxRefusals)

  constructor(config: Config) {
    this.#countedAddress = createCountedAddress(config.limits.ipv6Prefix)
    this.#paths = createPublicPaths(config)
    this.#roles = new Map(
      Object.values(config.users).flatMap(({ users }) =>
        Object.entries(users).map(([name, user]) => [name, user.roles] as const)
      )
    )
  }

  read(line: string): PastRequest | undefined {
    if (line === '' || line === '\r') return undefined
    this.counts.lines++
    if (line.charCodeAt(0) === openBrace) return this.#readOwn(line)
    if (runtime.test(line)) return this.#readOwn(line.replace(runtime, ''))
    return this.#readCombined(line)
  }

  #readOwn(line: string): PastRequest | undefined {
    const fields = parseFields(line)
    if (fields === undefined) return void this.counts.broken++
    // Docker's json-file driver wraps each line.
    const { log } = fields
    if (typeof log === 'string' && log.startsWith('{') && fields['stream'] !== undefined) {
      return this.#readOwn(log)
    }
    const text: Text = name => (typeof fields[name] === 'string' ? fields[name] : undefined)
    if (fields['msg'] === 'request') return this.#readRequest(fields, text)
    this.counts.others++
    this.#noteSignIn(fields, text)
    return undefined
  }

  /** Keeps what other lines need of a sign-in's line: a user's roles, the refused account. */
  #noteSignIn({ event, roles }: Fields, text: Text): void {
    const [user, id] = [text('user'), text('requestId')]
    if (user === undefined) return
    if (event === 'login' && Array.isArray(roles)) {
      this.#roles.set(
        user,
        roles.filter(role => typeof role === 'string')
      )
    }
    if (event === 'login.refused' && id !== undefined) {
      this.#refusals.set(id, user)
    }
  }

  #readRequest({ status, ms, time }: Fields, text: Text): PastRequest | undefined {
    const [route, method, address] = [text('route'), text('method'), text('address')]
    const endedAt = typeof time === 'number' ? time : this.#timeOf(String(time))
    const at = endedAt - (typeof ms === 'number' ? ms : 0)
    if (
      route === undefined ||
      method === undefined ||
      address === undefined ||
      typeof status !== 'number' ||
      !isTime(endedAt) ||
      !isTime(at)
    ) {
      return void this.counts.broken++
    }
    const [user, session] = [text('user'), text('session')]
    // The session store was unavailable, so the caller is unknown.
    if (status === 503 && session === undefined && this.#paths.needsSession(route)) {
      return void this.counts.unattributed++
    }
    const refusal = this.#takeRefusal(text('requestId') ?? '')
    const isSignedIn =
      user !== undefined &&
      wasSignedIn({ route, status, session, isRefused: refusal !== undefined })
    return this.#toPastRequest({
      at,
      endedAt,
      route,
      method,
      address,
      status,
      isRefused: refusal !== undefined,
      user: isSignedIn ? user : undefined,
      session: session ?? '',
      ended: session === undefined ? this.#endedOf(route, address, text) : undefined,
      tried: refusal ?? (isSignedIn ? undefined : user),
      isTried: route === 'login' && user !== undefined
    })
  }

  #takeRefusal(requestId: string): string | undefined {
    const refusal = this.#refusals.get(requestId)
    if (refusal !== undefined) this.#refusals.delete(requestId)
    return refusal
  }

  /** The ended session whose cookie a request carried. @see app/hooks/limits.ts */
  #endedOf(route: string, address: string, text: Text): string | undefined {
    const named = text('endedSession')
    if (named !== undefined) return named
    if (!endedCodes.has(text('code')) || !this.#paths.needsSession(route)) return undefined
    this.counts.endedUnnamed++
    return `of address ${this.#countedAddress({ ip: address })}`
  }

  #readCombined(line: string): PastRequest | undefined {
    const logged = parseCombined(line)
    if (logged === undefined) return void this.counts.broken++
    this.counts.combined++
    const { address, remote, method, target, status, endedAt } = logged
    const route = this.#paths.routeOf(target)
    const user = remote === '-' ? undefined : remote
    if (user === undefined && this.#paths.needsSession(route)) {
      if (status !== 401) return void this.counts.unattributed++
      this.counts.endedUnknown++
    }
    return this.#toPastRequest({
      at: endedAt,
      endedAt,
      route,
      method,
      address,
      status,
      isRefused: false,
      user: this.#paths.isPublic(route) ? undefined : user,
      session: '',
      ended: undefined,
      tried: undefined,
      isTried: route === 'login' && method === 'POST' && status !== 400 && status !== 403
    })
  }

  #toPastRequest(logged: LoggedRequest): PastRequest | undefined {
    const { at, endedAt, route, method, address, status, isRefused } = logged
    const { user, session, ended, tried, isTried } = logged
    if (route === 'console' || (route === unknownRoute && status < 400)) {
      return void this.counts.unlimited++
    }
    if (status === 429) this.counts.refusedThen++
    if (isTried && status === 429) this.counts.undecidedSignIns++
    return {
      at,
      endedAt,
      route,
      method,
      address: this.#countedAddress({ ip: address }),
      caller: user === undefined ? undefined : this.#callerOf(user, session),
      ...(ended !== undefined && { ended }),
      ...(isTried && {
        signIn: { account: tried, accepted: !isRefused && status !== 401 && status !== 429 }
      })
    }
  }

  #callerOf(user: string, session: string): PastRequest['caller'] {
    const roles = this.#roles.get(user)
    if (roles === undefined && this.withoutRoles.size < maxUsers) this.withoutRoles.add(user)
    // A line has no credential source, so equal names count as one user.
    return { id: session, source: 'log', identity: { id: user, roles: roles ?? [] } }
  }
}

/** The members of a JSON line; undefined for another line. */
function parseFields(line: string): Fields | undefined {
  try {
    return JSON.parse(line) as Fields
  } catch {
    return undefined
  }
}

/** Whether the user of a line was signed in when the request was sent. */
function wasSignedIn({
  route,
  status,
  session,
  isRefused
}: {
  readonly route: string
  readonly status: number
  readonly session: string | undefined
  readonly isRefused: boolean
}): boolean {
  // Before a successful sign-in there was no session; before a sign-out there still was.
  if (route === 'login') return session !== undefined && (isRefused || status >= 400)
  return session !== undefined || route === 'logout'
}

/** Whether a calendar has it: a time in nanoseconds is beyond the year 275760. */
function isTime(ms: number): boolean {
  return Math.abs(ms) <= 8.64e15
}

/** Parses each second once, because neighbouring lines mostly share it. */
function createTimeReader(): (iso: string) => number {
  let second = ''
  let secondMs = 0
  return iso => {
    if (iso.length !== 24 || !iso.endsWith('Z')) return Date.parse(iso)
    if (iso.slice(0, 19) !== second) {
      second = iso.slice(0, 19)
      secondMs = Date.parse(`${second}Z`)
    }
    return secondMs + Number(iso.slice(20, 23))
  }
}

/** The parts of a line in Combined Log Format; undefined for another line. */
function parseCombined(line: string) {
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
  if (code === undefined || !Number.isFinite(endedAt)) return undefined
  return { address, remote, method, target, status: Number(code), endedAt }
}
