/**
 * Short names of configs: replicas that run the same config have the same hash, whatever their
 * folders are called.
 */
import { createHash, createHmac } from 'node:crypto'
import { isRecord } from '../../json/values.ts'
import type { Config } from '../schema/config.ts'
import { type Node, visit } from '../schema/visit.ts'
import { copyTree, schemaOf } from './written.ts'

export interface ConfigHashes {
  /**
   * Of all that a reload replaces: routes, limits, users, contracts, certificates of
   * upstreams.
   */
  readonly config: string
  /** Of the running `gateway.yaml`, without the addresses on which it listens. */
  readonly install: string
}

/** 64 bits: enough to tell configs of one installation apart. */
const hexDigits = 16

const hashes = new WeakMap<Config, ConfigHashes>()

/**
 * Computed once for each config. A hash reveals nothing of secrets: they take part by an HMAC whose
 * key is the first of `session.secrets`, which replicas share. Without any they do not take part.
 */
export function configHashes(config: Config): ConfigHashes {
  let hashed = hashes.get(config)
  if (hashed === undefined) hashes.set(config, (hashed = hashesOf(config)))
  return hashed
}

function hashesOf({ gateway, routes, limits, users, contracts, authorities }: Config) {
  const [key] = gateway.session.secrets
  const { server, ops, ...rest } = withoutSecrets(schemaOf.gateway, gateway, key)
  const install = { ...rest, server: withoutAddress(server), ops: withoutAddress(ops) }
  const replaced = {
    routes: withoutSecrets(schemaOf.routes, routes, key),
    limits,
    users,
    contracts,
    authorities
  }
  return { config: hashOf(replaced), install: hashOf(install) }
}

function withoutSecrets<T>(schema: Node, value: T, key: string | undefined): T {
  return visit(schema, copyTree(value), ({ schema: at, value: secret, put }) => {
    if (at.format !== 'x-secret' || typeof secret !== 'string') return
    put(key === undefined ? 'secret' : createHmac('sha256', key).update(secret).digest('base64'))
  }) as T
}

/** Replicas on one machine differ by it. */
function withoutAddress(section: { readonly listen: string }) {
  return { ...section, listen: '' }
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(canonical(value)).digest('hex').slice(0, hexDigits)
}

/** JSON whose members stand in the order of their names: the order of keys means nothing. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    isRecord(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member
  )
}
