/** Asks the Sentinels: the primary's address, its changes, and the replicas that are up. */
import type { Redis } from 'ioredis'

export interface Address {
  readonly host: string
  readonly port: number
}

/** One Sentinel's view at one moment. */
export interface SentinelView {
  readonly primary: Address
  /**
   * Rises with each failover: of two Sentinels that differ, the one with the greater epoch is
   * right.
   */
  readonly epoch: number
  readonly isFailingOver: boolean
  /** `isPrimary`: it was replaced by a failover, and not told yet. */
  readonly replicas: ReadonlyArray<
    Address & { readonly isUp: boolean; readonly isPrimary: boolean }
  >
}

export type Sentinels = ReturnType<typeof createSentinels>

interface Options {
  readonly addresses: readonly Address[]
  /** The primary's name at the Sentinels. */
  readonly name: string
  /** Gives a connection whose errors are listened to. */
  readonly dial: (address: Address) => Redis
}

const askEveryMs = 1000
/**
 * After so long without a Sentinel that confirms the primary, a lower epoch is believed too:
 * Sentinels may be set up anew.
 */
const outdatedAfterMs = 10_000
/** Sentinels name each other; however many they name, so many are asked at most. */
const maxSentinels = 16

export const isSame = (a: Address | undefined, b: Address | undefined): boolean =>
  a !== undefined && b !== undefined && a.host === b.host && a.port === b.port

/** One connection to each Sentinel, for `+switch-master` and for questions. */
export function createSentinels({ addresses, name, dial }: Options) {
  const links = new Map<string, Redis>()
  const listeners = new Set<() => void>()
  let primary: Address | undefined
  let epoch = -1
  let confirmedAt = -Infinity

  function learn(view: SentinelView): void {
    const time = performance.now()
    if (isSame(primary, view.primary)) {
      confirmedAt = time
      epoch = Math.max(epoch, view.epoch)
      return
    }
    const isOutdated = time - confirmedAt > outdatedAfterMs
    if (view.epoch <= epoch && !isOutdated) return
    primary = view.primary
    epoch = view.epoch
    confirmedAt = time
    for (const listener of listeners) listener()
  }

  async function askOne(sentinel: Redis): Promise<SentinelView | undefined> {
    try {
      const { view, others } = await read(sentinel, name)
      learn(view)
      for (const other of others) link(other)
      return view
    } catch (error) {
      // One that hangs is dialled anew; its word is missing meanwhile.
      const hangs = error instanceof Error && error.message.includes('timed out')
      if (hangs && sentinel.status === 'ready') sentinel.disconnect(true)
      return undefined
    }
  }

  function link(address: Address): void {
    const key = `${address.host}:${address.port}`
    if (links.has(key) || links.size >= maxSentinels) return
    const sentinel = dial(address)
    links.set(key, sentinel)
    // The message has no epoch, and a Sentinel that lags behind may tell of an older failover.
    sentinel.on('message', () => void askOne(sentinel))
    sentinel.on('ready', () => {
      void askOne(sentinel)
      sentinel.subscribe('+switch-master').catch(() => {})
    })
  }

  const askAll = async (): Promise<readonly SentinelView[]> => {
    const ready = [...links.values()].filter(({ status }) => status === 'ready')
    const views = await Promise.all(ready.map(askOne))
    return views.filter(view => view !== undefined)
  }

  for (const address of addresses) link(address)
  const poll = setInterval(() => void askAll(), askEveryMs).unref()

  return {
    /** By the greatest epoch heard of; undefined until a Sentinel has answered. */
    primary: () => primary,
    /** @returns what ends it */
    onMoved: (listener: () => void) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    /** Asks every Sentinel now, and gives the answers that came in time. */
    ask: askAll,
    /** More than half of the Sentinels that config names. */
    majority: Math.floor(addresses.length / 2) + 1,
    close: (): void => {
      clearInterval(poll)
      for (const sentinel of links.values()) sentinel.disconnect()
    }
  }
}

/** @throws where the Sentinel does not answer, or does not know the primary */
async function read(
  sentinel: Redis,
  name: string
): Promise<{ view: SentinelView; others: Address[] }> {
  const questions = ['get-master-addr-by-name', 'master', 'replicas', 'sentinels']
  const answers = await Promise.all(
    questions.map(async word => await sentinel.call('sentinel', word, name))
  )
  const [address, master, replicas, others] = answers
  if (!Array.isArray(address) || address.length !== 2) {
    throw new Error(`the Sentinel does not know ${name}`)
  }
  const fields = fieldsOf(master)
  return {
    view: {
      primary: { host: String(address[0]), port: Number(address[1]) },
      epoch: Number(fields.get('config-epoch')),
      isFailingOver: flagsOf(fields).includes('failover_in_progress'),
      replicas: listOf(replicas).map(each => ({
        ...addressOf(each),
        isUp: isUp(each),
        isPrimary: each.get('role-reported') === 'master'
      }))
    },
    // One that is only disconnected at this moment is worth a connection of our own.
    others: listOf(others)
      .filter(each => !flagsOf(each).some(flag => flag.endsWith('_down')))
      .map(addressOf)
  }
}

type Fields = ReadonlyMap<string, string>

/** Names and values in turns, as Redis lists them. */
function fieldsOf(answer: unknown): Fields {
  const words = Array.isArray(answer) ? answer.map(String) : []
  const fields = new Map<string, string>()
  for (let index = 0; index + 1 < words.length; index += 2) {
    fields.set(words[index] as string, words[index + 1] as string)
  }
  return fields
}

function listOf(answer: unknown): Fields[] {
  return Array.isArray(answer) ? answer.map(fieldsOf) : []
}
function addressOf(fields: Fields): Address {
  return { host: fields.get('ip') ?? '', port: Number(fields.get('port')) }
}
function flagsOf(fields: Fields): string[] {
  return fields.get('flags')?.split(',') ?? []
}
const downFlags = new Set(['s_down', 'o_down', 'disconnected'])
function isUp(fields: Fields): boolean {
  return !flagsOf(fields).some(flag => downFlags.has(flag))
}
