/** Upgrades of the public listener on their way to the app, and the sockets left of them. */
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { adopt } from '../observability/emitters.ts'
import { markUpgrade, type Upgrade } from './hooks/upgrade.ts'

interface Options {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  /** Ends a connection whose response was an ordinary one. */
  readonly endUnread: (socket: Socket) => void
}

export class Upgrades {
  readonly #options: Options
  /** The server does not know them any more: they are cut here when it stops. */
  readonly #sockets = new Set<Socket>()

  constructor(options: Options) {
    this.#options = options
  }

  /**
   * Lets the app answer an upgrade, so that all its hooks decide on it. A route that takes none
   * answers it as an ordinary request.
   * @param early what came behind the request
   * @returns false where it must be refused
   */
  take(request: IncomingMessage, socket: Socket, early: Buffer): boolean {
    if (early.length > 0) return false
    const response = adopt(new ServerResponse(request))
    if (!takeTurn(response, socket)) return false
    adopt(socket)
    this.#remember(socket)
    const upgrade: Upgrade = { takeOver, isBroken: false, onBroken: undefined }
    const onBroken = () => {
      upgrade.isBroken = true
      upgrade.onBroken?.()
    }
    // A reset is told by `close` only, and may come while the hooks of the route wait.
    socket.on('data', onBroken).on('end', onBroken).on('close', onBroken).resume()
    markUpgrade(request, upgrade)
    response.shouldKeepAlive = false
    // Node's own listeners are gone with the upgrade: a long response would never go on, and a
    // client that reads nothing would stay.
    const onDrain = () => response.emit('drain')
    socket.on('drain', onDrain)
    const onStalled = () => {
      if (!response.emit('timeout', socket)) socket.destroy()
    }
    socket.on('timeout', onStalled)
    const leave = () => {
      socket.off('data', onBroken).off('end', onBroken).off('close', onBroken)
      socket.off('timeout', onStalled).off('drain', onDrain)
    }
    function takeOver(): Socket {
      leave()
      response.detachSocket(socket)
      return socket
    }
    response.once('finish', () => {
      leave()
      this.#options.endUnread(socket)
    })
    this.#options.handle(request, response)
    return true
  }

  /** Apart from `take`: a closure of that would keep the response alive as long as the socket. */
  #remember(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}

/**
 * Gives the response its socket.
 * @returns false while an earlier response has it, such as a refusal that reached no app
 */
function takeTurn(response: ServerResponse, socket: Socket): boolean {
  try {
    response.assignSocket(socket)
    return true
  } catch {
    return false
  }
}
