/** AES-256-GCM: a copy of the store reveals neither sessions nor back-ends' tokens. */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import { parseKeepingDigits } from '../json/digits.ts'
import type { Json } from '../json/values.ts'

export interface Seal {
  /** @param key the name that the value has: it does not open under another's */
  readonly close: (key: string, value: Json) => string
  /** @returns undefined for what was not sealed with any of our keys, or was changed since */
  readonly open: (key: string, sealed: string) => Json
  readonly isNewest: (sealed: string) => boolean
}

const ivBytes = 12
const tagBytes = 16

/** @param secrets newest first: it seals, all open @param purpose nothing opens for another */
export function createSeal(secrets: readonly string[], purpose = 'session-record'): Seal {
  const keys = secrets.map(secret => {
    const key = Buffer.from(hkdfSync('sha256', secret, 'console-gateway', purpose, 32))
    return { key, id: createHash('sha256').update(key).digest('base64url').slice(0, 6) }
  })
  const [newest] = keys
  if (newest === undefined) throw new Error('a seal needs a secret')

  return {
    isNewest: sealed => sealed.startsWith(`${newest.id}.`),
    close: (key, value) => {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-gcm', newest.key, iv).setAAD(Buffer.from(key))
      const sealed = Buffer.concat([
        iv,
        cipher.update(JSON.stringify(value), 'utf8'),
        cipher.final(),
        cipher.getAuthTag()
      ])
      return `${newest.id}.${sealed.toString('base64url')}`
    },
    open: (key, written) => {
      const [id, body = ''] = written.split('.', 2)
      const sealer = keys.find(each => each.id === id)
      const sealed = Buffer.from(body, 'base64url')
      if (sealer === undefined || sealed.length <= ivBytes + tagBytes) return undefined
      try {
        const decipher = createDecipheriv('aes-256-gcm', sealer.key, sealed.subarray(0, ivBytes), {
          authTagLength: tagBytes
        })
          .setAAD(Buffer.from(key))
          .setAuthTag(sealed.subarray(-tagBytes))
        const text = decipher.update(sealed.subarray(ivBytes, -tagBytes), undefined, 'utf8')
        return parseKeepingDigits(text + decipher.final('utf8'))
      } catch {
        return undefined
      }
    }
  }
}
