/**
 * Requests that came as an upgrade to WebSocket: only those may be answered by one. All other
 * offers of `Upgrade` are ignored (RFC 9110 §7.8).
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** An upgrade until its response: a client has to wait for that (RFC 6455 §4.1). */
export interface Upgrade {
  /** Takes the socket from the response, which is sent no more. */
  readonly takeOver: () => Socket
  /** The client sent something before the response, or its end, or is gone. */
  isBroken: boolean
  /** Called when that happens. */
  onBroken: (() => void) | undefined
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>()

export function markUpgrade(raw: IncomingMessage, upgrade: Upgrade): void {
  upgrades.set(raw, upgrade)
}

/** @returns undefined for an ordinary request */
export const upgradeOf = (raw: IncomingMessage): Upgrade | undefined => upgrades.get(raw)

/** Whether a request may become a WebSocket: on a route that takes it, it has to be a handshake. */
export function asksWebSocket({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return (
    httpVersionMinor > 0 &&
    hasToken(headers.connection, 'upgrade') &&
    hasToken(headers.upgrade, 'websocket')
  )
}

/** For Node's `shouldUpgradeCallback`: what has a body, or another method, is no handshake. */
export function isUpgrade(request: IncomingMessage): boolean {
  const { method, headers } = request
  const hasBody = headers['content-length'] !== undefined || 'transfer-encoding' in headers
  return method === 'GET' && !hasBody && asksWebSocket(request)
}

function hasToken(list: string | undefined, token: string): boolean {
  return list?.split(',').some(each => each.trim().toLowerCase() === token) === true
}

/**
 * Node drops what comes behind an ignored offer in the same packet, so a request there would wait
 * for ever: the connection ends.
 */
export function endAfterOffer({ headers }: IncomingMessage, response: ServerResponse): void {
  if (headers.upgrade !== undefined) response.shouldKeepAlive = false
}
