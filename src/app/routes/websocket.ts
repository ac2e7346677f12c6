/** All hooks have let the upgrade pass as a GET; it is one until the upstream agrees. */
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws'
import { type ErrorCode, malformed } from '../../errors/errors.ts'
import { adopt } from '../../observability/emitters.ts'
import { openWebSocket, Relay } from '../../proxy/websocket.ts'
import { identityKey } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'
import { countedAddress } from '../hooks/address.ts'
import { leavingOf } from '../hooks/sending.ts'
import { takePlace } from '../hooks/limits.ts'
import { requireOrigin } from '../hooks/same-origin.ts'
import type { UpgradeResponse } from '../hooks/upgrade.ts'
import type { ForwardedRoute } from './compile.ts'
import type { Outgoing } from './outgoing.ts'
import type { Respond } from './respond.ts'

/** Both sides are pinged so often; of one that is gone not even a pong comes. */
const maxBeatMs = 30_000

const protocolHeader = 'sec-websocket-protocol'

const tooEarly = 'A WebSocket client has to wait for the response before it sends more.'

/** Close codes of the gateway's own; those of 4000 and above are private (RFC 6455 §7.4.2). */
const sessionEnded = 4401
const closeCodes: Partial<Readonly<Record<ErrorCode, number>>> = {
  'route.forbidden': 4403,
  'maintenance': 1013,
  'gateway.stopping': 1012
}

/** The WebSockets of a user (on a public route: of an address) on one route. */
const maxPerUser = {
  limit: 'websocket.perUser',
  limitMax: 10,
  message: 'Too many open connections. Please close some first.'
}

export function createOpening(
  route: ForwardedRoute,
  gateway: Gateway,
  toOutgoing: (request: FastifyRequest) => Outgoing,
  respond: Respond
) {
  const { upstream, timeoutMs, written, credentials } = route.target
  const { maxMessage = 0 } = written.websocket ?? {}
  const hidesProtocols = gateway.tokenNames.headers.has(protocolHeader)

  return async (
    request: FastifyRequest,
    reply: FastifyReply,
    upgrade: UpgradeResponse
  ): Promise<void> => {
    // Browsers let any page open a WebSocket to anywhere, and send cookies along.
    requireOrigin(request, gateway.config.gateway.server.origins)
    const { live, raw, trail } = request
    const subject = live === undefined ? countedAddress(request) : identityKey(live.session)
    const offered = protocolsOf(raw)
    if (upgrade.isBroken) throw malformed(tooEarly)
    const release = takePlace(gateway, `websocket:${route.name}:${subject}`, maxPerUser)
    let isKept = false
    try {
      const end = leavingOf(reply.raw)
      upgrade.onBroken = () => end.abort(malformed(tooEarly))
      const { path, headers } = toOutgoing(request)
      const startedAt = performance.now()
      const opened = await openWebSocket({
        upstream,
        path,
        maxMessage,
        timeoutMs,
        trail,
        headers,
        // Subprotocols that are the console's token give way to those that the gateway built.
        protocols: hidesProtocols ? [headers[protocolHeader] ?? []].flat() : offered,
        signal: end.signal
      })
      trail.upstreamMs = performance.now() - startedAt
      upgrade.onBroken = undefined
      if ('status' in opened) {
        // Browsers connect again by themselves, and have a new token then.
        if (live) await credentials.readOwnToken?.(live, trail, opened)
        return await respond(request, reply, opened)
      }
      // Browsers need one of theirs agreed; the upstream's may be the session's real token.
      const protocol = hidesProtocols ? offered[0] : opened.protocol
      const client = accept(reply, upgrade, {
        maxPayload: maxMessage,
        // None, where the upstream chose none.
        handleProtocols: () => protocol || false
      })
      if (client === undefined) return opened.terminate()
      isKept = true
      startRelay(route, request, [client, opened], release)
    } finally {
      if (!isKept) release()
    }
  }
}

/** Of a well-formed handshake (RFC 6455 §4.2.1). @throws GatewayError `request.malformed` */
function protocolsOf({ headers }: IncomingMessage): string[] {
  const list = headers[protocolHeader]
  const protocols = list === undefined ? [] : list.split(',').map(each => each.trim())
  const isWellFormed =
    headers['sec-websocket-version'] === '13' &&
    /^[A-Za-z0-9+/]{22}==$/.test(headers['sec-websocket-key'] ?? '') &&
    protocols.every(name => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) &&
    new Set(protocols).size === protocols.length
  if (!isWellFormed) throw malformed('The WebSocket handshake is not well-formed.')
  return protocols
}

/** Sends the 101. @returns undefined where the client is gone */
function accept(reply: FastifyReply, upgrade: UpgradeResponse, options: ServerOptions) {
  const { raw, request } = reply
  const fixed = { noServer: true, clientTracking: false, perMessageDeflate: false }
  const server = adopt(new WebSocketServer({ ...fixed, ...options }))
  server.once('headers', sent => sent.push(`x-request-id: ${request.id}`))
  let client: WebSocket | undefined
  reply.hijack()
  // It may stand among other offers, which are ignored (RFC 9110 §7.8).
  request.raw.headers.upgrade = 'websocket'
  server.handleUpgrade(request.raw, upgrade.takeOver(), Buffer.alloc(0), opened => {
    client = adopt(opened)
  })
  // The response is over; its socket, which would say so, goes on.
  if (client !== undefined) reply.code(101)
  raw.emit('close')
  return client
}

/** Holds on to nothing of the request: a connection may last for days. */
function startRelay(
  { name, access, target }: ForwardedRoute,
  request: FastifyRequest,
  [client, upstream]: readonly [WebSocket, WebSocket],
  release: () => void
): void {
  const { id: requestId, live, server } = request
  const { config, log, running, bindStream } = server.gateway
  const startedAt = performance.now()
  const user = live && {
    user: live.session.identity.username,
    userId: live.session.identity.id,
    session: live.session.id
  }
  const beatMs = Math.min(maxBeatMs, config.gateway.server.idleTimeout)
  const over = [release]
  const relay = new Relay(client, upstream, beatMs, end => {
    for (const leave of over) leave()
    const ms = Math.round(performance.now() - startedAt)
    const line = { event: 'websocket.closed', ...end, requestId, route: name, ms, ...user }
    log.info(line, 'WebSocket closed')
  })
  over.push(
    running(relay),
    bindStream({
      live,
      route: name,
      access,
      touch: target.written.touch === 'always',
      end: reason => relay.end(closeCodes[reason] ?? sessionEnded, reason)
    })
  )
}
