/** Which requests a route's access lets pass, and which of them count as use of the session. */
import t from 'tap'
import type { Access } from '../../../src/app/hooks/context.ts'
import { createGuard } from '../../../src/app/hooks/guard.ts'
import type { EndReason } from '../../../src/session/record.ts'

const now = 1_700_000_000_000
const used = now + 600_000

interface Route {
  readonly access?: Access
  readonly touch?: boolean
  readonly credentialFrom?: string
}

interface Signed {
  readonly roles?: readonly string[]
  readonly source?: string
  readonly absoluteEnd?: number
}

function setUp({ sendsTimeLeft = true, idleEnd = now + 5999 } = {}) {
  const uses: unknown[] = []
  const sessions = {
    use: (live: unknown) => {
      uses.push(live)
      return used
    },
    now: () => now
  }
  const check = createGuard({ sessions: sessions as never, sendsTimeLeft })
  const liveOf = ({ roles = ['clerk'], source = 'a', absoluteEnd = now + 90_000 }: Signed) => ({
    session: { identity: { roles }, source, absoluteEnd },
    idleEnd
  })
  /** @param signed undefined for a request without a session */
  function ask(routeConfig: Route, signed: Signed | undefined, ended?: EndReason) {
    const request = { routeConfig, live: signed && liveOf(signed), ended, trail: {} }
    const headers: Record<string, unknown> = {}
    const reply = {
      header: (name: string, value: unknown) => {
        headers[name] = value
        return reply
      }
    }
    const decisions: Array<(Error & { code?: string }) | undefined> = []
    check(request as never, reply as never, error => void decisions.push(error))
    if (decisions.length !== 1) throw new Error(`decided ${decisions.length} times`)
    return { code: decisions[0]?.code, headers, request }
  }
  return { ask, uses }
}

const withoutSession = [
  [undefined, 'session.none'],
  ['idle', 'session.idle'],
  ['revoked', 'session.revoked']
] as const

t.test('without a session only a public route passes, and others say how it ended', t => {
  const { ask, uses } = setUp()
  for (const [ended, code] of withoutSession) {
    t.equal(ask({ access: 'public' }, undefined, ended).code, undefined)
    t.equal(ask({ access: 'session' }, undefined, ended).code, code)
    t.equal(ask({}, undefined, ended).code, code, 'a route that says nothing is not public')
    t.equal(ask({ access: { roles: ['clerk'] } }, undefined, ended).code, code)
    t.equal(ask({ credentialFrom: 'a' }, undefined, ended).code, code)
  }
  t.same(uses, [])
  t.end()
})

t.test('a route of roles takes a user who has one of them', t => {
  const { ask, uses } = setUp()
  const route = { access: { roles: ['admin', 'auditor'] } }
  t.equal(ask(route, { roles: ['clerk', 'auditor'] }).code, undefined)
  t.equal(ask(route, { roles: ['admin'] }).code, undefined)
  t.equal(uses.length, 2)
  for (const roles of [[], ['clerk'], ['Admin'], ['admin '], ['clerk', 'guest']]) {
    const { code, headers, request } = ask(route, { roles })
    t.equal(code, 'route.forbidden', roles.join())
    t.same(headers, {})
    t.match(request.trail, { needsRoles: ['admin', 'auditor'] })
  }
  t.equal(ask({ access: { roles: [] } }, { roles: ['admin'] }).code, 'route.forbidden')
  t.equal(uses.length, 2, 'a refused request keeps no session alive')
  t.equal(ask({ access: 'session' }, { roles: [] }).code, undefined)
  t.end()
})

t.test('a route of one source takes its sessions only', t => {
  const { ask, uses } = setUp()
  t.equal(ask({ credentialFrom: 'a' }, { source: 'a' }).code, undefined)
  t.equal(ask({ credentialFrom: 'a' }, { source: 'b' }).code, 'route.credential')
  t.equal(uses.length, 1)
  t.equal(ask({}, { source: 'b' }).code, undefined)
  t.end()
})

t.test('a request uses its session, unless its route says no', t => {
  const { ask, uses } = setUp()
  for (const route of [{}, { touch: true }]) {
    const { headers, request } = ask(route, {})
    t.match(request.live, { idleEnd: used })
    t.same(headers, { 'x-session-idle-in': 90, 'x-session-absolute-in': 90 })
  }
  t.equal(uses.length, 2)
  const { headers, request } = ask({ touch: false }, {})
  t.match(request.live, { idleEnd: now + 5999 })
  t.same(headers, { 'x-session-idle-in': 5, 'x-session-absolute-in': 90 })
  t.equal(uses.length, 2)
  const last = ask({ touch: false }, { absoluteEnd: now - 1 })
  t.same(last.headers, { 'x-session-idle-in': 0, 'x-session-absolute-in': 0 })
  t.end()
})

t.test('the time that is left is sent where config says so', t => {
  const { ask, uses } = setUp({ sendsTimeLeft: false })
  const { headers, request } = ask({}, {})
  t.same(headers, {})
  t.match(request.live, { idleEnd: used })
  t.equal(uses.length, 1)
  t.end()
})
