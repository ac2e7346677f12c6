/**
 * The pieces of a request that only observe it, called as a signed-in request of a proxied route
 * calls them: access log, metrics, trace context, and the record for `console-gateway why`.
 */
import { randomUUID } from 'node:crypto'
import { addAccessLog } from '../src/app/hooks/access-log.ts'
import { createRequestMetrics } from '../src/app/hooks/metrics.ts'
import { createMetrics } from '../src/observability/metrics.ts'
import { RecentRequests } from '../src/observability/recent-requests.ts'
import { Trail, TrailAttempt } from '../src/observability/trail.ts'
import { contextsOnly } from '../src/observability/traces/tracer.ts'
import { createLogger } from '../src/services/services.ts'

type Hook = (request: unknown, reply: unknown, done: () => void) => void

interface Parts {
  readonly level: 'info' | 'silent'
  /** How many requests are kept. */
  readonly keep: number
}

const maxIds = 100_000
const rules = [
  {
    name: 'signed-in',
    rate: { max: 600, windowMs: 60_000, burst: 600 },
    enforced: true
  }
]

/** @returns a call that observes one request; true where it was counted */
export function createObservation({ level, keep }: Parts): (index: number) => boolean {
  const ids = Array.from({ length: maxIds }, () => randomUUID())
  const hooks: Hook[] = []
  const toWall = (time: number): number => time
  const app = {
    decorate: () => {},
    decorateRequest: () => {},
    addHook: (_: string, hook: Hook) => hooks.push(hook)
  }
  const recent = new RecentRequests({ keep, keepFailed: 2000 })
  addAccessLog(app as never, {
    log: createLogger({ level, format: 'json' }, { write: () => {} }),
    requests: createRequestMetrics(createMetrics()),
    running: { begin: () => () => {}, burden: () => () => {} },
    tracer: contextsOnly(),
    toWall,
    aliases: new Map(),
    recent: keep === 0 ? undefined : recent
  })
  const [observe] = hooks
  let close = (): void => {}
  const raw = {
    writableFinished: true,
    on: (_: string, listener: () => void) => {
      close = listener
    }
  }
  const reply = { raw, statusCode: 200, request: { method: 'GET' }, getHeader: () => '5000' }
  const live = {
    session: { id: 'a1b2c3d4e5f6', createdAt: Date.now(), source: 'file', identity: alice }
  }
  const config = { route: 'orders', upstream: 'backend', url: '/api/orders' }
  const done = (): void => {}
  return index => {
    const request = {
      id: ids[index % maxIds],
      method: 'GET',
      ip: '192.0.2.1',
      address: undefined,
      raw: { url: '/api/orders?page=1', headers: {} },
      routeOptions: { config, url: '/api/orders' },
      protocol: 'http',
      live,
      server: { toWall },
      log: undefined,
      errorCode: undefined,
      exchange: { firstByteMs: 1.25, cutCode: undefined },
      onResponseClose: [],
      trail: undefined as Trail | undefined
    }
    observe?.(request, reply, done)
    if (request.trail === undefined) return false
    writeStages(request.trail)
    close()
    return request.trail.status === 200
  }
}

const alice = { id: '1001', username: 'alice', name: 'Alice', roles: ['user'], profile: {} }

/** As the hooks and the call to the upstream write them. */
function writeStages(trail: Trail): void {
  trail.sessionFrom = 'cache'
  trail.rules = rules
  trail.verdicts = [{ exceeded: false, remaining: 588, resetMs: 60_000 }]
  const attempt = trail.addAttempt(new TrailAttempt('backend', 'http://127.0.0.1:8080'))
  attempt.end(200)
}
