/**
 * Watches a client: says when Redis comes and goes, and re-dials a connection that lost its
 * answers.
 */
import { Cluster, type Redis } from 'ioredis'

export interface RedisEvents {
  readonly onUp: () => void
  /** Once an outage for each reason. */
  readonly onDown: (reason: string) => void
  /** About once a second while it is up: how long it took to answer. */
  readonly onRoundTrip?: (ms: number) => void
}

const silent: RedisEvents = { onUp: () => {}, onDown: () => {} }

type RedisError = Error & { readonly code?: string; readonly lastNodeError?: RedisError }

const askEveryMs = 1000
/** One that stays a replica is better read from than dialled all the time. */
const redialReplicaEveryMs = 10_000

export function watch(
  client: Redis | Cluster,
  { onUp, onDown, onRoundTrip }: RedisEvents = silent
): void {
  // Each reason once an outage: the one that helps may come after "the connection closed".
  const reported = new Set<string>()
  const report = (reason: string) => {
    if (!reported.has(reason)) onDown(reason)
    reported.add(reason)
  }
  client.on('ready', () => {
    reported.clear()
    onUp()
  })
  client.on('error', (error: RedisError) => report(reasonOf(error.lastNodeError ?? error)))
  client.on('close', () => {
    // At its owner's `disconnect` the client has ended by now.
    if (client.status !== 'end') report('the connection closed')
  })
  const ask = createWatchdog(client, { report, onRoundTrip })
  let timer: NodeJS.Timeout | undefined
  client.on('ready', () => {
    clearInterval(timer)
    timer = setInterval(ask, askEveryMs).unref()
  })
  client.on('close', () => clearInterval(timer))
}

interface Watchdog {
  readonly report: (reason: string) => void
  readonly onRoundTrip?: ((ms: number) => void) | undefined
}

/**
 * A connection can stay open and yet lose its answers, or lead to a server that is no primary any
 * more; only asking shows it.
 * @returns what asks all servers of the client once
 */
function createWatchdog(
  client: Redis | Cluster,
  { report, onRoundTrip = () => {} }: Watchdog
): () => void {
  let redialledAt = -Infinity

  const redial = (node: Redis, reason: string) => {
    if (node.status !== 'ready') return
    if (node === client) report(reason)
    node.disconnect(true)
  }

  const ask = (node: Redis) => {
    const askedAt = performance.now()
    node.role().then(
      ([role]) => {
        onRoundTrip(performance.now() - askedAt)
        if (role === 'master' || performance.now() - redialledAt < redialReplicaEveryMs) return
        redialledAt = performance.now()
        redial(node, 'it became a replica')
      },
      (error: Error) => {
        if (error.message.includes('timed out')) redial(node, 'it does not answer')
      }
    )
  }

  return () => {
    for (const node of client instanceof Cluster ? client.nodes('master') : [client]) {
      if (node.status === 'ready') ask(node)
    }
  }
}

/** The wait before the next attempt: doubles up to 2 s, with a quarter more or less. */
export function backOff(attempt: number): number {
  return Math.min(50 * 2 ** Math.min(attempt, 6), 2000) * (0.75 + Math.random() / 2)
}

/** Says what is wrong without what a log must not hold. */
function reasonOf({ code, message }: RedisError): string {
  if (message.startsWith('WRONGPASS') || message.startsWith('NOAUTH')) {
    return 'the user or the password is wrong'
  }
  return code ?? message.slice(0, 120)
}
