/** Connections that the primary hands to workers: none is lost when a worker ends. */
import type { Worker } from 'node:cluster'
import { setTimeout as wait } from 'node:timers/promises'

/** The message of `node:cluster` that carries a connection, and a worker's reply to it. */
interface InternalMessage {
  readonly cmd?: string
  readonly act?: string
  readonly seq?: number
  readonly ack?: number
}

type Send = (message: InternalMessage, ...rest: unknown[]) => boolean

const cmd = 'NODE_CLUSTER'
/** The time to read the last messages of a worker that has ended. */
const readRestMs = 1000

interface Handle {
  readonly close: () => void
}

/** The workers that take connections. */
const listening = new Set<Worker>()

/** Connections that workers have not accepted yet, by number; a map for each worker. */
const underWay = new Set<ReadonlyMap<number, Handle>>()
const pollMs = 5

/**
 * Waits until workers have accepted all connections, within a time. As long as some wait in the
 * primary for a worker, each worker has one under way.
 */
export async function allAccepted(withinMs: number): Promise<void> {
  const giveUpAt = performance.now() + withinMs
  while ([...underWay].some(({ size }) => size > 0) && performance.now() < giveUpAt) {
    await wait(pollMs)
  }
}

/**
 * Node's cluster keeps a connection until the worker has replied whether it accepted it. When a
 * worker ends without a reply (killed, out of memory), Node forgets the connection, which stays
 * open, and the client waits for ever. So the reply of a worker that shuts down is sent for the
 * dead one, and Node hands the connection to another worker.
 */
export function keepHandedConnections(worker: Worker): void {
  const child = worker.process
  const handed = new Map<number, Handle>()
  underWay.add(handed)
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
    const refuseAll = () => {
      // Its last messages, which may accept a connection, have not all been read yet.
      if (child.connected && performance.now() < giveUpAt) return void setImmediate(refuseAll)
      // Node does not emit this while a connection is being handed over, and keeps using the
      // worker.
      if (!isDisconnected) child.emit('disconnect')
      for (const [ack, handle] of handed) {
        if (listening.size === 0) handle.close()
        else child.emit('internalMessage', { cmd, ack, accepted: false })
      }
      underWay.delete(handed)
    }
    refuseAll()
  })
}
