/** A DNS server on loopback, over UDP: its records are changed while it runs. */
import { createSocket } from 'node:dgram'
import type { AddressInfo } from 'node:net'

export interface Records {
  readonly a?: readonly string[]
  readonly srv?: ReadonlyArray<{
    readonly name: string
    readonly port: number
    readonly priority?: number
    readonly weight?: number
  }>
}

export interface DnsServer {
  /** HOST:PORT. */
  readonly address: string
  readonly zone: Map<string, Records>
  /** While it is true, no question is answered. */
  isSilent: boolean
  readonly questions: () => number
}

const types = { a: 1, srv: 33 }
const ttlSeconds = 1

export async function dnsServer(cleanUp: (undo: () => unknown) => void): Promise<DnsServer> {
  const zone = new Map<string, Records>()
  let questions = 0
  const socket = createSocket('udp4')
  const server: DnsServer = {
    address: '',
    zone,
    isSilent: false,
    questions: () => questions
  }
  socket.on('message', (message, { port, address }) => {
    questions++
    if (!server.isSilent) socket.send(responseTo(message, zone), port, address)
  })
  await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))
  cleanUp(() => new Promise<void>(resolve => socket.close(resolve)))
  const { port } = socket.address() as AddressInfo
  return Object.assign(server, { address: `127.0.0.1:${port}` })
}

function responseTo(message: Buffer, zone: Map<string, Records>): Buffer {
  const labels: string[] = []
  let at = 12
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const type = message.readUInt16BE(at + 1)
  const question = message.subarray(12, at + 5)
  const records = zone.get(labels.join('.').toLowerCase())
  const answers = records === undefined ? [] : dataOf(records, type)
  const header = Buffer.alloc(12)
  message.copy(header, 0, 0, 2)
  header.writeUInt16BE(records === undefined ? 0x8183 : 0x8180, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(answers.length, 6)
  return Buffer.concat([header, question, ...answers.map(data => recordOf(type, data))])
}

function dataOf({ a = [], srv = [] }: Records, type: number): Buffer[] {
  if (type === types.a) return a.map(ip => Buffer.from(ip.split('.').map(Number)))
  if (type !== types.srv) return []
  return srv.map(({ name, port, priority = 0, weight = 1 }) => {
    const fixed = Buffer.alloc(6)
    fixed.writeUInt16BE(priority, 0)
    fixed.writeUInt16BE(weight, 2)
    fixed.writeUInt16BE(port, 4)
    const labels = name
      .split('.')
      .map(label => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]))
    return Buffer.concat([fixed, ...labels, Buffer.from([0])])
  })
}

/** Its name is that of the question, by a pointer. */
function recordOf(type: number, data: Buffer): Buffer {
  const start = Buffer.alloc(12)
  start.writeUInt16BE(0xc00c, 0)
  start.writeUInt16BE(type, 2)
  start.writeUInt16BE(1, 4)
  start.writeUInt32BE(ttlSeconds, 6)
  start.writeUInt16BE(data.length, 10)
  return Buffer.concat([start, data])
}
