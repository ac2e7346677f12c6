/**
 * An LDAP server that says what a test tells it to: what no real directory says, and what only
 * Active Directory does.
 */
import { createServer, type Socket } from 'node:net'
import { listen } from './ports.ts'

/** Tags of operations (RFC 4511 §4). */
export const operations = { bind: 0x60, search: 0x63, extended: 0x77 } as const

const tlv = (tag: number, ...parts: readonly Buffer[]): Buffer => {
  const content = Buffer.concat(parts)
  const length =
    content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}
const octets = (value: string | Buffer) => tlv(4, Buffer.from(value as string))

/** A message with the id of the request. */
export type Say = (id: number) => Buffer

const message =
  (operation: Buffer): Say =>
  id =>
    tlv(0x30, tlv(2, Buffer.from([id])), operation)

/** The result of an operation: the next tag after that of its request, 0x65 after entries. */
export const result = (operation: keyof typeof operations, code: number, text = ''): Say => {
  const tag = operation === 'search' ? 0x65 : operations[operation] + 1
  return message(tlv(tag, tlv(10, Buffer.from([code])), octets(''), octets(text)))
}

export const entry = (dn: string, attributes: Readonly<Record<string, string | Buffer>>): Say =>
  message(
    tlv(
      0x64,
      octets(dn),
      tlv(
        0x30,
        ...Object.entries(attributes).map(([name, value]) =>
          tlv(0x30, octets(name), tlv(0x31, octets(value)))
        )
      )
    )
  )

export type FakeLdap = Awaited<ReturnType<typeof fakeLdap>>

/**
 * @param answer to the `count`th request of a connection, in one write; undefined hangs up. A
 *   request that is no LDAP is `unknown`
 */
export async function fakeLdap(
  cleanUp: (undo: () => unknown) => void,
  answer: (
    operation: keyof typeof operations | 'unknown',
    count: number
  ) => readonly Say[] | undefined
) {
  const connections: Socket[] = []
  const server = createServer(socket => {
    connections.push(socket)
    let count = 0
    socket.on('error', () => {})
    // A request is written at once, and the next one only after its answer.
    socket.on('data', request => {
      const lengthBytes = (request[1] ?? 0) > 127 ? (request[1] ?? 0) - 127 : 1
      const [id = 0, tag] = [request[lengthBytes + 3], request[lengthBytes + 4]]
      const known = Object.keys(operations) as Array<keyof typeof operations>
      const messages = answer(known.find(each => operations[each] === tag) ?? 'unknown', count++)
      if (messages === undefined) socket.destroy()
      else socket.write(Buffer.concat(messages.map(say => say(id))))
    })
  })
  const port = await listen(server)
  cleanUp(() => {
    server.close()
    for (const socket of connections) socket.destroy()
  })
  return {
    port,
    /** Connections that were ever made. */
    connections
  }
}
