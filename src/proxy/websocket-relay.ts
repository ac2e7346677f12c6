/** Links the WebSocket of a client with that to its upstream: each gets the messages of the other. */
import { type RawData, WebSocket } from 'ws'

interface Cause {
  readonly by: 'client' | 'upstream' | 'gateway'
  /** Where the gateway ended it, or one side broke the protocol. */
  readonly closeCode?: number
  readonly reason?: string
}

export interface RelayEnd extends Cause {
  /** Messages that passed. */
  readonly toUpstream: number
  readonly toClient: number
}

/** Of the messages for one side: while more wait, the other side is not read. */
const maxWaitingBytes = 256 * 1024
/** A side that does not answer a close frame is cut after this. */
const closeMs = 2000

export class Relay {
  readonly #client: Side
  readonly #upstream: Side
  readonly #onEnd: (end: RelayEnd) => void
  readonly #beats: NodeJS.Timeout
  #cause: Cause | undefined
  #closing: NodeJS.Timeout | undefined

  /**
   * @param upstream paused
   * @param beatMs both sides are pinged so often
   * @param onEnd called when both sides are closed
   */
  constructor(
    client: WebSocket,
    upstream: WebSocket,
    beatMs: number,
    onEnd: (end: RelayEnd) => void
  ) {
    this.#client = new Side(client)
    this.#upstream = new Side(upstream)
    this.#onEnd = onEnd
    this.#beats = setInterval(() => this.#beat(), beatMs).unref()
    this.#pass(this.#client, this.#upstream, 'client')
    this.#pass(this.#upstream, this.#client, 'upstream')
    upstream.resume()
  }

  /** Tells the client why; the upstream only that it is over. */
  end(closeCode: number, reason: string): void {
    this.#begin({ by: 'gateway', closeCode, reason })
    this.#client.close(closeCode, reason)
    this.#upstream.close(1001)
  }

  destroy(): void {
    this.#begin({ by: 'gateway' })
    this.#client.socket.terminate()
    this.#upstream.socket.terminate()
  }

  /** Begins its end: what came first is the cause. */
  #begin(cause: Cause): void {
    this.#cause ??= cause
    this.#closing ??= setTimeout(() => this.destroy(), closeMs).unref()
  }

  /** A side of which nothing came, and which took nothing, is gone. */
  #beat(): void {
    for (const side of [this.#client, this.#upstream]) {
      const { socket } = side
      // Of one that is not read nothing is known.
      if (!side.isAlive && !socket.isPaused) {
        return socket.bufferedAmount > 0 ? this.destroy() : this.end(1001, 'idle')
      }
      side.isAlive = false
      if (socket.readyState === WebSocket.OPEN) socket.ping()
    }
  }

  #pass(from: Side, to: Side, by: 'client' | 'upstream'): void {
    from.socket.on('message', (data, isBinary) => {
      from.isAlive = true
      to.send(data, isBinary, from)
    })
    from.socket.on('error', error => {
      const closeCode = faultOf(error)
      if (closeCode === undefined) return
      // ws tells the side that broke the protocol.
      this.#begin({ by, closeCode })
      to.close(closeCode)
    })
    from.socket.on('close', (code, reason) => {
      this.#begin({ by })
      // 1005: closed without a code. 1006: lost.
      if (code === 1006) to.close(by === 'client' ? 1001 : 1011)
      else to.close(code === 1005 ? undefined : code, reason)
      if (to.socket.readyState === WebSocket.CLOSED) this.#finish()
    })
  }

  #finish(): void {
    clearInterval(this.#beats)
    clearTimeout(this.#closing)
    const cause = this.#cause ?? { by: 'gateway' }
    this.#onEnd({ ...cause, toUpstream: this.#upstream.sent, toClient: this.#client.sent })
  }
}

class Side {
  readonly socket: WebSocket
  /** Messages that were sent to it. */
  sent = 0
  /** Whether it has sent or taken something, pongs included, since the last ping. */
  isAlive = true

  constructor(socket: WebSocket) {
    this.socket = socket
    const hear = () => {
      this.isAlive = true
    }
    socket.on('ping', hear).on('pong', hear)
  }

  /** @param from is not read while too much waits here */
  send(data: RawData, isBinary: boolean, from: Side): void {
    const { socket } = this
    if (socket.readyState !== WebSocket.OPEN) return
    this.sent++
    socket.send(data, { binary: isBinary }, () => {
      this.isAlive = true
      if (from.socket.isPaused && socket.bufferedAmount <= maxWaitingBytes) from.socket.resume()
    })
    if (socket.bufferedAmount > maxWaitingBytes) from.socket.pause()
  }

  close(code?: number, reason?: Buffer | string): void {
    // A close frame stands behind what waits, and is not read by a side that is paused.
    this.socket.resume()
    this.socket.close(code, reason)
  }
}

const faults: Readonly<Record<string, number>> = {
  WS_ERR_INVALID_UTF8: 1007,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1008,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009
}

/** @returns the close code; undefined for an error that is no fault of the protocol */
function faultOf(error: Error): number | undefined {
  const { code = '' } = error as NodeJS.ErrnoException
  return code.startsWith('WS_ERR_') ? (faults[code] ?? 1002) : undefined
}
