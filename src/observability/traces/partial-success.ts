/** The response of a collector that took a part of a batch (ExportTraceServiceResponse). */

export interface PartialSuccess {
  readonly rejected: number
  readonly message: string
}

/** Longer messages are cut: they go to the log. */
const maxMessage = 300

/** @returns undefined where all was taken, or the body is none that says otherwise */
export function readPartialSuccess(
  body: Buffer,
  encoding: 'protobuf' | 'json'
): PartialSuccess | undefined {
  try {
    return encoding === 'json' ? readJson(body) : readProtobuf(body)
  } catch {
    return undefined
  }
}

/** The two members that matter, without the rest of JSON: a message ends at its first escape. */
function readJson(body: Buffer): PartialSuccess | undefined {
  const text = body.toString()
  const rejected = /"rejectedSpans"\s*:\s*"?(\d{1,15})/.exec(text)?.[1]
  const message = /"errorMessage"\s*:\s*"([^"\\]*)/.exec(text)?.[1]
  return resultOf(Number(rejected ?? 0), message)
}

/** Field 1 of the response: `rejected_spans` is its field 1, `error_message` its field 2. */
function readProtobuf(body: Buffer): PartialSuccess | undefined {
  const partial = fieldsOf(body).get(1)
  if (!Buffer.isBuffer(partial)) return undefined
  const fields = fieldsOf(partial)
  const rejected = fields.get(1)
  const message = fields.get(2)
  return resultOf(
    typeof rejected === 'number' ? rejected : 0,
    Buffer.isBuffer(message) ? message.toString() : undefined
  )
}

function resultOf(rejected: number, message = ''): PartialSuccess | undefined {
  if (!(rejected > 0)) return undefined
  return { rejected, message: message.slice(0, maxMessage) || 'spans were rejected' }
}

/** @throws RangeError for what is no protobuf */
function fieldsOf(bytes: Buffer): Map<number, number | Buffer> {
  const fields = new Map<number, number | Buffer>()
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let factor = 1; ; factor *= 0x80) {
      const byte = bytes.readUInt8(at++)
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    const tag = varint()
    const type = tag % 8
    if (type === 0) fields.set(Math.floor(tag / 8), varint())
    else if (type === 2) {
      const length = varint()
      if (length > bytes.length - at) throw new RangeError('the message is cut')
      fields.set(Math.floor(tag / 8), bytes.subarray(at, at + length))
      at += length
    } else at += type === 1 ? 8 : 4
  }
  return fields
}
