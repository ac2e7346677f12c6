/** Only an upgrade to WebSocket is one; other offers are ignored (RFC 9110 §7.8). */
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { listedIn } from '../../proxy/response-headers.ts'

/** Sockets that are no more for HTTP. */
export const webSockets = new WeakSet<Socket>()

/** The response to an upgrade: a client has to wait for it (RFC 6455 §4.1). */
export class UpgradeResponse extends ServerResponse {
  /** The client sent something before the response, or its end, or is gone. */
  isBroken = false
  onBroken: (() => void) | undefined = undefined

  readonly #break = (): void => {
    this.isBroken = true
    this.onBroken?.()
  }

  /** Node's own are gone with the upgrade. */
  readonly #listeners = Object.entries({
    data: this.#break,
    end: this.#break,
    // A reset is told by it only, and may come while the hooks of the route wait.
    close: this.#break,
    // A long response would never go on.
    drain: () => this.emit('drain')
  })

  /** @throws while an earlier response has the socket, such as a refusal that reached no app */
  override assignSocket(socket: Socket): void {
    super.assignSocket(socket)
    this.shouldKeepAlive = false
    for (const [event, listener] of this.#listeners) socket.on(event, listener)
  }

  leave(): void {
    for (const [event, listener] of this.#listeners) this.socket?.off(event, listener)
  }

  takeOver(): Socket {
    const socket = this.socket as Socket
    this.leave()
    this.detachSocket(socket)
    webSockets.add(socket)
    return socket
  }
}

/** Whether a request may become a WebSocket: on a route that takes it, it has to be a handshake. */
export function asksWebSocket({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return (
    httpVersionMinor > 0 &&
    listedIn(headers.connection)?.includes('upgrade') === true &&
    listedIn(headers.upgrade)?.includes('websocket') === true
  )
}

/** For Node's `shouldUpgradeCallback`: what has a body, or another method, is no handshake. */
export function isUpgrade(request: IncomingMessage): boolean {
  const { method, headers } = request
  const hasBody = headers['content-length'] !== undefined || 'transfer-encoding' in headers
  return method === 'GET' && !hasBody && asksWebSocket(request)
}

/** Node drops what comes behind an ignored offer in its packet: a request there would hang. */
export function endAfterOffer({ headers }: IncomingMessage, response: ServerResponse): void {
  if (headers.upgrade !== undefined) response.shouldKeepAlive = false
}
