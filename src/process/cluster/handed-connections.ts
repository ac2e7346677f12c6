/** Connections that the first process hands to workers: none is lost with a worker that ends. */
import type { Worker } from 'node:cluster'

/** What `node:cluster` sends with a connection, and what a worker answers. */
interface InternalMessage {
  readonly cmd?: string
  readonly act?: string
  readonly seq?: number
  readonly ack?: number
}

type Send = (message: InternalMessage, ...rest: unknown[]) => boolean

const cmd = 'NODE_CLUSTER'
/** What the worker has still said is read within that time. */
const readRestMs = 1000

interface Handle {
  readonly close: () => void
}

/** Those that take connections. */
const listening = new Set<Worker>()

/**
 * Node's cluster keeps a connection until the worker has said whether it took it. Where a worker
 * ends without a word (killed, out of memory), Node forgets the connection, which stays open: the
 * client waits for ever. Here the same is said in the dead worker's place as a worker says that is
 * shutting down, and Node gives the connection to another.
 */
export function keepHandedConnections(worker: Worker): void {
  const child = worker.process
  const handed = new Map<number, Handle>()
  const send = child.send.bind(child) as unknown as Send
  let isDisconnected = false
  child.send = ((message: InternalMessage, ...rest: unknown[]) => {
    const { seq } = message
    const isHanded = message.cmd === cmd && message.act === 'newconn' && seq !== undefined
    if (isHanded) handed.set(seq, rest[0] as Handle)
    return send(message, ...rest)
  }) as unknown as typeof child.send
  child.on('internalMessage', ({ ack }: InternalMessage) => {
    if (ack !== undefined) handed.delete(ack)
  })
  worker.once('listening', () => listening.add(worker))
  child.once('disconnect', () => {
    isDisconnected = true
    listening.delete(worker)
  })
  child.once('exit', () => {
    const giveUpAt = performance.now() + readRestMs
    const giveBack = () => {
      // Connected: its last words, which may say that it took one, have not been read to their end.
      if (child.connected && performance.now() < giveUpAt) return void setImmediate(giveBack)
      // Node leaves this out where a connection is on its way, and goes on to count on the worker.
      if (!isDisconnected) child.emit('disconnect')
      for (const [ack, handle] of handed) {
        if (listening.size === 0) handle.close()
        else child.emit('internalMessage', { cmd, ack, accepted: false })
      }
    }
    giveBack()
  })
}
