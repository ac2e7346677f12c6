/**
 * Short names of configs: replicas that run the same config have the same hash, whatever their
 * folders are called.
 */
import { createHash, createHmac } from 'node:crypto'
import { isRecord } from '../json/values.ts'
import { type Config, schemaOf } from './schema/config.ts'
import { type Node, replaceSecrets } from './schema/node.ts'

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

/** Of each section of a config: milliseconds where it has hundreds of routes. */
const hashes = new WeakMap<object, string>()

/**
 * Computed once for each section. A hash reveals nothing of secrets: they take part by an HMAC whose
 * key is the first of `session.secrets`, which replicas share. Without any they do not take part.
 */
export function configHashes({ gateway, routes, ...others }: Config): ConfigHashes {
  const { limits, users, contracts, authorities, modules } = others
  const [key] = gateway.session.secrets
  const replaced = [
    hashOnce(routes, () => withoutSecrets(schemaOf.routes, routes, key)),
    ...[limits, users, contracts, authorities, modules].map(section =>
      hashOnce(section, () => section)
    )
  ]
  const install = hashOnce(gateway, () => {
    const { server, ops, ...rest } = withoutSecrets(schemaOf.gateway, gateway, key)
    const order = Object.keys(gateway.login.sources)
    return { ...rest, order, server: withoutAddress(server), ops: withoutAddress(ops) }
  })
  return { config: hashOf(replaced), install }
}

function hashOnce(section: object, value: () => unknown): string {
  const known = hashes.get(section)
  if (known !== undefined) return known
  const hash = hashOf(value())
  hashes.set(section, hash)
  return hash
}

function withoutSecrets<T>(schema: Node, value: T, key: string | undefined): T {
  return replaceSecrets(schema, value, secret =>
    key === undefined ? 'secret' : createHmac('sha256', key).update(String(secret)).digest('base64')
  ) as T
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
