/**
 * Relays a WebSocket between client and upstream: bytes pass unchanged, frame borders are followed,
 * so that the gateway can put in frames of its own, and end the connection, between two frames.
 */
import type { Socket } from 'node:net'
import { closeFrame, FrameTracker, maskedCloseFrame, pingFrame } from './frames.ts'

/** Why the gateway ends a connection: what stands in the close frame to the client. */
export interface Ending {
  readonly code: number
  readonly reason: string
  /** The longest time for a frame under way to the client; then the connection is cut. */
  readonly borderMs: number
}

export interface RelayOptions {
  /** In bytes, as sent; see FrameRules. */
  readonly maxMessage: number
  /** Whether permessage-deflate was agreed on. */
  readonly mayCompress: boolean
  /** Silence of both sides, after which the client is pinged. */
  readonly pingMs: number
  /** The longest silence of both sides, pongs included. */
  readonly idleMs: number
  /** The longest time in which one side reads nothing of its bytes. */
  readonly stallMs: number
}

export interface RelayEnd {
  /** The side that ended it first. */
  readonly by: 'client' | 'upstream' | 'gateway'
  /** Of the gateway's own ending. */
  readonly ending: Ending | undefined
  readonly toUpstream: number
  readonly toClient: number
}

/** After a close frame: how long its sender's bytes are read and thrown away until its end. */
const closingMs = 5000
/** After a close frame of one side, or its end: how long the other one may take to answer. */
const answeringMs = 10_000
const keepAliveMs = 30_000
/** Codes of RFC 6455 §7.4.1. */
const goingAway = 1001
const unexpected = 1011

const broken: Ending = { code: unexpected, reason: 'upstream.reset', borderMs: 0 }
const idle: Ending = { code: goingAway, reason: 'idle', borderMs: 500 }
const stalledUpstream: Ending = { code: unexpected, reason: 'upstream.timeout', borderMs: 500 }

/** `ending`: waits for the border of a frame to the client. `closing`: the client was told. */
type State = 'open' | 'ending' | 'closing' | 'over'

export class Relay {
  readonly #client: Socket
  readonly #upstream: Socket
  readonly #options: RelayOptions
  readonly #onOver: (end: RelayEnd) => void
  /** Frames of the client to the upstream. */
  readonly #up: FrameTracker
  /** Frames of the upstream to the client. */
  readonly #down: FrameTracker
  #state: State = 'open'
  #ending: Ending | undefined
  #endedBy: RelayEnd['by'] | undefined
  /** Whether the upstream's last byte from the client ended a frame, when the end began. */
  #isUpstreamAtBorder = false
  /** Messages that had gone to the upstream by then: later ones are thrown away. */
  #toUpstream: number | undefined
  #lastByteAt = performance.now()
  #deadline: NodeJS.Timeout | undefined
  #clientStall: NodeJS.Timeout | undefined
  #upstreamStall: NodeJS.Timeout | undefined

  /**
   * Takes both sockets over, neither of which is read yet.
   * @param onOver called once, when the client's connection is closed
   */
  constructor(
    client: Socket,
    upstream: Socket,
    options: RelayOptions,
    onOver: (end: RelayEnd) => void
  ) {
    const { maxMessage, mayCompress } = options
    this.#client = client
    this.#upstream = upstream
    this.#options = options
    this.#onOver = onOver
    this.#up = new FrameTracker({ isMasked: true, maxMessage, mayCompress })
    this.#down = new FrameTracker({ isMasked: false, maxMessage, mayCompress })
  }

  /** @param first what the upstream sent together with its 101 */
  start(first: Buffer): void {
    const client = this.#client
    const upstream = this.#upstream
    if (client.destroyed) return this.#clientClosed()
    client.setKeepAlive(true, keepAliveMs).setNoDelay(true)
    upstream.setKeepAlive(true, keepAliveMs).setNoDelay(true)
    upstream.setTimeout(0)
    client.setTimeout(Math.min(this.#options.pingMs, this.#options.idleMs))
    client
      .on('timeout', () => this.#onQuiet())
      .on('drain', () => this.#clientDrained())
      .on('end', () => this.#clientEnded())
      .on('close', () => this.#clientClosed())
    upstream
      .on('drain', () => this.#upstreamDrained())
      .on('end', () => this.#upstreamLost())
      .on('close', () => this.#upstreamLost())
    upstream.on('data', chunk => this.#fromUpstream(chunk as Buffer)).resume()
    client.on('data', chunk => this.#fromClient(chunk as Buffer)).resume()
    if (first.length > 0) this.#fromUpstream(first)
    if (upstream.destroyed) this.#upstreamLost()
  }

  /** Ends the connection at the next border of a frame to the client. */
  end(ending: Ending): void {
    if (this.#state !== 'open') return
    this.#state = 'ending'
    this.#ending = ending
    this.#endedBy ??= 'gateway'
    this.#isUpstreamAtBorder = this.#up.left === 0
    this.#toUpstream = this.#up.messages
    this.#clearTimers()
    // From here on its bytes are thrown away, also those that waited for a slow upstream.
    this.#client.resume()
    if (this.#down.left === 0) return this.#close()
    this.#setDeadline(ending.borderMs)
  }

  /** Cuts both connections. */
  destroy(): void {
    this.#client.destroy()
    this.#upstream.destroy()
  }

  #fromClient(chunk: Buffer): void {
    this.#lastByteAt = performance.now()
    const up = this.#up
    const bytes = up.track(chunk)
    if (this.#state !== 'open') return this.#finishAfterClose()
    if (bytes.length > 0 && this.#upstream.writable && !this.#upstream.write(bytes)) {
      this.#client.pause()
      this.#upstreamStall ??= setTimeout(() => this.end(stalledUpstream), this.#options.stallMs)
    }
    if (up.fault !== undefined) {
      this.#endedBy ??= 'client'
      return this.end({ ...up.fault, borderMs: closingMs })
    }
    if (up.isClosed) this.#awaitAnswer('client')
  }

  #fromUpstream(chunk: Buffer): void {
    const down = this.#down
    if (this.#state === 'ending') return this.#fromUpstreamToBorder(chunk)
    if (this.#state !== 'open') return
    this.#lastByteAt = performance.now()
    const bytes = down.track(chunk)
    if (bytes.length > 0 && this.#client.writable && !this.#client.write(bytes)) {
      this.#upstream.pause()
      // A reader that stands still cannot be told anything.
      this.#clientStall ??= setTimeout(() => this.destroy(), this.#options.stallMs)
    }
    if (down.fault !== undefined) {
      const { code, reason } = down.fault
      this.#endedBy ??= 'upstream'
      return this.end({ code: code === 1002 ? unexpected : code, reason, borderMs: 0 })
    }
    if (down.isClosed) this.#awaitAnswer('upstream')
  }

  /** Cuts inside the chunk at the first border: nothing behind it reaches the client. */
  #fromUpstreamToBorder(chunk: Buffer): void {
    const down = this.#down
    const rest = chunk.subarray(0, down.left)
    down.track(rest)
    this.#client.write(rest)
    if (down.left === 0) this.#close()
  }

  /** At a border: tells the client, lets go of the upstream, and reads until the client's end. */
  #close(): void {
    const client = this.#client
    this.#state = 'closing'
    this.#clearTimers()
    this.#leaveUpstream()
    if (!this.#down.isClosed && client.writable && this.#ending !== undefined) {
      client.write(closeFrame(this.#ending.code, this.#ending.reason))
    }
    this.#finishAfterClose()
    this.#setDeadline(closingMs)
  }

  /** Nothing of it touches the client any more; in the middle of a frame it can be told nothing. */
  #leaveUpstream(): void {
    const upstream = this.#upstream
    upstream.removeAllListeners('data').removeAllListeners('drain').resume()
    if (!this.#isUpstreamAtBorder || !upstream.writable) return void upstream.destroy()
    // One that broke the protocol gets its own fault's code, not the client's.
    upstream.end(maskedCloseFrame(this.#down.fault?.code ?? goingAway))
  }

  /** The server closes first (RFC 6455 §7.1.1), once the client has answered or ended. */
  #finishAfterClose(): void {
    if (this.#state !== 'closing') return
    if (this.#up.isClosed || this.#client.readableEnded) this.#client.end()
  }

  /** One side has said that it ends: the other one answers, in time. */
  #awaitAnswer(side: 'client' | 'upstream'): void {
    this.#endedBy ??= side
    if (this.#state === 'open' && this.#deadline === undefined) this.#setDeadline(answeringMs)
  }

  #clientEnded(): void {
    if (this.#state !== 'open') return this.#finishAfterClose()
    this.#awaitAnswer('client')
    this.#upstream.end()
  }

  #clientClosed(): void {
    if (this.#state === 'over') return
    this.#endedBy ??= 'client'
    this.#state = 'over'
    this.#clearTimers()
    const upstream = this.#upstream
    if (upstream.writableEnded) {
      // A last frame may be on its way.
      setTimeout(() => upstream.destroy(), closingMs).unref()
      upstream.resume()
    } else upstream.destroy()
    this.#client.destroy()
    this.#onOver({
      by: this.#endedBy,
      ending: this.#ending,
      toUpstream: this.#toUpstream ?? this.#up.messages,
      toClient: this.#down.messages
    })
  }

  #upstreamLost(): void {
    if (this.#state === 'closing' || this.#state === 'over' || this.#client.destroyed) return
    this.#endedBy ??= 'upstream'
    // The rest of a frame never comes.
    if (this.#down.left > 0) return this.destroy()
    // It ended without a close frame, which the client gets from here.
    if (!this.#down.isClosed) return this.end(broken)
    this.#awaitAnswer('upstream')
    this.#client.resume().end()
  }

  #clientDrained(): void {
    clearTimeout(this.#clientStall)
    this.#clientStall = undefined
    if (this.#state === 'open' || this.#state === 'ending') this.#upstream.resume()
  }

  #upstreamDrained(): void {
    clearTimeout(this.#upstreamStall)
    this.#upstreamStall = undefined
    this.#client.resume()
  }

  /** Nothing was written to the client or read from it for a while. */
  #onQuiet(): void {
    if (this.#state !== 'open') return
    const { pingMs, idleMs } = this.#options
    const quietMs = performance.now() - this.#lastByteAt
    if (quietMs >= idleMs) return this.end(idle)
    const mayPing = this.#down.left === 0 && !this.#down.isClosed && this.#client.writable
    if (mayPing) this.#client.write(pingFrame)
    this.#client.setTimeout(Math.min(pingMs, Math.max(1, idleMs - quietMs)))
  }

  #setDeadline(ms: number): void {
    clearTimeout(this.#deadline)
    this.#deadline = setTimeout(() => this.destroy(), ms)
  }

  #clearTimers(): void {
    clearTimeout(this.#deadline)
    clearTimeout(this.#clientStall)
    clearTimeout(this.#upstreamStall)
    this.#deadline = this.#clientStall = this.#upstreamStall = undefined
  }
}
