/** Spans as OTLP's protobuf (opentelemetry/proto/collector/trace/v1). */
import type { Attribute, Span } from './spans.ts'

/** The part that stands once in each message. */
export interface Origin {
  /** Of this process. */
  readonly resource: readonly Attribute[]
  readonly scope: { readonly name: string; readonly version: string }
}

const varint = 0
const fixed64 = 1
const delimited = 2
const fixed32 = 5
/** A length of unknown digits is written as so many: protobuf allows leading zeros. */
const lengthBytes = 4
const maxBytesOfUnit = 3
const errorStatus = 2

/** Numbers of the fields. */
const ofSpan = {
  traceId: 1,
  spanId: 2,
  state: 3,
  parentId: 4,
  name: 5,
  kind: 6,
  start: 7,
  end: 8,
  attributes: 9,
  status: 15,
  flags: 16
}
const ofValue = { text: 1, integer: 3, double: 4 }

/** https://protobuf.dev/programming-guides/encoding/ */
class Writer {
  #bytes = Buffer.allocUnsafe(64 * 1024)
  #at = 0

  finish(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#at))
  }

  varint(field: number, value: number): void {
    this.#room(20)
    this.#tag(field, varint)
    this.#digits(value)
  }

  double(field: number, value: number): void {
    this.#room(12)
    this.#tag(field, fixed64)
    this.#at = this.#bytes.writeDoubleLE(value, this.#at)
  }

  fixed32(field: number, value: number): void {
    this.#room(8)
    this.#tag(field, fixed32)
    this.#at = this.#bytes.writeUInt32LE(value, this.#at)
  }

  /** @param ms since 1970; written as nanoseconds */
  time(field: number, ms: number): void {
    this.#room(12)
    this.#tag(field, fixed64)
    this.#at = this.#bytes.writeBigUInt64LE(nanosecondsOf(ms), this.#at)
  }

  hex(field: number, digits: string): void {
    const length = digits.length / 2
    this.#room(length + 4)
    this.#tag(field, delimited)
    this.#bytes[this.#at++] = length
    this.#at += this.#bytes.write(digits, this.#at, 'hex')
  }

  text(field: number, text: string): void {
    const maxBytes = text.length * maxBytesOfUnit
    this.#room(maxBytes + 8)
    this.#tag(field, delimited)
    if (maxBytes < 0x80) {
      const length = this.#bytes.write(text, this.#at + 1)
      this.#bytes[this.#at] = length
      this.#at += 1 + length
    } else {
      const length = this.#bytes.write(text, this.#at + lengthBytes)
      this.#length(this.#at, length)
      this.#at += lengthBytes + length
    }
  }

  /** Begins a message; `close` takes what it returns. */
  open(field: number): number {
    this.#room(8)
    this.#tag(field, delimited)
    this.#at += lengthBytes
    return this.#at
  }

  close(start: number): void {
    this.#length(start - lengthBytes, this.#at - start)
  }

  #tag(field: number, type: number): void {
    this.#digits(field * 8 + type)
  }

  #digits(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[this.#at++] = (rest % 0x80) + 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes[this.#at++] = rest
  }

  #length(at: number, length: number): void {
    this.#bytes[at] = (length & 0x7f) | 0x80
    this.#bytes[at + 1] = ((length >> 7) & 0x7f) | 0x80
    this.#bytes[at + 2] = ((length >> 14) & 0x7f) | 0x80
    this.#bytes[at + 3] = (length >> 21) & 0x7f
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(2 * (this.#bytes.length + bytes))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}

/** An ExportTraceServiceRequest. */
export function writeProtobuf({ resource, scope }: Origin, spans: readonly Span[]): Buffer {
  const writer = new Writer()
  const ofResource = writer.open(1)
  const description = writer.open(1)
  for (const attribute of resource) writeAttribute(writer, 1, attribute)
  writer.close(description)
  const ofScope = writer.open(2)
  const name = writer.open(1)
  writer.text(1, scope.name)
  writer.text(2, scope.version)
  writer.close(name)
  for (const span of spans) {
    const start = writer.open(2)
    writeSpan(writer, span)
    writer.close(start)
  }
  writer.close(ofScope)
  writer.close(ofResource)
  return writer.finish()
}

function writeSpan(writer: Writer, span: Span): void {
  const { traceId, spanId, parentId, state, attributes } = span
  writer.hex(ofSpan.traceId, traceId)
  writer.hex(ofSpan.spanId, spanId)
  if (state !== undefined) writer.text(ofSpan.state, state)
  if (parentId !== undefined) writer.hex(ofSpan.parentId, parentId)
  writer.text(ofSpan.name, span.name)
  writer.varint(ofSpan.kind, span.kind)
  writer.time(ofSpan.start, span.startMs)
  writer.time(ofSpan.end, span.endMs)
  for (const attribute of attributes) writeAttribute(writer, ofSpan.attributes, attribute)
  if (span.isError) {
    const status = writer.open(ofSpan.status)
    writer.varint(3, errorStatus)
    writer.close(status)
  }
  writer.fixed32(ofSpan.flags, flagsOf(span))
}

function writeAttribute(writer: Writer, field: number, [name, value]: Attribute): void {
  const attribute = writer.open(field)
  writer.text(1, name)
  const start = writer.open(2)
  if (typeof value === 'string') writer.text(ofValue.text, value)
  else if (Number.isSafeInteger(value) && value >= 0) writer.varint(ofValue.integer, value)
  else writer.double(ofValue.double, value)
  writer.close(start)
  writer.close(attribute)
}

/** W3C's flag `sampled`, and whether the parent is remote, with the bit that says that it tells. */
export function flagsOf({ isParentRemote }: Span): number {
  return isParentRemote ? 0x301 : 0x101
}

/** A double holds a time of this century to a half microsecond. */
export function nanosecondsOf(ms: number): bigint {
  const whole = Math.floor(ms)
  return BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6))
}
