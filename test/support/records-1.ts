/**
 * How commit 1afc4ed reads a stored session, copied word for word from its seal.ts, record.ts and judge.ts:
 * a later version that writes format 1 has to be read by exactly this.
 */
import { createDecipheriv, createHash, hkdfSync } from 'node:crypto'

interface Written {
  readonly session: {
    readonly id: string
    readonly identity: {
      readonly id: string
      readonly username: string
      readonly name: string
      readonly roles: readonly string[]
    }
    readonly source: string
    readonly credential?: Record<string, unknown>
    readonly createdAt: number
    readonly absoluteEnd: number
    readonly idleMs: number
    readonly address: string
    readonly agent: string
  }
  readonly epoch: number
}

const ivBytes = 12
const tagBytes = 16

/** @returns what the old version makes of it; undefined is its 401 `session.unknown` */
export function readByOldVersion(
  secret: string,
  key: string,
  written: string
): Written | undefined {
  const record = open(secret, key, written)
  return record === undefined ? undefined : parseRecord(record)
}

function open(secret: string, key: string, written: string): string | undefined {
  const derived = Buffer.from(hkdfSync('sha256', secret, 'console-gateway', 'session-record', 32))
  const known = createHash('sha256').update(derived).digest('base64url').slice(0, 6)
  const [id, body = ''] = written.split('.', 2)
  const sealed = Buffer.from(body, 'base64url')
  if (known !== id || sealed.length <= ivBytes + tagBytes) return undefined
  try {
    const decipher = createDecipheriv('aes-256-gcm', derived, sealed.subarray(0, ivBytes), {
      authTagLength: tagBytes
    })
      .setAAD(Buffer.from(key))
      .setAuthTag(sealed.subarray(-tagBytes))
    return (
      decipher.update(sealed.subarray(ivBytes, -tagBytes), undefined, 'utf8') +
      decipher.final('utf8')
    )
  } catch {
    return undefined
  }
}

function parseRecord(record: string): Written | undefined {
  try {
    const { session, epoch } = JSON.parse(record) as Written
    const { id, identity, createdAt, absoluteEnd, idleMs } = session
    const sound =
      [
        id,
        identity.id,
        identity.username,
        identity.name,
        session.source,
        session.address,
        session.agent
      ].every(value => typeof value === 'string') &&
      Array.isArray(identity.roles) &&
      identity.roles.every(role => typeof role === 'string') &&
      [createdAt, absoluteEnd, idleMs, epoch].every(Number.isFinite)
    return sound ? { session, epoch } : undefined
  } catch {
    return undefined
  }
}
