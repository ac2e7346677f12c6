/** Passwords in AES, CBC (with `iv`) or ECB, PKCS #7, base64. The key is public: no protection. */
import { createDecipheriv } from 'node:crypto'

export interface PasswordCipher {
  /** 16, 24 or 32 characters. */
  readonly key: string
  /** 16 characters. */
  readonly iv?: string
}

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
