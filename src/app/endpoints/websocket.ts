/**
 * WebSocket on a proxied route. All hooks of the route have let the upgrade pass by then, as a GET;
 * the response is an ordinary one until the upstream has agreed.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ErrorCode, GatewayError, toGatewayError } from '../../errors.ts'
import { upstreamError } from '../../proxy/failures.ts'
import { fixedHeadersOf, responseHeaders } from '../../proxy/headers.ts'
import { passesTraceState } from '../../proxy/upstream.ts'
import type { TokenNames } from '../../proxy/token-names.ts'
import {
  acceptOf,
  type Agreed,
  askUpstream,
  type Handshake,
  readHandshake
} from '../../proxy/websocket/handshake.ts'
import { type Ending, Relay, type RelayEnd } from '../../proxy/websocket/relay.ts'
import type { Live } from '../../session/evaluate.ts'
import type { Running } from '../hooks/access-log.ts'
import { sameOrigin } from '../hooks/same-origin.ts'
import { liveOf } from '../hooks/session.ts'
import { type Upgrade, upgradeOf } from '../hooks/upgrade.ts'
import type { BindStream } from '../routes/bound-stream.ts'
import type { Handler, Way } from '../routes/handler.ts'
import type { Outgoing } from '../routes/outgoing.ts'
import type { ForwardedRoute, WebSocketRoute } from '../routes/route.ts'
import { createSlots, type Slot, type SlotOptions } from './websocket-slots.ts'

export interface WebSocketServices extends SlotOptions {
  /** Other origins whose pages may connect. */
  readonly origins: readonly string[]
  readonly bindStream: BindStream
  readonly running: Running
  readonly tokenNames: TokenNames
  readonly log: { readonly info: (fields: object, message: string) => void }
}

const protocolHeader = 'sec-websocket-protocol'

/** Of an upstream that does not agree; a larger one is no use to a client that wants a socket. */
const maxRefusalBytes = 64 * 1024

/** Close codes of the gateway's own; those of 4000 and above are private (RFC 6455 §7.4.2). */
const sessionEnded = { code: 4401, borderMs: 500 }
const endings: Partial<Readonly<Record<ErrorCode, Omit<Ending, 'reason'>>>> = {
  'route.forbidden': { code: 4403, borderMs: 500 },
  'maintenance': { code: 1013, borderMs: 500 },
  'gateway.stopping': { code: 1012, borderMs: 5000 }
}

/**
 * @param handler of ordinary requests
 * @returns the handler of a route that may take upgrades too
 */
export function takeUpgrades(
  route: ForwardedRoute,
  way: Way,
  services: WebSocketServices,
  handler: Handler
): Handler {
  const { webSocket } = route.target
  if (webSocket === undefined) return handler
  const checkOrigin = sameOrigin(services.origins, { always: true })
  const open = createOpening({ route, webSocket, services }, way)
  return (request, reply) => {
    const upgrade = upgradeOf(request.raw)
    if (upgrade === undefined) return handler(request, reply)
    // Browsers let any page open a WebSocket to anywhere, and send cookies along.
    checkOrigin(request, reply, error => {
      if (error !== undefined) return void reply.send(error)
      try {
        open(request, reply, upgrade)
      } catch (thrown) {
        reply.send(toGatewayError(thrown))
      }
    })
  }
}

interface Opening {
  readonly route: ForwardedRoute
  readonly webSocket: WebSocketRoute
  readonly services: WebSocketServices
}

function createOpening({ route, webSocket, services }: Opening, { toOutgoing, respond }: Way) {
  const { upstream, timeoutMs } = route.target
  const acquire = createSlots(route.name, webSocket, services)
  const fixedHeaders = fixedHeadersOf(upstream.config)
  const hidesProtocols = services.tokenNames.headers.has(protocolHeader)
  const toClientHeaders = responseHeaders({ setCookies: route.target.setCookies, mayCache: false })

  return function openWebSocket(request: FastifyRequest, reply: FastifyReply, upgrade: Upgrade) {
    const handshake = readHandshake(request.raw)
    if (upgrade.isBroken) throw tooEarly()
    const slot = acquire(request)
    request.onResponseClose.push(() => slot.releaseUnlessKept())
    const { path, headers: built } = toOutgoing(request)
    const target = {
      path,
      headers: { ...built, ...fixedHeaders },
      connect: upstream.connect,
      timeoutMs,
      trail: request.trail,
      passesState: passesTraceState(upstream.config)
    }
    const asked = hidesProtocols ? withBuiltProtocols(handshake, built) : handshake
    const startedAt = performance.now()
    const abandon = askUpstream(target, asked, (error, answer) => {
      upgrade.onBroken = undefined
      request.trail.upstreamMs = performance.now() - startedAt
      if (answer === undefined) return void reply.send(toGatewayError(error))
      if ('refused' in answer) {
        return passRefusal(request, reply, answer.refused, { respond, timeoutMs })
      }
      const { agreed } = answer
      const headers = hidesProtocols ? withFirstProtocol(handshake, agreed) : agreed.headers
      const switching = switchingHeaders(toClientHeaders(headers), reply, handshake, headers)
      agree(reply, upgrade, { headers: switching, ofUpstream: agreed.socket }, () => {
        slot.keep()
        startRelay(
          { route, webSocket, services, agreed, upgrade, slot, live: liveOf(request) },
          request
        )
      })
    })
    request.onResponseClose.push(() => {
      if (!reply.raw.writableFinished) abandon(tooEarly())
    })
    upgrade.onBroken = () => {
      abandon(tooEarly())
      if (!reply.sent) reply.send(tooEarly())
    }
  }
}

/** Subprotocols that are the console's token are replaced by those that the gateway built. */
function withBuiltProtocols(
  handshake: Handshake,
  { [protocolHeader]: built }: Outgoing['headers']
): Handshake {
  return { ...handshake, protocols: [built ?? []].flat() }
}

/** Browsers need one of theirs agreed; the upstream's may be the session's real token. */
function withFirstProtocol({ protocols: [first] }: Handshake, { headers }: Agreed) {
  return { ...headers, [protocolHeader]: first }
}

function tooEarly(): GatewayError {
  return new GatewayError('request.malformed', {
    message: 'A WebSocket client has to wait for the response before it sends more.'
  })
}

/** The upstream's own response, as for an ordinary request. */
function passRefusal(
  request: FastifyRequest,
  reply: FastifyReply,
  refused: IncomingMessage,
  { respond, timeoutMs }: Pick<Way, 'respond'> & { readonly timeoutMs: number }
): void {
  const pieces: Buffer[] = []
  let bytes = 0
  const fail = (error: unknown) => {
    refused.destroy()
    if (!reply.raw.closed && !reply.sent) reply.send(upstreamError(error))
  }
  const timer = setTimeout(() => fail(new GatewayError('upstream.timeout')), timeoutMs)
  refused
    .on('error', fail)
    .on('data', (piece: Buffer) => {
      bytes += piece.length
      if (bytes > maxRefusalBytes) fail(new GatewayError('upstream.invalid'))
      else pieces.push(piece)
    })
    .on('close', () => clearTimeout(timer))
    .on('end', () => {
      if (reply.raw.closed || reply.sent) return
      const { statusCode: status = 502, headers } = refused
      const response = { status, headers, body: Buffer.concat(pieces) }
      Promise.try(() => respond(request, reply, response)).catch(fail)
    })
}

const ofBody = /^(?:sec-websocket-|content-|transfer-encoding$|date$)/

function switchingHeaders(
  passed: Outgoing['headers'],
  reply: FastifyReply,
  { key }: Handshake,
  headers: IncomingHttpHeaders
) {
  const ofUpstream = Object.entries(passed).filter(([name]) => !ofBody.test(name))
  const protocol = headers[protocolHeader]
  const extensions = headers['sec-websocket-extensions']
  return {
    ...reply.getHeaders(),
    ...Object.fromEntries(ofUpstream),
    'x-request-id': reply.request.id,
    'connection': 'Upgrade',
    'upgrade': 'websocket',
    'sec-websocket-accept': acceptOf(key),
    ...(protocol !== undefined && { [protocolHeader]: protocol }),
    ...(extensions !== undefined && { 'sec-websocket-extensions': extensions })
  }
}

interface Switching {
  readonly headers: ReturnType<typeof switchingHeaders>
  readonly ofUpstream: Socket
}

/** Sends the 101, or ends the upstream's socket. @param onSwitched called when the socket is no HTTP connection any more */
function agree(
  reply: FastifyReply,
  { socket }: Upgrade,
  { headers, ofUpstream }: Switching,
  onSwitched: () => void
): void {
  const { raw } = reply
  try {
    raw.writeHead(101, headers as Record<string, string | string[]>)
  } catch (error) {
    ofUpstream.destroy()
    return void reply.send(new GatewayError('upstream.invalid', { cause: error }))
  }
  reply.hijack()
  // From now on the client's bytes are for the relay.
  socket.pause()
  raw.once('finish', () => {
    raw.detachSocket(socket)
    onSwitched()
    // The response is over: its socket, which would say so, goes on.
    raw.emit('close')
  })
  raw.end()
}

interface Opened extends Opening {
  readonly agreed: Agreed
  readonly upgrade: Upgrade
  readonly slot: Slot
  readonly live: Live | undefined
}

/** Holds on to nothing of the request: a connection may last for days. */
function startRelay(opened: Opened, { id: requestId }: FastifyRequest): void {
  const { route, webSocket, services, agreed, upgrade, slot, live } = opened
  const { name, access, target } = route
  const startedAt = performance.now()
  const user = live && {
    user: live.session.identity.username,
    userId: live.session.identity.id,
    session: live.session.id
  }
  const options = {
    maxMessage: webSocket.maxMessage,
    mayCompress: agreed.headers['sec-websocket-extensions'] !== undefined,
    pingMs: webSocket.ping,
    idleMs: webSocket.idle,
    stallMs: target.upstream.config.idleTimeout
  }
  const over: Array<() => void> = [slot.release]
  const relay = new Relay(upgrade.socket, agreed.socket, options, end => {
    for (const leave of over) leave()
    services.log.info(
      {
        ...closedFields(end),
        requestId,
        route: name,
        ms: Math.round(performance.now() - startedAt),
        ...user
      },
      'WebSocket closed'
    )
  })
  over.push(
    services.running.begin(relay),
    services.bindStream({
      live,
      route: name,
      access,
      touch: webSocket.touch,
      stream: {
        end: reason => relay.end({ ...(endings[reason] ?? sessionEnded), reason })
      }
    })
  )
  relay.start(agreed.first)
}

function closedFields({ by, ending, toUpstream, toClient }: RelayEnd) {
  return {
    event: 'websocket.closed',
    by,
    ...(ending !== undefined && { closeCode: ending.code, reason: ending.reason }),
    toUpstream,
    toClient
  }
}
