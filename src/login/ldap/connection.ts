/** A connection to an LDAP server: TLS before anything is sent, and bounds of time and bytes. */
import { once } from 'node:events'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Client } from 'ldapts'
import type { LdapConfig } from '../../config/schema/login.ts'

export interface Server {
  readonly url: string
  readonly withinMs: number
}

const maxBytes = 256 * 1024
/** The library's parser goes one call deeper for each message of a chunk; TLS has such chunks. */
const chunkBytes = 16 * 1024
/** RFC 4511 §4.14. */
const startTlsOperation = '1.3.6.1.4.1.1466.20037'

/** The connection is anonymous. @throws Error with the reason, for the log */
export async function withConnection<T>(
  { startTls, ca }: LdapConfig,
  { url, withinMs }: Server,
  work: (client: Client) => Promise<T>
): Promise<T> {
  const { protocol, hostname, port } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  const isTls = protocol === 'ldaps:'
  const signal = AbortSignal.timeout(withinMs)
  const raw: Socket = connectPlain({
    host,
    port: Number(port) || (isTls ? 636 : 389),
    signal,
    onread: {
      buffer: Buffer.alloc(chunkBytes),
      callback: (length, chunk) => raw.emit('data', Buffer.from(chunk.subarray(0, length)))
    }
  })
  raw.on('error', () => {})
  try {
    await once(raw, 'connect')
    if (!startTls && !isTls) return await work(clientOn(raw))
    if (!isTls) await clientOn(raw).exop(startTlsOperation)
    // What was read before TLS, anybody on the way could have written: that client is not used again.
    raw.removeAllListeners('data')
    const servername = isIP(host) === 0 ? host : ''
    const socket = connectTls({ socket: raw, host, servername, ...(ca !== undefined && { ca }) })
    socket.on('error', () => {})
    await once(socket, 'secureConnect', { signal })
    return await work(clientOn(socket))
  } catch (error) {
    throw signal.aborted ? new Error(`no answer within ${withinMs} ms`) : error
  } finally {
    raw.destroy()
  }
}

function clientOn(socket: Socket): Client {
  let bytes = 0
  socket.on('data', ({ length }) => {
    bytes += length
    if (bytes > maxBytes) socket.destroy(new Error(`sent more than ${maxBytes} bytes`))
  })
  return new Client({ url: 'ldap://socket', createConnection: () => socket })
}
