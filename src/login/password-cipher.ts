/** Passwords in AES, CBC (with `iv`) or ECB, PKCS #7, base64. The key is public: no protection. */
import { createDecipheriv } from 'node:crypto'
import type { GatewayConfig } from '../config/schema/gateway.ts'

export type PasswordCipher = NonNullable<GatewayConfig['login']['fields']['cipher']>

/** The password in plain text; a text that is not encrypted stays as it is. */
export function decryptPassword(text: string, { key, iv }: PasswordCipher): string {
  const mode = iv === undefined ? 'ecb' : 'cbc'
  try {
    const decipher = createDecipheriv(`aes-${key.length * 8}-${mode}`, key, iv ?? null)
    const bytes = Buffer.concat([decipher.update(text, 'base64'), decipher.final()])
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return text
  }
}
