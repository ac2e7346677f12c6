/**
 * The last ten configs that ran, for rollbacks. In memory only: a restart runs the config of the
 * files.
 */
import { configHashes } from '../../config/load/config-hash.ts'
import type { Config } from '../../config/schema/config.ts'

/** A revision by its number, or by the hash of its config, which is the same at all replicas. */
export type Wanted = number | string

export interface Revision {
  /** The number of its generation. */
  readonly number: number
  readonly at: string
  readonly by: string
  /** The changes from the revision before, in words. */
  readonly changes: readonly string[]
  /** After a rollback: the revision whose config this is. */
  readonly of?: number
  /** Whether the operator gave that revision's number, instead of going back by one step. */
  readonly named?: boolean
  readonly config: Config
}

export interface Revisions {
  readonly add: (revision: Omit<Revision, 'at'>) => void
  /**
   * The revision of this number, or the newest of this hash. Without either: the one before the
   * running one, or the one that ran last if the operator gave the running one's number.
   */
  readonly find: (wanted: Wanted | undefined) => Revision | undefined
  /** Newest first; the first one runs. */
  readonly all: () => readonly Revision[]
}

const maxRevisions = 10

export function createRevisions(first: Config): Revisions {
  const all: Revision[] = [
    { number: 1, at: new Date().toISOString(), by: 'start', changes: [], config: first }
  ]
  return {
    add: revision => {
      all.unshift({ ...revision, at: new Date().toISOString() })
      all.length = Math.min(all.length, maxRevisions)
    },
    find: wanted => {
      const [running] = all
      if (typeof wanted === 'string') {
        return all.find(({ config }) => configHashes(config).config === wanted)
      }
      if (wanted !== undefined) return all.find(({ number }) => number === wanted)
      if (running?.named === true) return all[1]
      // Two rollbacks go back two steps, instead of undoing each other.
      const from = running?.of ?? running?.number ?? 0
      return all.find(revision => revision.of === undefined && revision.number < from)
    },
    all: () => all
  }
}

/** Why there is no revision to go back to, and which there are. */
export function noRevision(wanted: Wanted | undefined, all: readonly Revision[]): string {
  const numbers = all.map(({ number }) => number).join(', ')
  if (wanted === undefined) {
    return `There is no earlier config to go back to. Name one with its number: ${numbers}.`
  }
  return typeof wanted === 'string'
    ? `There is no revision with the hash ${wanted} here.`
    : `There is no revision ${wanted}; there are ${numbers}.`
}

/** A rollback is about settings: a certificate that was renewed since then stays in force. */
export function withCertificateOf({ serverTls, opsTls }: Config, revision: Revision): Revision {
  const certificates = { ...(serverTls && { serverTls }), ...(opsTls && { opsTls }) }
  return { ...revision, config: { ...revision.config, ...certificates } }
}

/**
 * What a reload cannot change stays, whatever the files say. A listener has TLS if it began with
 * it: its pair stays where they have none any more. Connections to Redis keep the authority of the start.
 */
export function keepInstall(running: Config, next: Config): Config {
  const { serverTls, opsTls, redisCa, ...others } = next
  const { server, ops } = running.gateway
  const serverPair = server.tls && (serverTls ?? running.serverTls)
  const opsPair = ops.tls && (opsTls ?? running.opsTls)
  const hasBoth = redisCa !== undefined && running.redisCa !== undefined
  const renewed = hasBoth && redisCa !== running.redisCa ? ['redis.ca'] : []
  return {
    ...others,
    ...(serverPair && { serverTls: serverPair }),
    ...(opsPair && { opsTls: opsPair }),
    ...(running.redisCa !== undefined && { redisCa: running.redisCa }),
    restartNeeded: [...new Set([...others.restartNeeded, ...renewed])]
  }
}
