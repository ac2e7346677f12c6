/**
 * Borders of WebSocket frames (RFC 6455 §5) in bytes that pass by: headers are read, payloads only
 * counted, nothing is changed. Between two frames, and nowhere else, a frame of the gateway's own
 * may stand.
 */

/** Why frames of one side cannot go on; the code is the close frame's (RFC 6455 §7.4.1). */
export interface FrameFault {
  readonly code: 1002 | 1009
  readonly reason: string
}

export interface FrameRules {
  /** Clients mask each frame, servers none (RFC 6455 §5.1). */
  readonly isMasked: boolean
  /** Of a message's payload over all its fragments, as it is sent: compressed where it is. */
  readonly maxMessage: number
  /** Whether permessage-deflate was agreed on, which marks messages by RSV1 (RFC 7692 §6). */
  readonly mayCompress: boolean
}

const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const
const maxControlBytes = 125
/** Two bytes, a length of eight, a mask of four. */
const maxHeaderBytes = 14

const fault = (reason: string): FrameFault => ({ code: 1002, reason })

export class FrameTracker {
  readonly #rules: FrameRules
  /** Bytes of the current frame's payload that are still to come; 0 between two frames. */
  left = 0
  /** Whole messages that have begun to end: their last frame's header has passed. */
  messages = 0
  /** Set for good by the first frame that breaks the rules. */
  fault: FrameFault | undefined
  /** The beginning of a header: it goes on when it is whole, so that a fault stands at a border. */
  #heldBack: Buffer | undefined
  #messageBytes = 0
  #isFragmented = false
  #isClosing = false

  constructor(rules: FrameRules) {
    this.#rules = rules
  }

  /** A whole close frame has passed: nothing may follow it. */
  get isClosed(): boolean {
    return this.#isClosing && this.left === 0
  }

  /**
   * Follows the frames in a chunk.
   * @returns the bytes that may go on: all but an unfinished header, a frame with a fault and what
   * follows it, and what follows a close frame
   */
  track(received: Buffer): Buffer {
    const chunk =
      this.#heldBack === undefined ? received : Buffer.concat([this.#heldBack, received])
    this.#heldBack = undefined
    let at = 0
    for (;;) {
      const step = Math.min(this.left, chunk.length - at)
      this.left -= step
      at += step
      if (at === chunk.length) return chunk
      if (this.#isClosing || this.fault !== undefined) return chunk.subarray(0, at)
      const headerBytes = headerBytesAt(chunk, at)
      if (headerBytes > chunk.length - at) {
        // Copied: a few bytes must not keep the whole chunk alive.
        this.#heldBack = Buffer.from(chunk.subarray(at))
        return chunk.subarray(0, at)
      }
      this.fault = this.#readHeader(chunk, at)
      if (this.fault !== undefined) return chunk.subarray(0, at)
      at += headerBytes
    }
  }

  #readHeader(chunk: Buffer, at: number): FrameFault | undefined {
    const first = chunk[at] as number
    const second = chunk[at + 1] as number
    const opcode = first & 0x0f
    const isLast = (first & 0x80) !== 0
    const payloadBytes = payloadBytesAt(chunk, at)
    const { isMasked } = this.#rules
    if (((second & 0x80) !== 0) !== isMasked) {
      return fault(isMasked ? 'a frame is not masked' : 'a frame is masked')
    }
    const broken =
      opcode >= opcodes.close
        ? this.#controlFault(first, opcode, payloadBytes)
        : this.#readDataHeader(first, opcode, payloadBytes)
    if (broken !== undefined) return broken
    if (opcode < opcodes.close && isLast) this.messages++
    if (opcode === opcodes.close) this.#isClosing = true
    this.left = payloadBytes
    return undefined
  }

  #controlFault(first: number, opcode: number, payloadBytes: number): FrameFault | undefined {
    if (opcode > opcodes.pong) return fault('a frame has a reserved opcode')
    if ((first & 0xf0) !== 0x80) return fault('a control frame is fragmented or has reserved bits')
    return payloadBytes > maxControlBytes ? fault('a control frame is too long') : undefined
  }

  #readDataHeader(first: number, opcode: number, payloadBytes: number): FrameFault | undefined {
    const { maxMessage, mayCompress } = this.#rules
    const isContinued = opcode === opcodes.continuation
    if (opcode > opcodes.binary) return fault('a frame has a reserved opcode')
    const allowed = mayCompress && !isContinued ? 0x40 : 0
    if ((first & 0x70 & ~allowed) !== 0) return fault('a frame has reserved bits')
    if (isContinued !== this.#isFragmented) return fault('a message is fragmented wrongly')
    this.#messageBytes = (isContinued ? this.#messageBytes : 0) + payloadBytes
    if (this.#messageBytes > maxMessage) return { code: 1009, reason: 'a message is too large' }
    this.#isFragmented = (first & 0x80) === 0
    return undefined
  }
}

/** @returns how long the header is; more than there is where it is cut before its length */
function headerBytesAt(chunk: Buffer, at: number): number {
  const second = chunk[at + 1]
  if (second === undefined) return maxHeaderBytes
  const mask = (second & 0x80) === 0 ? 0 : 4
  switch (second & 0x7f) {
    case 126:
      return 4 + mask
    case 127:
      return 10 + mask
    default:
      return 2 + mask
  }
}

/** Of a whole header. Eight bytes are read as a double: what that rounds is too large anyway. */
function payloadBytesAt(chunk: Buffer, at: number): number {
  const short = (chunk[at + 1] as number) & 0x7f
  if (short === 126) return chunk.readUInt16BE(at + 2)
  if (short === 127) return chunk.readUInt32BE(at + 2) * 2 ** 32 + chunk.readUInt32BE(at + 6)
  return short
}

/** A ping to a client, without payload. */
export const pingFrame = Buffer.from([0x80 | opcodes.ping, 0])

/** A close frame to a client. @param reason cut to what a control frame holds */
export function closeFrame(code: number, reason: string): Buffer {
  const text = Buffer.from(reason).subarray(0, maxControlBytes - 2)
  const frame = Buffer.alloc(4 + text.length)
  frame[0] = 0x80 | opcodes.close
  frame[1] = 2 + text.length
  frame.writeUInt16BE(code, 2)
  text.copy(frame, 4)
  return frame
}

/**
 * A close frame without a reason to an upstream. The mask is all zeros: it protects proxies that do
 * not know WebSocket from payloads that pages choose (RFC 6455 §10.3), and no page chose this one.
 */
export function maskedCloseFrame(code: number): Buffer {
  const frame = Buffer.from([0x80 | opcodes.close, 0x80 | 2, 0, 0, 0, 0, 0, 0])
  frame.writeUInt16BE(code, 6)
  return frame
}
