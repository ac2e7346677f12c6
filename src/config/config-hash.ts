/** A short name of a config: the same where replicas run the same, whatever their folders are called. */
import { createHash, createHmac } from 'node:crypto'
import { isRecord } from '../json/values.ts'
import { type Config, schemaOf } from './schema/config.ts'
import { replaceSecrets } from './schema/node.ts'

/** 64 bits: enough to tell configs of one installation apart. */
const hexDigits = 16

/** Milliseconds where there are hundreds of routes. */
const hashes = new WeakMap<Config, string>()

/** It reveals nothing of secrets: they take part by an HMAC with the first of `session.secrets`. */
export function configHash(config: Config): string {
  const known = hashes.get(config)
  if (known !== undefined) return known
  const { gateway, routes, limits, users, contracts, authorities, modules } = config
  const [key] = gateway.session.secrets
  const withoutSecrets = replaceSecrets(schemaOf.routes, routes, secret =>
    key === undefined ? 'secret' : createHmac('sha256', key).update(String(secret)).digest('base64')
  )
  const text = canonical([withoutSecrets, limits, users, contracts, authorities, modules])
  const hash = createHash('sha256').update(text).digest('hex').slice(0, hexDigits)
  hashes.set(config, hash)
  return hash
}

/** JSON whose members stand in the order of their names: the order of keys means nothing. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    isRecord(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member
  )
}
