/** The way of a request through its route: asks the upstream and the parts, for `respond.ts`. */
import { Readable } from 'node:stream'
import { setImmediate as requestsInBetween } from 'node:timers/promises'
import httpProxy from '@fastify/http-proxy'
import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { toRouterPath, withHead } from '../../config/schema/public-path.ts'
import type { FallbackConfig } from '../../config/schema/route.ts'
import { credentialOf } from '../../config/schema/routes.ts'
import { GatewayError, isOfUpstream, toGatewayError } from '../../errors/errors.ts'
import { announcesBody, maxCollectedBytes, watchRate } from '../../proxy/request-body.ts'
import type { Call } from '../../proxy/receiver.ts'
import { discard, failureStatuses } from '../../proxy/response.ts'
import type { Upstream } from '../../proxy/upstream.ts'
import { jsonType } from '../../shaping/envelope.ts'
import type { Gateway } from '../gateway.ts'
import { leavingOf } from '../hooks/sending.ts'
import { UpgradeResponse } from '../hooks/upgrade.ts'
import type { ForwardedRoute, OwnRoute, Route } from './compile.ts'
import { compileOutgoing, readOutgoingBody } from './outgoing.ts'
import { fetchParts, type Merge } from './parts.ts'
import { createRespond, sendError, sendShaped } from './respond.ts'
import { createOpening } from './websocket.ts'

const dropped = 'the body of the request was dropped: `passGetBody` of the route would send it'

/** Adds those of `routes` that go to an upstream. */
export async function addForwarded(scope: FastifyInstance, routes: readonly Route[]) {
  const { gateway } = scope
  for (const route of routes) {
    if (route.target === undefined) continue
    await scope.register(httpProxy, {
      upstream: route.target.upstream.origin,
      routes: route.paths.map(toRouterPath),
      httpMethods: withHead(route.methods),
      config: configOf(route),
      // A reply sent by it ends the request, so the plugin's own handler never runs.
      preHandler: createHandler(route, gateway),
      // That one gets no connections of its own.
      http: {},
      globalAgent: true,
      disableRequestLogging: true,
      disableCache: true
    })
    await requestsInBetween()
  }
}

export function addOwnRoute(scope: FastifyInstance, route: OwnRoute): void {
  const { parts, shape } = route.shaping
  const method = withHead(route.methods)
  const handler = async (request: FastifyRequest, reply: FastifyReply) => {
    const merge = parts && (await fetchParts(request, parts, leavingOf(reply.raw).signal))
    await sendShaped(reply.code(route.status), route.initialValue(request.live), shape, { merge })
    return reply
  }
  for (const path of route.paths) {
    scope.route({ method, url: toRouterPath(path), config: configOf(route), handler })
  }
}

function configOf({ name, access, keys, touch, errorStatus, target }: Route): FastifyContextConfig {
  const common = { route: name, access, keys, touch, errorStatus }
  if (target === undefined) return common
  const { passEncodedSlashes = false, websocket } = target.written
  const { from } = credentialOf(target.upstream.config.credential)
  return {
    ...common,
    upstream: target.upstreamName,
    ...(from !== undefined && { credentialFrom: from }),
    maxBody: target.maxBody,
    passEncodedSlashes,
    takesUpgrades: websocket !== undefined
  }
}

/** @returns sends the response, or an error, whenever it can: nothing is to wait for it */
function createHandler(route: ForwardedRoute, gateway: Gateway) {
  const { target, shaping } = route
  const { upstream, timeoutMs, written } = target
  const { fallback } = written
  const toOutgoing = compileOutgoing(route, gateway)
  const respond = createRespond(route, gateway)
  const open = written.websocket && createOpening(route, gateway, toOutgoing, respond)
  const collectBytes = shaping?.maxShaped ?? maxCollectedBytes
  const { totalTimeout: totalMs } = upstream.config
  const receiving = { timeoutMs, totalMs, collectBytes, collectsAll: shaping !== undefined }
  const mayDrop = !target.isReadOnly && written.passGetBody !== true
  const { ensure, readSession } = target.credentials

  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    const end = leavingOf(reply.raw)
    const { signal } = end
    let body: Call['body'] = null
    let parts: Promise<Merge> | undefined
    try {
      const { method, path, headers } = toOutgoing(request)
      if (announcesBody(request.raw)) {
        if (mayDrop && request.body === undefined) {
          const fields = { event: 'request.body-dropped', route: route.name, method }
          gateway.warnOnce(`body ${route.name}`, fields, dropped)
        }
        body = await readOutgoingBody(request, target, headers, collectBytes)
        if (body instanceof Readable) {
          // Not once its response has begun.
          const isEarly = () => request.trail.upstreamMs === undefined
          watchRate(request.raw, () => isEarly() && end.abort(new GatewayError('request.timeout')))
        }
      }
      if (shaping?.parts !== undefined && method === 'GET') {
        parts = fetchParts(request, shaping.parts, signal)
      }
      const recorded = { trail: request.trail, purpose: 'request' } as const
      const call = { method, path, headers, body, signal, recorded, ...receiving }
      const mayFail = fallback !== undefined && (method === 'GET' || method === 'HEAD')
      const asked = mayFail ? sendUnlessFailed(upstream, call) : upstream.send(call)
      // A required part that fails ends the request at once.
      let response = await (parts === undefined
        ? asked
        : Promise.race([asked, parts.then(() => asked)]))
      if (response !== undefined && readSession !== undefined && request.live !== undefined) {
        response = await readSession(request.live, call, response)
      }
      if (reply.raw.closed) return
      if (response !== undefined) await respond(request, reply, response, parts)
      else if (fallback !== undefined) sendFallback(reply, fallback)
    } catch (error) {
      // A refused request did not reach undici, which otherwise ends its body.
      if (body instanceof Readable) body.destroy()
      if (parts !== undefined) end.abort(toGatewayError(error))
      sendError(reply, error)
    }
  }
  const handle = async (request: FastifyRequest, reply: FastifyReply) => {
    const { live, trail } = request
    const { raw } = reply
    const ensured = live && ensure(live, trail)
    request.live = ensured instanceof Promise ? await ensured : ensured
    if (open !== undefined && raw instanceof UpgradeResponse) await open(request, reply, raw)
    else await answer(request, reply)
  }
  return (request: FastifyRequest, reply: FastifyReply): void =>
    void handle(request, reply).catch((error: unknown) => sendError(reply, error))
}

/** @returns undefined where the upstream failed, and the fixed response is to be sent */
async function sendUnlessFailed({ send }: Upstream, call: Call) {
  try {
    const response = await send(call)
    if (!failureStatuses.has(response.status)) return response
    discard(response)
  } catch (error) {
    const failure = toGatewayError(error)
    if (!isOfUpstream(failure) || !failureStatuses.has(failure.status)) throw error
  }
  return undefined
}

function sendFallback(reply: FastifyReply, { body }: FallbackConfig): void {
  reply.request.trail.isFallback = true
  void reply.code(200).header('content-type', jsonType).send(JSON.stringify(body))
}
