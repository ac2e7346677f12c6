/** Frame borders, wherever the bytes are cut. */
import fc from 'fast-check'
import t from 'tap'
import {
  closeFrame,
  FrameTracker,
  type FrameRules,
  maskedCloseFrame,
  pingFrame
} from '../../../src/proxy/websocket/frames.ts'
import { seed } from '../../support/seed.ts'
import { frame } from '../../support/websocket.ts'

const rules: FrameRules = { isMasked: true, maxMessage: 1024 * 1024, mayCompress: false }
const lengths = [0, 1, 5, 124, 125, 126, 127, 1000, 65_535, 65_536, 70_000]

interface Message {
  readonly opcode: number
  readonly parts: readonly number[]
  /** Control frames, by the part before which they stand. */
  readonly between: ReadonlyArray<{ readonly part: number; readonly length: number }>
}

const message: fc.Arbitrary<Message> = fc.record({
  opcode: fc.constantFrom(1, 2),
  parts: fc.array(fc.constantFrom(...lengths), { minLength: 1, maxLength: 4 }),
  between: fc.array(
    fc.record({ part: fc.nat({ max: 3 }), length: fc.constantFrom(0, 1, 124, 125) }),
    { maxLength: 3 }
  )
})

function framesOf(messages: readonly Message[], isMasked: boolean): Buffer[] {
  return messages.flatMap(({ opcode, parts, between }) =>
    parts.flatMap((length, index) => [
      ...between
        .filter(({ part }) => part === index)
        .map(control => frame({ opcode: 9, length: control.length, isMasked })),
      frame({
        opcode: index === 0 ? opcode : 0,
        length,
        isLast: index === parts.length - 1,
        isMasked
      })
    ])
  )
}

function cut(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map(each => each % (bytes.length + 1)))].toSorted((a, b) => a - b)
  return [...places, bytes.length].map((end, index) => bytes.subarray(places[index - 1] ?? 0, end))
}

t.test('random frames that are cut anywhere pass unchanged, with the same borders', async () => {
  fc.assert(
    fc.property(
      fc.array(message, { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat(), { maxLength: 30 }),
      fc.boolean(),
      (messages, cuts, isMasked) => {
        const frames = framesOf(messages, isMasked)
        const borders = new Set<number>([0])
        let end = 0
        for (const each of frames) borders.add((end += each.length))
        const bytes = Buffer.concat(frames)
        const tracker = new FrameTracker({ ...rules, isMasked })
        const passed: Buffer[] = []
        let sent = 0
        for (const chunk of cut(bytes, cuts)) {
          const out = Buffer.from(tracker.track(chunk))
          passed.push(out)
          sent += out.length
          const isAtBorder = borders.has(sent)
          if ((tracker.left === 0) !== isAtBorder) return false
          // A border lies where `left` says, also within a later chunk.
          if (!borders.has(sent + tracker.left)) return false
          if (tracker.fault !== undefined) return false
        }
        return Buffer.concat(passed).equals(bytes) && tracker.messages === messages.length
      }
    ),
    { numRuns: 300, seed }
  )
})

t.test('byte by byte: only an unfinished header is held back', async t => {
  const bytes = frame({ opcode: 2, length: 65_536, isMasked: true })
  const tracker = new FrameTracker(rules)
  const passed: number[] = []
  for (const byte of bytes.subarray(0, 20)) passed.push(tracker.track(Buffer.from([byte])).length)
  t.same(passed, [...Array(13).fill(0), 14, 1, 1, 1, 1, 1, 1])
})

/** @returns what passed, and the fault */
function judge(frames: readonly Buffer[], more: Partial<FrameRules> = {}) {
  const tracker = new FrameTracker({ ...rules, ...more })
  const passed = tracker.track(Buffer.concat(frames))
  return { passed: passed.length, code: tracker.fault?.code, left: tracker.left }
}

t.test('what breaks the protocol is refused at the border before it', async t => {
  const good = frame({ opcode: 1, length: 5, isMasked: true })
  const masked = { isMasked: true }
  const bad: ReadonlyArray<readonly [string, readonly Buffer[]]> = [
    ['not masked', [frame({ opcode: 1, length: 3, isMasked: false })]],
    ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map(
      opcode => [`opcode ${opcode}`, [frame({ opcode, length: 1, ...masked })]] as const
    ),
    ['a ping of 126 bytes', [frame({ opcode: 9, length: 126, ...masked })]],
    ['a close of 65536 bytes', [frame({ opcode: 8, length: 65_536, ...masked })]],
    ['a fragmented ping', [frame({ opcode: 9, length: 1, isLast: false, ...masked })]],
    ['RSV1 without compression', [frame({ opcode: 1, length: 1, reserved: 0x40, ...masked })]],
    ['RSV2', [frame({ opcode: 1, length: 1, reserved: 0x20, ...masked })]],
    ['RSV3 of a ping', [frame({ opcode: 9, length: 1, reserved: 0x10, ...masked })]],
    ['a continuation of nothing', [frame({ opcode: 0, length: 1, ...masked })]]
  ]
  for (const [title, frames] of bad) {
    t.same(judge([good, ...frames, good]), { passed: good.length, code: 1002, left: 0 }, title)
  }
  const open = frame({ opcode: 1, length: 1, isLast: false, ...masked })
  const nested = judge([open, frame({ opcode: 2, length: 1, ...masked })])
  t.same(nested, { passed: open.length, code: 1002, left: 0 }, 'a message within another')
  const masking = judge([good], { isMasked: false })
  t.same(masking, { passed: 0, code: 1002, left: 0 }, 'a server that masks')
})

t.test('sizes count over fragments, control frames do not, compressed ones as sent', async t => {
  const piece = (opcode: number, length: number, isLast: boolean, reserved = 0) =>
    frame({ opcode, length, isLast, reserved, isMasked: true })
  const small = { maxMessage: 300 }
  const fits = [piece(1, 200, false), piece(9, 125, true), piece(0, 100, true)]
  t.equal(judge([...fits, ...fits], small).code, undefined, 'each message by itself')
  const over = [piece(1, 200, false), piece(9, 125, true), piece(0, 101, true)]
  t.same(judge(over, small), { passed: 206 + 2 + 131, code: 1009, left: 0 })
  t.equal(judge([piece(2, 301, true)], small).code, 1009)
  const compressed = { ...small, mayCompress: true }
  t.equal(judge([piece(1, 300, true, 0x40)], compressed).code, undefined)
  t.equal(judge([piece(1, 301, true, 0x40)], compressed).code, 1009)
  const later = [piece(1, 1, false, 0x40), piece(0, 1, true, 0x40)]
  t.equal(judge(later, compressed).code, 1002, 'RSV1 marks a message by its first frame')
  const huge = Buffer.from('82ffffffffffffffffff00000000', 'hex')
  t.equal(judge([huge]).code, 1009, 'a length that no number holds')
})

t.test('after a close frame nothing passes', async t => {
  const close = frame({ opcode: 8, length: 2, isMasked: true })
  const tracker = new FrameTracker(rules)
  t.equal(tracker.track(close.subarray(0, -1)).length, close.length - 1)
  t.notOk(tracker.isClosed, 'it is not whole yet')
  const rest = Buffer.concat([close.subarray(-1), frame({ opcode: 1, length: 9, isMasked: true })])
  t.equal(tracker.track(rest).length, 1)
  t.ok(tracker.isClosed)
  t.equal(tracker.track(close).length, 0)
  t.equal(tracker.fault, undefined)
})

t.test('frames of the gateway’s own', async t => {
  const server: FrameRules = { ...rules, isMasked: false }
  const isWhole = (own: Buffer, as: FrameRules) => {
    const tracker = new FrameTracker(as)
    return tracker.track(own).length === own.length && tracker.left === 0 && !tracker.fault
  }
  t.ok(isWhole(pingFrame, server))
  t.ok(isWhole(closeFrame(4401, 'session.revoked'), server))
  t.same(closeFrame(4401, 'x'), Buffer.from([0x88, 3, 0x11, 0x31, 0x78]))
  t.equal(closeFrame(1012, 'a'.repeat(1000)).length, 127)
  t.ok(isWhole(maskedCloseFrame(1001), rules))
  t.same(maskedCloseFrame(1001).subarray(-2), Buffer.from([0x03, 0xe9]))
})
