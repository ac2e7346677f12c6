/** The opening handshake (RFC 6455 §4): what the client asks, and what the upstream may answer. */
import { hash, randomBytes } from 'node:crypto'
import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request
} from 'node:http'
import type { Socket } from 'node:net'
import { GatewayError } from '../../errors.ts'
import { adopt } from '../../observability/emitters.ts'
import { traceCall } from '../../observability/traces/outgoing.ts'
import type { Trail } from '../../observability/trail.ts'
import type { DirectConnection } from '../direct-connection.ts'
import { unreadable, upstreamError } from '../failures.ts'
import type { Upstream } from '../upstream.ts'

/** A client's handshake, parsed. */
export interface Handshake {
  readonly key: string
  readonly protocols: readonly string[]
  /** The offers of permessage-deflate, as sent; of other extensions nothing is known here. */
  readonly extensions: string | undefined
}

export interface UpstreamTarget {
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[]>>
  /** Within the upstream's own time for that. */
  readonly connect: Upstream['connect']
  /** To the upstream's response, from the moment at which it is connected. */
  readonly timeoutMs: number
  /** Of the client's request. */
  readonly trail: Trail
  /** Whether the upstream may get the caller's `tracestate`. */
  readonly passesState: boolean
}

/** The upstream has agreed. Its socket is not read yet. */
export interface Agreed {
  readonly socket: Socket
  /** Bytes that came together with the response. */
  readonly first: Buffer
  readonly headers: IncomingHttpHeaders
}

type Answer =
  | { readonly agreed: Agreed }
  /** An ordinary response: the upstream did not agree. */
  | { readonly refused: IncomingMessage }

const version = '13'
const keyPattern = /^[A-Za-z0-9+/]{22}==$/
const tokenPattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}$/
const deflateName = 'permessage-deflate'

/** @throws GatewayError `request.malformed` */
export function readHandshake({ method, headers }: IncomingMessage): Handshake {
  const key = headers['sec-websocket-key']
  const hasBody = headers['content-length'] !== undefined || 'transfer-encoding' in headers
  if (method !== 'GET' || hasBody || key === undefined || !keyPattern.test(key)) throw malformed()
  if (headers['sec-websocket-version'] !== version) {
    throw new GatewayError('request.malformed', {
      message: `Only version ${version} of the WebSocket protocol is supported here.`,
      headers: { 'sec-websocket-version': version }
    })
  }
  const protocols = listOf(headers['sec-websocket-protocol'])
  if (!protocols.every(name => tokenPattern.test(name))) throw malformed()
  if (new Set(protocols).size < protocols.length) throw malformed()
  const offers = listOf(headers['sec-websocket-extensions']).filter(isDeflate)
  return { key, protocols, extensions: offers.length === 0 ? undefined : offers.join(', ') }
}

/** Proves that a server understood the handshake (RFC 6455 §4.2.2). */
export function acceptOf(key: string): string {
  return hash('sha1', `${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, 'base64')
}

/**
 * Asks the upstream, with a key of the gateway's own.
 * @param done called once, unless the returned function has ended it before
 */
export function askUpstream(
  target: UpstreamTarget,
  handshake: Handshake,
  done: (error: GatewayError | undefined, answer?: Answer) => void
): (reason: GatewayError) => void {
  const key = randomBytes(16).toString('base64')
  let asked: ClientRequest | undefined
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  const settle = (error: GatewayError | undefined, answer?: Answer) => {
    clearTimeout(timer)
    if (isOver) return
    isOver = true
    done(error, answer)
  }
  const fail = (error: unknown) => {
    settle(upstreamError(error))
    asked?.destroy()
  }
  target.connect((error, connection) => {
    if (isOver) return void connection?.socket.destroy()
    if (connection === undefined) return fail(error)
    const { recorded } = connection
    const failAsked = (cause: unknown) => {
      recorded?.fail(cause, upstreamError(cause).code)
      fail(cause)
    }
    timer = setTimeout(failAsked, target.timeoutMs, new GatewayError('upstream.timeout'))
    asked = send(target, handshake, key, connection)
    asked.on('error', failAsked)
    asked.on('response', response => {
      const { statusCode = 0, headers } = adopt(response)
      const fault = unreadable(statusCode, headers)
      if (fault !== undefined) return failAsked(fault)
      recorded?.end(statusCode)
      settle(undefined, { refused: response })
    })
    asked.on('upgrade', (response, upgraded: Socket, first) => {
      recorded?.end(response.statusCode)
      const fault = faultOf(response, handshake, key)
      if (isOver || fault !== undefined) upgraded.destroy()
      if (fault === undefined) {
        return settle(undefined, { agreed: { socket: upgraded, first, headers: response.headers } })
      }
      settle(new GatewayError('upstream.invalid', { cause: new Error(fault) }))
    })
    asked.end()
  }, target.trail)
  return reason => {
    isOver = true
    clearTimeout(timer)
    asked?.destroy(reason)
  }
}

function send(
  { path, headers, trail, passesState }: UpstreamTarget,
  { protocols, extensions }: Handshake,
  key: string,
  { socket, origin, recorded }: DirectConnection
): ClientRequest {
  adopt(socket)
  const ofClient = withoutHandshake(headers)
  if (trail.trace !== undefined && recorded !== undefined) {
    const call = { method: 'GET', path, headers: ofClient, origin, passesState }
    traceCall(trail.trace, recorded, call)
  }
  return adopt(
    request({
      createConnection: () => socket,
      path,
      method: 'GET',
      maxHeaderSize: 16 * 1024,
      headers: {
        ...ofClient,
        'host': new URL(origin).host,
        'connection': 'Upgrade',
        'upgrade': 'websocket',
        'sec-websocket-version': version,
        'sec-websocket-key': key,
        ...(protocols.length > 0 && { 'sec-websocket-protocol': protocols.join(', ') }),
        ...(extensions !== undefined && { 'sec-websocket-extensions': extensions })
      }
    })
  )
}

/** The client's own handshake is with the gateway. */
function withoutHandshake(headers: UpstreamTarget['headers']): Record<string, string | string[]> {
  const names = Object.keys(headers).filter(name => !name.startsWith('sec-websocket-'))
  return Object.fromEntries(names.map(name => [name, headers[name] as string | string[]]))
}

/** @returns why the upstream's 101 cannot be taken; undefined where it can */
function faultOf(
  { headers }: IncomingMessage,
  { protocols, extensions }: Handshake,
  key: string
): string | undefined {
  const protocol = headers['sec-websocket-protocol']
  const agreed = listOf(headers['sec-websocket-extensions'])
  if (headers.upgrade?.toLowerCase() !== 'websocket') return 'the 101 is of another protocol'
  if (headers['sec-websocket-accept'] !== acceptOf(key)) return 'Sec-WebSocket-Accept is wrong'
  if (protocol !== undefined && !protocols.includes(protocol)) return 'a subprotocol nobody offered'
  const areOffered = agreed.every(each => extensions !== undefined && isDeflate(each))
  return areOffered ? undefined : 'an extension nobody offered'
}

function isDeflate(offer: string): boolean {
  const mark = offer.indexOf(';')
  return (mark < 0 ? offer : offer.slice(0, mark)).trim() === deflateName
}

function listOf(field: string | undefined): string[] {
  if (field === undefined) return []
  return field.split(',').map(each => each.trim())
}

function malformed(): GatewayError {
  const message = 'The WebSocket handshake is not well-formed.'
  return new GatewayError('request.malformed', { message })
}
