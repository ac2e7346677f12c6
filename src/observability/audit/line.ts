/**
 * A line of the ledger: JSON whose last member, `mac`, is the HMAC of the line before's `mac` and
 * of this line's bytes, so that lines form a chain.
 */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

const macLength = 43
const suffixLength = withMac('', '').length + macLength

export const auditKey = (secret: string): KeyObject => createSecretKey(secret, 'utf8')

export function macOf(key: KeyObject, before: string, body: string | Buffer): string {
  return createHmac('sha256', key).update(before).update(body).digest('base64url')
}

export function withMac(body: string, mac: string): string {
  return `${body},"mac":"${mac}"}`
}

/** @returns undefined for bytes that do not end as a line of the ledger does */
export function split(line: Buffer): { readonly body: Buffer; readonly mac: string } | undefined {
  const end = Math.max(0, line.length - suffixLength)
  const text = line.toString('latin1', end)
  const mac = text.slice(-macLength - 2, -2)
  // The whole end is compared: its last bytes are under no signature.
  return text === withMac('', mac) ? { body: line.subarray(0, end), mac } : undefined
}

/** The files of a ledger in a folder, each of which holds one chain. */
export const fileOf = (chain: string): string => `audit-${chain}.jsonl`
export const chainOf = (file: string): string | undefined => /^audit-(.+)\.jsonl$/.exec(file)?.[1]
