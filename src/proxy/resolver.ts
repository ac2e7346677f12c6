/**
 * Resolves the name of an upstream again and again, so that it follows its back-end when that
 * moves. A result stays in force until another one comes: a look-up that fails changes nothing.
 */
import { lookup as systemLookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

export interface DnsConfig {
  readonly records: 'lookup' | 'a' | 'srv'
  readonly interval: number
  readonly servers: readonly string[]
}

/** The place of one replica of a back-end. */
export interface Replica {
  /** One of each family at most. */
  readonly ips: readonly string[]
  /** Of a SRV record. */
  readonly port?: number
  /** Of a SRV record; 1 otherwise. */
  readonly weight: number
}

interface Resolution {
  readonly replicas: readonly Replica[]
  /** When to ask again. */
  readonly ttlMs: number
}

/** The way of the system, which knows `/etc/hosts` and search domains. */
export type Lookup = (
  name: string,
  options: { readonly all: true }
) => Promise<ReadonlyArray<{ readonly address: string }>>

export interface Watch {
  /** Settles, without an error, when the first answer or failure is there. */
  readonly first: Promise<void>
  /** Asks soon, at most once a second: something said that the answer is old. */
  readonly refresh: () => void
  readonly stop: () => void
}

interface WatchOptions {
  readonly name: string
  readonly dns: DnsConfig
  readonly onReplicas: (replicas: readonly Replica[]) => void
  readonly onFailed: (error: unknown) => void
  readonly lookup?: Lookup
}

const minTtlMs = 1000
const maxTtlMs = 3_600_000
/** Of one answer: a name is no list of a whole data centre. */
const maxReplicas = 100

/** Whether a host is a name that has to be resolved. */
export function isName(hostname: string): boolean {
  return isIP(hostname.replace(/^\[|\]$/g, '')) === 0
}

/** Asks at once and then again and again, until it is stopped. */
export function watchName(options: WatchOptions): Watch {
  const { name, dns, onReplicas, onFailed, lookup = systemLookup } = options
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  let isAsking = false
  let askedAt = -Infinity

  function schedule(afterMs: number): void {
    if (isStopped) return
    clearTimeout(timer)
    timer = setTimeout(() => void ask(), afterMs).unref()
  }
  async function ask(): Promise<void> {
    isAsking = true
    askedAt = performance.now()
    try {
      const { replicas, ttlMs } = await resolve(name, dns, lookup)
      if (!isStopped && replicas.length > 0) onReplicas(replicas)
      schedule(within(ttlMs) * (0.9 + Math.random() / 5))
    } catch (error) {
      if (!isStopped) onFailed(error)
      schedule(within(dns.interval))
    } finally {
      isAsking = false
    }
  }
  return {
    first: ask(),
    refresh: () => {
      if (!isAsking) schedule(Math.max(0, askedAt + minTtlMs - performance.now()))
    },
    stop: () => {
      isStopped = true
      clearTimeout(timer)
    }
  }
}

function within(ttlMs: number): number {
  return Math.min(maxTtlMs, Math.max(minTtlMs, ttlMs))
}

/** Asks once. @throws the resolver's error */
async function resolve(name: string, dns: DnsConfig, lookup: Lookup): Promise<Resolution> {
  if (dns.records === 'lookup') {
    const addresses = await lookup(name, { all: true })
    const replicas = paired(addresses.map(({ address }) => address))
    return { replicas: replicas.map(ips => ({ ips, weight: 1 })), ttlMs: dns.interval }
  }
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  if (dns.servers.length > 0) resolver.setServers(dns.servers)
  if (dns.records === 'srv') return await resolveServices(name, resolver)
  const { ips, ttlMs } = await resolveAddresses(name, resolver)
  return { replicas: paired(ips).map(pair => ({ ips: pair, weight: 1 })), ttlMs }
}

async function resolveAddresses(name: string, resolver: Resolver) {
  const answers = await Promise.allSettled([
    resolver.resolve4(name, { ttl: true }),
    resolver.resolve6(name, { ttl: true })
  ])
  const records = answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []))
  const [first] = answers
  if (records.length === 0) {
    throw first.status === 'rejected' ? first.reason : new Error(`no address for ${name}`)
  }
  return {
    ips: records.map(({ address }) => address),
    ttlMs: Math.min(...records.map(({ ttl }) => ttl)) * 1000
  }
}

/**
 * The services of the best priority. Node does not tell the time to live of SRV records: that of
 * their targets' addresses stands for it.
 */
async function resolveServices(name: string, resolver: Resolver): Promise<Resolution> {
  const records = await resolver.resolveSrv(name)
  const best = Math.min(...records.map(({ priority }) => priority))
  const services = records.filter(({ priority }) => priority === best).slice(0, maxReplicas)
  const answers = await Promise.allSettled(
    services.map(async ({ name: target, port, weight }) => {
      const { ips, ttlMs } = await resolveAddresses(target, resolver)
      const replicas = paired(ips).map(pair => ({ ips: pair, port, weight: Math.max(1, weight) }))
      return { replicas, ttlMs }
    })
  )
  const resolutions = answers.flatMap(answer =>
    answer.status === 'fulfilled' ? [answer.value] : []
  )
  if (resolutions.length === 0) throw new Error(`no address for the services of ${name}`)
  return {
    replicas: resolutions.flatMap(({ replicas }) => replicas),
    ttlMs: Math.min(...resolutions.map(({ ttlMs }) => ttlMs))
  }
}

/**
 * Addresses as replicas: the first of each family belong together, and so on. With two families
 * each replica mostly has both, and counts once; a connection takes the one that answers.
 */
export function paired(addresses: readonly string[]): string[][] {
  const unique = [...new Set(addresses)].toSorted()
  const v6 = unique.filter(address => address.includes(':'))
  const v4 = unique.filter(address => !address.includes(':'))
  const count = Math.min(maxReplicas, Math.max(v6.length, v4.length))
  return Array.from({ length: count }, (_, index) =>
    [v6[index], v4[index]].filter(address => address !== undefined)
  )
}
