/**
 * The way of a request through its route, from the hooks that let it pass (`app.ts`) to the
 * response: asks the upstream and the parts, and gives both to `respond.ts`.
 */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError, toGatewayError } from '../../errors/errors.ts'
import { writeJson } from '../../json/body.ts'
import { announcesBody, maxCollectedBytes, watchRate } from '../../proxy/request-body.ts'
import type { Call } from '../../proxy/receiver.ts'
import { sendJsonText } from '../endpoints/own.ts'
import type { Gateway } from '../gateway.ts'
import { leavingOf } from '../hooks/sending.ts'
import { takeCredentialOf } from './changed-credentials.ts'
import type { Judge } from './ended-sessions.ts'
import { sendFallback, sendWithFallback } from './fallback.ts'
import { compileOutgoing, readOutgoingBody } from './outgoing.ts'
import { fetchParts, type Merge } from './parts.ts'
import { createRespond } from './respond.ts'
import type { ForwardedRoute, OwnRoute, Route } from './route.ts'
import { sendShaped } from './shaped.ts'

/** It sends the response, or an error, whenever it can: nothing is to wait for it. */
export type Handler = (request: FastifyRequest, reply: FastifyReply) => void

/** Both directions of a route, which its WebSockets use too. */
export type Way = ReturnType<typeof compileWay>

export function compileWay(route: ForwardedRoute, gateway: Gateway, routes: readonly Route[]) {
  return {
    toOutgoing: compileOutgoing(route, gateway),
    respond: createRespond(route, gateway, routes)
  }
}

export function createHandler(
  route: ForwardedRoute,
  { toOutgoing, respond }: Way,
  gateway: Gateway,
  judge: Judge | undefined
): Handler {
  const { target, shaping } = route
  const { upstream, timeoutMs, isReadOnly, written } = target
  const { fallback, passGetBody } = written
  const collectBytes = shaping?.maxShaped ?? maxCollectedBytes
  const { totalTimeout: totalMs } = upstream.config
  const receiving = { timeoutMs, totalMs, collectBytes, collectsAll: shaping !== undefined }
  const send = sendWithFallback(upstream, fallback)
  const take = takeCredentialOf(gateway, target)
  let isNoted = false
  /** Once for the route: a client that sends a body with GET does so each time. */
  const noteDropped = ({ body, raw, log }: FastifyRequest) => {
    if (isNoted || body !== undefined || passGetBody === true || isReadOnly === true) return
    isNoted = true
    log.warn(
      { event: 'request.body-dropped', route: route.name, method: raw.method },
      'the body of the request was dropped: `passGetBody` of the route would send it'
    )
  }

  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    const end = leavingOf(reply.raw)
    const { signal } = end
    let body: Call['body'] = null
    let parts: Promise<Merge> | undefined
    try {
      const { method, path, headers } = toOutgoing(request)
      if (announcesBody(request.raw)) {
        noteDropped(request)
        body = await readOutgoingBody(request, target, headers, collectBytes)
        if (body instanceof Readable) watchUpload(request, end)
      }
      if (shaping?.parts !== undefined && method === 'GET') {
        parts = fetchParts(request, shaping.parts, signal)
      }
      const recorded = { trail: request.trail, purpose: 'request' } as const
      const call = { method, path, headers, body, signal, recorded, ...receiving }
      const asked = send(call)
      let response = await (parts === undefined ? asked : unlessFailed(parts, asked))
      const live = request.live
      if (judge !== undefined && response !== undefined) {
        response = await judge(live, call, response)
      }
      if (take !== undefined && live !== undefined && response !== undefined) {
        take(live, response.headers)
      }
      if (reply.raw.closed) return
      if (response !== undefined) await respond(request, reply, response, parts)
      else if (fallback !== undefined) sendFallback(request, reply, fallback)
    } catch (error) {
      // A refused request did not reach undici, which otherwise ends its body.
      if (body instanceof Readable) body.destroy()
      if (parts !== undefined) end.abort(toGatewayError(error))
      sendError(reply, error)
    }
  }
  return (request, reply) => void answer(request, reply)
}

/** A required part that fails ends the request at once. */
async function unlessFailed<T>(parts: Promise<Merge>, asked: Promise<T>): Promise<T> {
  return await Promise.race([asked, parts.then(() => asked)])
}

/** Ends an upload that is too slow, unless its response has begun. */
function watchUpload({ raw, trail }: FastifyRequest, end: AbortController): void {
  watchRate(raw, () => {
    if (trail.upstreamMs === undefined) end.abort(new GatewayError('request.timeout'))
  })
}

export function createOwnHandler({ status, initialValue, shaping }: OwnRoute): Handler {
  const { parts, shape } = shaping
  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    try {
      const live = request.live
      const value = initialValue(live)
      if (parts === undefined) {
        const shaped = await shape(value, live, { target: request.raw.url ?? '' })
        sendJsonText(reply, status, writeJson(shaped))
        return
      }
      const merge = await fetchParts(request, parts, leavingOf(reply.raw).signal)
      await sendShaped(reply.code(status), value, shape, merge)
    } catch (error) {
      sendError(reply, error)
    }
  }
  return (request, reply) => void answer(request, reply)
}

/** Unless nobody reads it. */
export function sendError(reply: FastifyReply, error: unknown): void {
  if (!reply.raw.closed && !reply.sent) void reply.send(toGatewayError(error))
}
